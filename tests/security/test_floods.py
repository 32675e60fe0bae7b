"""Row 43, floods from the other side: a replica that prints without end, and a run that is recorded meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import workbench as wb
from workbench.server.frames import MAX_ANSWER_BYTES, encode

MIB = 1 << 20
MEMORY_BYTES = 64 * MIB
"""By how much 100 MB of output may make the driver grow."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=1) as cluster:
        yield cluster


def print_lines(count: int, line: str) -> None:
    for _ in range(count):
        print(line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "width"), [(100_000, 1000), (10_000, 10_000), (1, 100_000_000), (200_000, 5)]
)
def test_a_replica_that_prints_without_end_costs_the_driver_no_memory_and_the_loss_is_told(
    cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch, count: int, width: int
) -> None:
    printed = _Counted()
    monkeypatch.setattr("sys.stdout", printed)
    strategy = wb.MirroredStrategy()
    strategy.run(print_lines, args=(600, "warm"))
    driver = psutil.Process()
    before, dropped = driver.memory_info().rss, cluster.feed.snapshot().counters.dropped_events
    printed.lines = 0

    strategy.run(lambda: print_lines(count, "x" * width))
    cluster.flush_telemetry()

    snapshot = cluster.feed.snapshot()
    assert printed.lines >= count  # the cut end of a line arrives as an empty line
    assert driver.memory_info().rss - before < MEMORY_BYTES
    assert snapshot.counters.dropped_events - dropped >= count - len(snapshot.events)
    assert "events dropped" in repr(wb.collectives(cluster))
    assert len(encode(snapshot.as_dict())) < MAX_ANSWER_BYTES / 4
    if width > 10_000:
        assert "x" * 9_999 + "…" in {event.message for event in snapshot.events}


def test_what_pages_get_stays_small_whatever_characters_are_printed(cluster: wb.Cluster) -> None:
    wb.MirroredStrategy().run(print_lines, args=(600, "\U0001f525" * 10_000))

    snapshot = cluster.feed.snapshot()
    assert snapshot.events[-1].message == "\U0001f525" * 10_000
    assert len(json.dumps(snapshot.as_dict())) < MAX_ANSWER_BYTES / 4


def test_a_recording_of_a_flood_can_be_opened(cluster: wb.Cluster, tmp_path: Path) -> None:
    with wb.record(tmp_path / "run.parquet", cluster):
        wb.MirroredStrategy().run(print_lines, args=(3000, "\x01" * 10_000))

    assert (tmp_path / "run.parquet").stat().st_size < 50 * MIB
    run = wb.open_run(tmp_path / "run.parquet")
    assert run.events[-1].message == "\x01" * 10_000
    assert run.snapshot.counters.dropped_events >= 2000


class _Counted:
    """Counts lines instead of printing them."""

    def __init__(self) -> None:
        self.lines = 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """Does nothing, because nothing is buffered."""
