"""Workers with nannies outlive the connection to their scheduler, and join it, or the one in its place, again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import gone, kill, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import runtime


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
        if not nanny:  # nobody would start it again
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


def _answers(cluster: Any) -> list[int]:
    def program(env: Any) -> int:
        import os

        return os.getpid()

    group = cluster.group(cluster.devices, label="Answers")
    return list(group.run(group.prepare(program)).values())
