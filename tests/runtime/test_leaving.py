"""A driver that leaves while its replicas are in the midst of a collective, and workers that stay for the next one."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

from tests.runtime.conftest import runner
from workbench import runtime
from workbench.communicators import Reduction


def wait_for(path: Path) -> None:
    for _ in range(1000):
        if path.exists():
            return
        threading.Event().wait(0.03)
    raise AssertionError(f"{path.name} never came")


@pytest.mark.parametrize("replicas_per_worker", [1, 2])
def test_workers_are_as_before_after_a_driver_left_in_the_midst_of_a_collective(
    replicas_per_worker: int, tmp_path: Path
) -> None:
    def endless(env: Any, folder: str) -> None:
        import numpy as np

        for number in range(1_000_000):
            array = env.communicator.empty(200_000, np.float64)
            array[...] = number
            env.communicator.all_reduce([array], Reduction("sum"))
            if number == 20:
                (Path(folder) / f"replica {env.rank}").touch()

    def state(env: Any) -> tuple[int, int, int]:
        """The process, its threads that run replicas, and its descriptors for waking others."""
        import contextlib
        import os
        import threading

        import numpy as np

        (total,) = env.communicator.all_reduce([np.ones(3)], Reduction("sum"))
        assert (total == env.communicator.size).all()
        for _ in range(1000):
            threads = [t for t in threading.enumerate() if t.name.startswith("workbench-replica")]
            if len(threads) == replicas_per_worker:
                break
            threading.Event().wait(0.03)
        wakeups = 0
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the folder's own descriptor
                wakeups += "[eventfd]" in os.readlink(f"/proc/self/fd/{descriptor}")
        return os.getpid(), len(threads), wakeups

    seen = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as dask:
        for turn in range(4):
            with runtime.connect(dask, replicas_per_worker=replicas_per_worker) as cluster:
                group = cluster.group(cluster.devices, label="Test")
                seen.append([handle.values() for handle in runner(group)(state)])
                folder = tmp_path / str(turn)
                folder.mkdir()
                known = group.prepare(lambda env: 0, user_function=len)
                group.run(known)
                prepared = group.prepare(endless, user_function=endless)
                prepared.structure = known.structure  # so that it does not wait when it runs
                group.run(prepared, (str(folder),), pipelined=True)
                for rank in range(group.size):
                    wait_for(folder / f"replica {rank}")
    pids, threads, wakeups = zip(*seen, strict=True)
    assert len(set(map(tuple, pids))) == 1
    assert all(count == replicas_per_worker for turn in threads for count in turn)
    assert len(set(map(tuple, wakeups))) == 1, wakeups


ENDING = """
import workbench as wb
if __name__ == "__main__":
    strategy = {make}
    cluster = wb.current_cluster()
    cluster.event_listeners.append(lambda event: print(event.message))
    cluster.closing.append(lambda: print("closed"))
    strategy.run(lambda: None)
"""
MAKE = {
    "processes": "wb.MirroredStrategy(['CPU:0', 'CPU:1'])",
    "threads": "(wb.connect(replicas=2, processes=False), wb.MirroredStrategy())[1]",
    "a Client of its own": "(wb.connect(__import__('distributed').Client(n_workers=2, threads_per_worker=1,"
    " dashboard_address='127.0.0.1:0')), wb.MirroredStrategy())[1]",
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_script_that_ends_without_closing_its_cluster_loses_no_replica(make: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ENDING.format(make=make), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout.splitlines() == ["closed"]
