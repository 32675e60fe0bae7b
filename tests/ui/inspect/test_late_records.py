"""Where a NaN came from, while workers have not sent the records that tell it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import workbench as wb
from tests.ui.test_first_nan import WHO, spoilt_by_one, trained
from workbench.runtime import cluster as cluster_module
from workbench.runtime.worker.telemetry_shipper import TelemetryShipper

ORIGIN = f"replica {WHO} gave it to all_reduce #1"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[wb.Cluster]:
    """Replicas on threads, which send records only when they are asked for them."""
    monkeypatch.setattr(TelemetryShipper, "ship", lambda self: None)
    with wb.connect(replicas=2, processes=False) as cluster:
        yield cluster


def said_of(value: wb.Variable) -> str:
    return " ".join(repr(wb.inspect(value)).split())


def test_a_busy_worker_is_waited_for(cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    flush, late_enough, checks = TelemetryShipper.flush, threading.Event(), []

    def late(self: TelemetryShipper) -> list[bytes]:
        assert late_enough.wait(60)
        return flush(self)

    def checked() -> bool:  # called after each tenth of a second without an answer
        checks.append(None)
        if len(checks) == 5:
            late_enough.set()
        return False

    monkeypatch.setattr(TelemetryShipper, "flush", late)
    monkeypatch.setattr(cluster_module, "is_interrupt_kept_back", checked)
    try:
        said = said_of(trained(wb.MirroredStrategy(), spoilt_by_one))
    finally:
        late_enough.set()
    assert f"The first NaN or infinity: {ORIGIN}" in said


def test_a_worker_that_sends_no_records_is_named(
    cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = trained(wb.MirroredStrategy(), spoilt_by_one)
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "flush_telemetry", lambda *_, **__: ("tcp://busy:1",))
        said = said_of(w)
    assert "Which replica it came from is not known yet. Worker tcp://busy:1 has not sent the newest" in said

    cluster.flush_telemetry(60)
    monkeypatch.setattr(cluster, "flush_telemetry", lambda *_, **__: ("tcp://busy:1", "tcp://busy:2"))
    said = said_of(w)
    assert ORIGIN in said
    assert "at the latest. 2 workers, such as tcp://busy:1, have not sent the newest records" in said
