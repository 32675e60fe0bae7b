"""Worker processes are forked off one that has imported everything."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pytest

import workbench as wb
from workbench.runtime import blas, fork_server

pytestmark = pytest.mark.skipif(not fork_server.AVAILABLE, reason="processes are forked on Linux only")


def ask(strategy: Any, question: Any) -> tuple[Any, ...]:
    values: tuple[Any, ...] = strategy.local_results(strategy.run(question))
    return values


def parents() -> tuple[psutil.Process, set[int]]:
    """The parent of the current cluster's workers, and their pids."""
    cluster = wb.current_cluster()
    assert cluster is not None
    pids = {worker.pid for worker in cluster.gang.workers.values()}
    (parent,) = {psutil.Process(pid).ppid() for pid in pids}
    return psutil.Process(parent), pids


def test_workers_are_forked_by_a_process_without_threads() -> None:
    with wb.connect(replicas=2):
        server, workers = parents()

        assert "multiprocessing.forkserver" in " ".join(server.cmdline())
        assert server.pid not in {os.getpid(), *workers}
        # Threads would not be there in a fork, but what they have locked would.
        assert server.num_threads() == 1


def test_workers_do_not_look_for_garbage_in_what_was_imported_before_they_were_forked() -> None:
    with wb.connect(replicas=2):
        kept = ask(wb.MirroredStrategy(), gc.get_freeze_count)

    assert min(kept) > 10_000


def test_replicas_do_not_draw_the_same_random_numbers() -> None:
    with wb.connect(replicas=2):
        drawn = ask(wb.MirroredStrategy(), lambda: float(np.random.random()))

    assert len(set(drawn)) == 2


def test_a_restarted_worker_draws_other_numbers_than_the_first_ones() -> None:
    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        drawn = set(ask(strategy, lambda: float(np.random.random())))
        victim = psutil.Process(next(iter(cluster.gang.workers.values())).pid)
        victim.kill()
        psutil.wait_procs([victim], timeout=30)
        with contextlib.suppress(wb.errors.ReplicaLost):  # or it was noticed before, and replaced
            ask(strategy, lambda: 0)
        drawn |= set(ask(strategy, lambda: float(np.random.random())))

    assert len(drawn) == 4


def test_workers_see_the_environment_of_the_moment_of_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> tuple[str | None, str | None]:
        return os.environ.get("WB_TEST_FIRST"), os.environ.get("WB_TEST_SECOND")

    monkeypatch.setenv("WB_TEST_FIRST", "1")
    with wb.connect(replicas=1):
        assert ask(wb.MirroredStrategy(), seen) == (("1", None),)
    monkeypatch.setenv("WB_TEST_FIRST", "2")
    with wb.connect(replicas=1, environment={"WB_TEST_SECOND": "x"}):
        assert ask(wb.MirroredStrategy(), seen) == (("2", "x"),)


def threads() -> set[int]:
    """How many each BLAS library of a replica uses."""
    import threadpoolctl

    return {library["num_threads"] for library in threadpoolctl.threadpool_info()}


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_blas_uses_as_many_threads_as_the_users_environment_says(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for each in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    ):  # Dask's own clusters leave them set
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "3")
    with wb.connect(replicas=1):
        assert ask(wb.MirroredStrategy(), threads) == ({3},)


def test_blas_uses_as_many_threads_as_are_a_workers_share() -> None:
    for count in (3, 1):  # whatever the server was started for first
        with wb.connect(replicas=1, environment={"OPENBLAS_NUM_THREADS": str(count)}):
            assert ask(wb.MirroredStrategy(), threads) == ({count},)


def test_what_dasks_own_cluster_leaves_in_the_environment_is_not_the_users_wish() -> None:
    program = """
import os
from distributed import LocalCluster
import workbench as wb
from workbench.runtime import blas

names = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"
def threads():
    import threadpoolctl
    return {library["num_threads"] for library in threadpoolctl.threadpool_info()}

if __name__ == "__main__":
    blas.cores = lambda: 6
    with LocalCluster(n_workers=1, dashboard_address=None):
        print(*[os.environ[name] for name in names])
    with wb.connect(replicas=1):
        strategy = wb.MirroredStrategy()
        print(*strategy.local_results(strategy.run(threads)))
    os.environ["MKL_NUM_THREADS"] = "5"
    print(*blas.environment(3).values())
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        env=environment,
    )
    assert done.stdout.splitlines() == ["1 1 1", "{6}", "2 5 2"]


@pytest.mark.parametrize("started_with", [{}, {"OMP_NUM_THREADS": "1"}])
def test_one_thread_is_the_users_wish_where_python_was_started_with_it(
    monkeypatch: pytest.MonkeyPatch, started_with: dict[str, str]
) -> None:
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(blas, "cores", lambda: 6)
    monkeypatch.setattr(blas, "_at_start", lambda: started_with)

    assert set(blas.environment(2).values()) == ({"1"} if started_with else {"3"})


def test_what_our_own_cluster_leaves_where_processes_are_spawned_is_not_the_users_wish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blas, "_left_by_ours", {})
    monkeypatch.setattr(blas, "cores", lambda: 6)
    monkeypatch.setattr(fork_server, "AVAILABLE", False)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in blas.environment(3).items():
        monkeypatch.setenv(name, value)  # as its nannies do

    assert set(blas.environment(1).values()) == {"6"}
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert blas.environment(1)["OMP_NUM_THREADS"] == "5"


def test_other_dask_clusters_of_this_process_start_their_workers_as_before() -> None:
    with wb.connect(replicas=1):
        assert dask.config.get("distributed.worker.multiprocessing-method") == "spawn"


def test_the_drivers_environment_stays_as_it_is() -> None:
    program = """
import os
before = dict(os.environ)
import workbench as wb
wb.connect(replicas=1).close()
changed = {name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)}
print({name for name in changed if not name.startswith("__DASK")})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout == "set()\n"


def test_workers_end_when_their_driver_is_killed_and_its_folder_is_removed() -> None:
    program = """
import os, signal
from multiprocessing import util
import psutil
import workbench as wb
wb.connect(replicas=2)
print(util.get_temp_dir(), *[process.pid for process in psutil.Process().children(recursive=True)], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    folder, *told = done.stdout.split()
    pids = [int(pid) for pid in told]

    assert len(pids) >= 3
    processes = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert not alive
    assert "pymp-" in folder
    assert not Path(folder).exists()
