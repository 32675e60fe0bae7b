"""The nannies of an embedded cluster start their workers again for as long as the cluster is there."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import ReplicaLost
from workbench.runtime.deploy import embedded


def _unregister(cluster: Any, address: str) -> None:
    """What a nanny does when its worker is gone; the next worker may already have the same address."""
    scheduler = cluster.client.scheduler
    cluster.client.sync(scheduler.unregister, address=address, stimulus_id="nanny-close-test")


def _replica_0_is_killed() -> None:
    if wb.distribute.get_replica_context().replica_id_in_sync_group == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def _run_until_replaced(strategy: wb.MirroredStrategy, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """Runs steps until another process has replaced one. A loss that is noticed between two steps makes none fail."""
    while True:
        with contextlib.suppress(ReplicaLost):
            after = strategy.local_results(strategy.run(os.getpid))
            if after != before:
                return after


def test_a_worker_that_the_scheduler_forgets_is_started_again() -> None:
    with wb.connect(replicas=2, processes=True, replace=True) as cluster:
        strategy = wb.MirroredStrategy()
        before = strategy.local_results(strategy.run(os.getpid))
        lost = next(iter(cluster.gang.workers.values()))
        _unregister(cluster, lost.address)

        after = _run_until_replaced(strategy, before)
        assert len(set(before) - set(after)) == 1
        assert embedded.restart_failure(cluster.client.scheduler.address, "0") == ""


def test_a_nanny_ends_with_its_cluster() -> None:
    with wb.connect(replicas=1, processes=True, replace=True) as cluster:
        address = cluster.client.scheduler.address
        assert embedded.restart_failure(address, "0") == ""
    assert embedded.restart_failure(address, "0").startswith("its nanny was closed (")


def test_how_an_earlier_process_with_the_same_pid_ended_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    earlier = dict.fromkeys(range(min(pids, 1 << 22)), embedded.WorkerExit(0, False))
    monkeypatch.setattr(embedded, "_exits", earlier)
    with wb.connect(replicas=2, processes=True, replace=True):
        strategy = wb.MirroredStrategy()
        strategy.run(os.getpid)
        with pytest.raises(ReplicaLost, match="SIGKILL"):
            strategy.run(_replica_0_is_killed)
