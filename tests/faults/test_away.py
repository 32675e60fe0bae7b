"""Workers that go and have nobody to take their place: told at once, in every step, until there is somebody."""

from __future__ import annotations

import asyncio
import socket

import pytest
from distributed import LocalCluster

from tests.faults.conftest import STALL_SECONDS, Training, kill, no_hang, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import runtime
from workbench.errors import ReplicaLost, UnavailableError
from workbench.runtime.deploy import succession
from workbench.runtime.deploy.lookout import refuses


@pytest.fixture(autouse=True)
def _nothing_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for a restart without any sign of one would exceed the time limit of these tests."""
    monkeypatch.setattr(succession, "RESTART_SECONDS", 600.0)


def _refused(training: Training, number: int) -> str:
    with no_hang(), pytest.raises(ReplicaLost) as caught:
        training.step(number)
    return str(caught.value)


@pytest.mark.parametrize("processes", [True, False])
def test_a_worker_that_was_scaled_away_is_told_at_once_and_replaced_when_there_is_one(
    processes: bool,
) -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address="127.0.0.1:0"
        ) as dask,
        runtime.connect(dask, stall_seconds=STALL_SECONDS) as cluster,
    ):
        training = Training(cluster)
        fault_free = Training(cluster)
        expected = [fault_free.step(number) for number in range(3)]
        assert training.step(0) == expected[0]
        dask.scale(1)
        until(lambda: any(worker.lost for worker in cluster.gang.workers.values()), "the loss")

        told = [_refused(training, 1) for _ in range(4)]

        name = next(worker.name for worker in cluster.gang.workers.values() if worker.lost)
        assert f"of Training cannot run: worker {name} on host " in told[-1]
        assert "no worker has taken its place since " in told[-1]
        assert f"start `dask worker {dask.scheduler_address}` on " in told[-1]
        assert "State committed at step 0" in told[-1]
        dask.scale(2)
        wait_for_workers(dask, 2)
        until(lambda: _succeeds(training, 1, expected[1]), "the step on the new worker")
        assert training.step(2) == expected[2]


def _succeeds(training: Training, number: int, expected: list[bytes]) -> bool:
    try:
        assert training.step(number) == expected
    except ReplicaLost:  # Dask lists it, and it has not answered yet
        return False
    return True


def test_a_worker_without_a_nanny_is_not_waited_for(own: OwnCluster) -> None:
    own.add("0")
    second = own.add("1")
    wait_for_workers(own.address, 2)
    with runtime.connect(own.address, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        training.step(0)
        kill(second.pid)
        second.wait(10)
        until(lambda: training.group.place(1)[0].lost, "the notice of the loss")

        assert "it has no nanny that restarts it" in _refused(training, 1)

        own.add("1")
        wait_for_workers(own.address, 2)
        until(lambda: _goes_on(training), "the step on the new worker")
        assert training.recovered == [([1], [0])]


def _goes_on(training: Training) -> bool:
    try:
        training.step(1)
    except ReplicaLost:
        return False
    return True


def test_the_nanny_of_another_machine_starts_a_lost_worker_once() -> None:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as dask, runtime.connect(dask, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        expected = Training(cluster)
        fault_free = [expected.step(number) for number in range(3)]
        assert training.step(0) == fault_free[0]
        worker, _ = training.group.place(1)
        worker.local = False  # as if it ran elsewhere, where only its nanny could end it
        kill(worker.pid)
        until(lambda: worker.lost, "the notice of the loss")

        assert training.step(1) == fault_free[1]

        restarted = training.pids()[1]
        assert restarted != worker.pid
        assert training.step(2) == fault_free[2]
        assert training.pids()[1] == restarted


def test_an_address_at_which_nobody_listens_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tls://127.0.0.1:{listener.getsockname()[1]}"
        assert not asyncio.run(refuses(address))
    assert asyncio.run(refuses(address))
    assert not asyncio.run(refuses("inproc://127.0.0.1/1/2"))


def test_a_scheduler_that_is_gone_is_told_at_once(own: OwnCluster) -> None:
    own.add("0")
    second = own.add("1")
    wait_for_workers(own.address, 2)
    with runtime.connect(own.address, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        training.step(0)
        own.processes[0].kill()
        own.processes[0].wait(10)
        kill(second.pid)
        second.wait(10)
        until(lambda: training.group.place(1)[0].lost, "the notice of the loss")
        for _ in range(3):
            with no_hang(), pytest.raises(UnavailableError, match=r"scheduler .* does not answer any more"):
                training.step(1)
