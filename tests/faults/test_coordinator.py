"""Rows 20 and 21 for the coordinator: its scheduler ends, its cluster is restarted or shrinks, while functions run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import workbench as wb
from tests.faults.conftest import gone, kill, no_hang, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import distribute
from workbench.distribute.coordinator import ClusterCoordinator
from workbench.errors import CancelledError, UnavailableError

CALLS = 40
NO_SCHEDULER = r"the Dask scheduler (has ended|at tcp://\S+ does not answer any more)"
"""What is told depends on whether Dask's client has given it up yet when somebody asks."""


class Counting:
    """Functions that each add one to a variable, then wait for a file, and once more."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.strategy = distribute.ParameterServerStrategy(servers=1)
        self.coordinator = ClusterCoordinator(self.strategy)
        with self.strategy.scope():
            self.count = count = wb.Variable(0)
            self.table = table = wb.Variable(np.zeros(4, np.int64))
        self._began, self._go = folder / "began", folder / "go"
        self._workers = workers
        self._began.mkdir()

        @wb.function
        def step(began: str, go: str) -> None:
            count.assign_add(1)
            open(os.path.join(began, str(os.getpid())), "w").close()
            while not os.path.exists(go):
                time.sleep(0.005)
            table.scatter_add(wb.IndexedSlices(np.ones(1, np.int64), [0]))

        self._step = step

    def begin(self) -> list[Any]:
        """Returns when each worker is in the midst of a function."""
        results = [
            self.coordinator.schedule(self._step, (str(self._began), str(self._go))) for _ in range(CALLS)
        ]
        until(lambda: len(list(self._began.iterdir())) >= self._workers, "the functions' beginning")
        return results

    def go(self) -> None:
        """Has all of them go on."""
        self._go.touch()

    def is_exact(self) -> bool:
        """Whether each function has updated each variable once."""
        return (int(self.count), np.asarray(self.table).tolist()) == (CALLS, [CALLS, 0, 0, 0])


@pytest.fixture
def dask() -> Iterator[LocalCluster]:
    """A cluster of the user's, with nannies."""
    with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0") as made:
        yield made


def test_row_20_a_dead_scheduler_is_an_error_in_time_and_a_new_one_goes_on(
    own: OwnCluster, tmp_path: Path
) -> None:
    own.add("0")
    own.add("1")
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, replace=True) as cluster:
        cluster.client._timeout = 1.0  # Dask's client looks for it this long, rather than ten seconds
        counting = Counting(tmp_path, workers=1)
        saved = wb.Checkpoint(count=counting.count).save(tmp_path / "saved")
        last = counting.begin()[-1]
        # Nothing tells the functions to continue: otherwise all might end before their worker does, and nothing be
        # lost.
        kill(own.processes[0].pid)
        own.processes[0].wait(10)
        with no_hang(), pytest.raises(UnavailableError, match=NO_SCHEDULER):
            counting.coordinator.join()
        assert last.failed
        with no_hang(), pytest.raises(CancelledError, match=NO_SCHEDULER):
            last.fetch()
    (tmp_path / "again").mkdir()
    again = OwnCluster(tmp_path / "again")
    try:
        again.wait()
        again.add("0")
        again.add("1")
        wait_for_workers(again.address, 2)
        with wb.connect(again.address, replace=True):
            counting = Counting(tmp_path / "again", workers=1)
            wb.Checkpoint(count=counting.count).restore(saved)
            counting.begin()
            counting.go()
            counting.coordinator.join()
            assert counting.is_exact()
    finally:
        again.close()


def test_row_21_a_restart_of_the_cluster_amid_functions(dask: LocalCluster, tmp_path: Path) -> None:
    with wb.connect(dask, replace=True):
        counting = Counting(tmp_path, workers=2)
        counting.begin()
        with Client(dask, set_as_default=False) as other:
            other.restart()
        counting.go()
        with no_hang():
            counting.coordinator.join()
        assert counting.is_exact()
        status = counting.strategy.status()
        assert [each.restarts for each in (*status.workers, *status.servers)] == [1, 1, 1]


def test_row_21_a_worker_is_scaled_away_amid_functions(dask: LocalCluster, tmp_path: Path) -> None:
    with wb.connect(dask, replace=True):
        counting = Counting(tmp_path, workers=2)
        counting.begin()
        with Client(dask, set_as_default=False) as other:
            other.retire_workers([counting.strategy.hosting.workers[0].worker])
        until(lambda: counting.strategy.status().workers[0].state == "lost", "the loss")
        counting.go()
        with no_hang():
            counting.coordinator.join()
        assert counting.is_exact()
        assert counting.strategy.status().workers[0].state == "lost"


def test_row_21_a_server_is_scaled_away_amid_functions_and_another_worker_comes(
    dask: LocalCluster, tmp_path: Path
) -> None:
    with wb.connect(dask, replace=True) as cluster:
        counting = Counting(tmp_path, workers=2)
        counting.begin()
        address = counting.strategy.hosting.servers[0].device.worker
        (pid,) = (worker.pid for worker in cluster.gang.workers.values() if worker.address == address)
        with Client(dask, set_as_default=False) as other:
            other.retire_workers([address])
        until(lambda: gone(pid), "the end of the server")
        counting.go()
        dask.scale(4)
        with no_hang():
            counting.coordinator.join()
        assert counting.is_exact()
        assert counting.strategy.status().servers[0].restarts == 1
