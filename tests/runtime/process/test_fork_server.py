"""Worker processes are forked off one that has imported everything."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pytest

import workbench as wb
from workbench.runtime.deploy import embedded
from workbench.runtime.deploy.health import LocalHealth
from workbench.runtime.process import blas, fork_server, forking_context

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

        assert "workbench.runtime.process.fork_preload" in " ".join(server.cmdline())
        assert server.pid not in {os.getpid(), *workers}
        # A fork would lack the threads, but not the locks that they hold.
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
from workbench.runtime.process import blas

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


KILLED = """
import os, signal, sys
import psutil
import workbench as wb
from workbench.communicators.core.socket_folder import SocketFolder
cluster = wb.connect(replicas=2)
folder = SocketFolder(1)
print(folder.path)
print(*[process.pid for process in psutil.Process().children(recursive=True)], flush=True)
if sys.argv[2] == "stopped":
    os.kill(next(iter(cluster.gang.workers.values())).pid, signal.SIGSTOP)
os.kill(os.getpid(), int(sys.argv[1]))
"""


def remaining(text: str) -> list[psutil.Process]:
    """Those of the processes with these pids that do not end in time."""
    processes = []
    for pid in text.split():
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(int(pid)))
    return psutil.wait_procs(processes, timeout=30)[1]


@pytest.mark.parametrize(
    ("number", "worker"),
    [(signal.SIGKILL, "running"), (signal.SIGTERM, "running"), (signal.SIGKILL, "stopped")],
)
def test_workers_end_when_their_driver_is_killed_and_leave_nothing(
    tmp_path: Path, number: signal.Signals, worker: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(int(number)), worker],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    path, pids = done.stdout.splitlines()

    assert len(pids.split()) >= 3
    assert not remaining(pids)
    assert not Path(path).parent.exists()
    assert not list(tmp_path.glob("pymp-*"))
    scratch = tmp_path / "dask-scratch-space"
    assert not [path for path in scratch.iterdir() if path.is_dir()]


def test_no_semaphore_with_a_name_is_needed() -> None:
    """They need a /dev/shm that can be written to, and stay when the processes of a driver are killed together."""
    program = """
from multiprocessing import synchronize
import workbench as wb
def refused(*args, **options):
    raise OSError("read-only file system")
synchronize.SemLock.__init__ = refused
wb.connect(replicas=1).close()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


def test_the_end_of_the_server_costs_no_worker_and_no_variable() -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            variable = wb.Variable(np.zeros(3))
        strategy.run(lambda: variable.assign_add(np.ones(3)))
        server, workers = parents()
        server.kill()
        server.wait(30)

        for _ in range(20):
            strategy.run(lambda: variable.assign_add(np.ones(3)))
        assert variable.numpy().tolist() == [21.0] * 3
        cluster = wb.current_cluster()
        assert cluster is not None
        assert {worker.pid for worker in cluster.gang.workers.values()} == workers


def test_a_worker_that_is_lost_after_the_server_comes_off_a_new_one() -> None:
    with wb.connect(replicas=2) as cluster:
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            variable = wb.Variable(np.ones(3))
        strategy.run(lambda: variable.assign_add(np.ones(3)))
        server, _ = parents()
        for _ in range(2):  # and the next one
            server.kill()
            psutil.wait_procs([server], timeout=30)
            victim = psutil.Process(next(iter(cluster.gang.workers.values())).pid)
            victim.kill()
            psutil.wait_procs([victim], timeout=30)
            with contextlib.suppress(wb.errors.ReplicaLost):  # or it was noticed before, and replaced
                strategy.run(lambda: None)
            strategy.run(lambda: None)
            replaced = psutil.Process(next(iter(cluster.gang.workers.values())).pid)
            assert replaced.pid != victim.pid
            server = replaced.parent()
            assert "workbench.runtime.process.fork_preload" in " ".join(server.cmdline())
        assert variable.numpy().tolist() == [2.0] * 3


def test_the_end_of_a_worker_is_seen_also_without_the_server() -> None:
    with wb.connect(replicas=1) as cluster:
        server, _ = parents()
        server.kill()
        psutil.wait_procs([server], timeout=30)
        (worker,) = cluster.gang.workers.values()
        os.kill(worker.pid, signal.SIGKILL)

        assert embedded.worker_exit(worker.pid, 30.0) is None  # its exit code is unknown
        assert worker.pid in embedded._exits


def test_how_a_worker_ended_is_waited_for_once_it_has() -> None:
    with wb.connect(replicas=1) as cluster:
        server, _ = parents()
        (worker,) = cluster.gang.workers.values()
        server.suspend()  # as on a busy machine: it reports its child's end late
        threading.Timer(2.0, server.resume).start()
        os.kill(worker.pid, signal.SIGKILL)

        succession: Any = None  # not queried
        health = LocalHealth(worker_exit=embedded.worker_exit, succession=succession, stall_seconds=20)
        assert str(health.end_of(worker)) == "was killed by SIGKILL"


def test_a_server_that_is_stopped_holds_up_no_end() -> None:
    with wb.connect(replicas=1) as cluster:
        server, _ = parents()
        (worker,) = cluster.gang.workers.values()
        server.suspend()
        os.kill(worker.pid, signal.SIGKILL)
        try:
            assert embedded.worker_exit(worker.pid, 30.0) is None  # its exit code is unknown
        finally:
            server.resume()


def test_a_server_that_is_stopped_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_FORK_SECONDS", 1000.0)  # so a test that waited for it would hang
    fork_server.start()
    os.kill(fork_server.server._pid, signal.SIGSTOP)
    with wb.connect(replicas=1):
        assert ask(wb.MirroredStrategy(), lambda: 1) == (1,)


def test_strangers_cannot_reach_the_server() -> None:
    with wb.connect(replicas=1):
        server, _ = parents()
        names = {connection.laddr for connection in server.net_connections("all")}

    assert names <= {""}


def test_a_program_that_cannot_run_the_server_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fork_server, "_PROGRAM", "raise SystemExit('no')")
    server = fork_server.ForkServer()
    monkeypatch.setattr(forking_context, "server", server)
    process = multiprocessing.get_context(forking_context.METHOD).Process(target=print)
    with pytest.raises(ChildProcessError, match="no worker process could be forked"):
        process.start()
    server.stop()
    assert "no" in capfd.readouterr().err


def test_a_forked_child_may_have_workers_of_its_own() -> None:
    program = """
import os, sys
import workbench as wb

def answers():
    strategy = wb.MirroredStrategy()
    return strategy.local_results(strategy.run(lambda: 1))

with wb.connect(replicas=1):
    child = os.fork()
    if not child:
        with wb.connect(replicas=2):
            assert answers() == (1, 1)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print(answers())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout == "(1,)\n"
