"""Some records by themselves: a table of their own, whatever else the feed has seen."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.telemetry.simulation import MS, Call, Replicas
from workbench.telemetry.feed.excerpt import excerpt
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.limits import Limit


@pytest.fixture
def records() -> pa.Table:
    """Two collectives of the user's of 4 KiB, and three of 8 KiB for a sweep, over two replicas."""
    replicas = Replicas(["a", "a"])
    for step in range(5):
        begin = (step + 1) * MS
        purpose, nbytes = ("", 4096) if step < 2 else ("sweep", 8192)
        replicas.record(Call([begin, begin + 10], begin + 2010, step=step, nbytes=nbytes, purpose=purpose))
    feed = Feed(now_ns=lambda: 0)
    for batch in replicas.drain():
        feed.ingest(batch)
    return feed.to_arrow()


def test_the_table_is_of_these_records_only(records: pa.Table) -> None:
    (row,) = excerpt(records.filter(pc.equal(records["purpose"], "sweep"))).table()

    assert (row.size_bytes, row.samples, row.n, row.purpose) == (8192, 3, 2, "")
    assert row.p50_us == 2.0
    assert row.busbw == pytest.approx(8192 / 2000)


def test_what_was_internal_is_the_subject_here(records: pa.Table) -> None:
    feed = excerpt(records)

    assert [(row.size_bytes, row.samples) for row in feed.table()] == [(4096, 2), (8192, 3)]
    assert feed.snapshot().internal == ()
    assert feed.to_arrow().num_rows == records.num_rows == 10


def test_limits_are_taken_over(records: pa.Table) -> None:
    rows = excerpt(records, {"g": Limit(between_hosts=8.192)}).table()

    assert [row.limit_percent for row in rows] == pytest.approx([25.0, 50.0])


def test_nothing_is_an_empty_table(records: pa.Table) -> None:
    assert excerpt(records.slice(0, 0)).table() == ()
