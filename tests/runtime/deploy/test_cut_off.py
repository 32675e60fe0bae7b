"""Workers with nannies outlive the connection to their scheduler, and join it, or the one in its place, again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.comm import listen
from distributed.core import Status
from tornado.ioloop import PeriodicCallback

from tests.faults.conftest import gone, kill, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import runtime
from workbench.runtime.deploy import cut_off


@pytest.mark.parametrize("nanny", [True, False])
def test_a_scheduler_that_is_started_again_finds_the_workers_that_have_nannies(
    tmp_path: Path, nanny: bool
) -> None:
    first, second = OwnCluster(tmp_path), None
    try:
        first.wait()
        worker = first.add("0", nanny=nanny)
        wait_for_workers(first.address, 1)
        with runtime.connect(first.address) as cluster:
            (link,) = cluster.gang.workers.values()
            before = link.pid
            kill(first.processes[0].pid)
            first.processes[0].wait(10)
            until(lambda: link.lost, "the notice that it has left")
        if not nanny:  # nothing would restart it
            until(lambda: gone(before), "its end")
            worker.wait(10)
            return
        assert not gone(before)
        port = first.address.rpartition(":")[2]
        (tmp_path / "again").mkdir()
        second = OwnCluster(tmp_path / "again", port=port)
        second.wait()
        wait_for_workers(second.address, 1)
        with runtime.connect(second.address) as cluster:
            (link,) = cluster.gang.workers.values()
            assert link.pid != before
            assert _answers(cluster) == [link.pid]
        assert gone(before)
    finally:
        if second is not None:
            second.close()
        first.close()


class _Worker:
    """The part of Dask's worker that `outlast` uses; records how it is closed."""

    def __init__(self, address: str) -> None:
        self.status = Status.running
        self.death_timeout: float | None = None
        self.scheduler = SimpleNamespace(address=address)
        self.connection_args: dict[str, Any] = {}
        self.periodic_callbacks = {"heartbeat": PeriodicCallback(lambda: None, 1000)}
        self.closed: list[bool] = []

    async def close(self, *, nanny: bool = True, reason: str = "") -> None:
        self.closed.append(nanny)


@pytest.mark.parametrize("why", ["patience", "death timeout", "closed", "answered"])
def test_a_nanny_is_closed_with_its_worker_unless_a_scheduler_answers_in_time(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_off, "_ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(cut_off, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(cut_off, "_PATIENCE_SECONDS", 0.1 if why == "patience" else 600.0)

    async def close() -> tuple[list[bool], list[str]]:
        listener = await listen("tcp://127.0.0.1:0", lambda comm: None)
        address = listener.contact_address
        if why != "answered":
            listener.stop()
        worker, left = _Worker(address), []

        def leave() -> None:
            left.append(worker.status.name)
            if why == "closed":  # by another caller, while it waits
                worker.status = Status.closing

        cut_off.outlast(worker, leave)  # type: ignore[arg-type]
        if why == "death timeout":
            worker.death_timeout = 0.1
        await worker.close(reason="worker-heartbeat-missing")
        await worker.close(reason="worker-close")
        listener.stop()
        return worker.closed, left

    closed, left = asyncio.run(close())
    assert closed == [why != "answered", True]
    assert left == ["running"]


def _answers(cluster: Any) -> list[int]:
    def program(env: Any) -> int:
        import os

        return os.getpid()

    group = cluster.group(cluster.devices, label="Answers")
    return list(group.run(group.prepare(program)).values())
