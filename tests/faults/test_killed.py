"""Rows 1-4, 18, 19, 21: processes that end."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.conftest import (
    PATIENCE_SECONDS,
    Check,
    Training,
    arrival,
    gone,
    kill,
    meanwhile,
    no_hang,
    until,
)
from workbench.errors import ReplicaLost, UnavailableError
from workbench.runtime import Cluster
from workbench.runtime.deploy import succession
from workbench.runtime.replica.env import ReplicaEnv

POINTS = {"before": "all_reduce.enter", "mid-payload": "all_reduce.after_send"}


def _lost(training: Training, step: Callable[[], Any]) -> ReplicaLost:
    """The error of a step that replica 1 does not survive."""
    worker, _ = training.group.place(1)
    generation = training.group.generation
    with no_hang(), pytest.raises(ReplicaLost) as caught:
        step()
    error = caught.value
    assert (error.replica, error.step, error.pid, error.worker) == (1, 2, worker.pid, worker.address)
    assert (error.run, error.generation) == (training.cluster.name, generation)
    return error


@pytest.mark.parametrize("where", POINTS)
def test_row_01_sigkill_in_a_collective(check: Check, where: str) -> None:
    training = check.training
    check.begin()
    training.arm(1, POINTS[where], "kill")
    error = _lost(training, lambda: training.step(2))
    assert "was killed by SIGKILL at step 2" in str(error)
    assert error.cause == "was killed by SIGKILL"
    assert error.collective == "all_reduce #1"
    check.go_on()
    assert training.recovered == [([1], [0])]


def test_row_01_sigkill_while_waiting(check: Check) -> None:
    training = check.training
    check.begin()
    pid = training.pids()[1]
    training.arm(1, "all_reduce.waiting", "kill")

    def come_late(env: ReplicaEnv) -> None:
        if env.rank == 0:
            until(lambda: gone(pid), "the end of replica 1")

    error = _lost(training, lambda: training.step(2, come_late))
    assert error.cause == "was killed by SIGKILL"
    check.go_on()


def test_row_01_sigkill_in_user_code_releases_who_waits(check: Check, tmp_path: Path) -> None:
    training = check.training
    check.begin()
    pid = training.pids()[1]
    arrived, arrive = arrival(tmp_path)

    def hang(env: ReplicaEnv) -> None:
        arrive(env)
        if env.rank == 1:
            threading.Event().wait(60)

    def inject() -> None:
        until(arrived.exists, "the arrival of replica 1")
        kill(pid)

    with meanwhile(inject):
        error = _lost(training, lambda: training.step(2, hang))
    assert "replica 0 was released from all_reduce #1" in str(error)
    check.go_on()


def test_row_02_sigkill_between_steps(check: Check, tmp_path: Path) -> None:
    training = check.training
    check.begin()
    worker, _ = training.group.place(1)
    kill(worker.pid)
    until(lambda: worker.lost, "the notice of the loss")
    assert str(worker.lost) == "was killed by SIGKILL"
    check.go_on()
    assert training.group.generation == 1
    assert training.recovered == [([1], [0])]


def test_row_02_sigkill_with_the_next_step_on_its_heels(check: Check) -> None:
    training = check.training
    check.begin()
    kill(training.pids()[0])
    try:  # whichever is faster: the report of the loss, or the step
        assert training.step(2) == check.fault_free[2]
    except ReplicaLost:
        check.go_on()
    else:
        check.go_on(3)


def test_row_03_both_replicas_die(check: Check) -> None:
    training = check.training
    check.begin()
    for rank in (0, 1):
        training.arm(rank, "all_reduce.enter", "kill")
    with pytest.raises(ReplicaLost, match=r"replica 0 \(and replica 1\).*no replica survived"):
        training.step(2)
    assert [training.step(number) for number in range(4)] == check.fault_free
    assert training.recovered == [([0, 1], [])]


def test_row_03_sigkill_during_recovery(check: Check) -> None:
    training = check.training
    check.begin()
    kill(training.pids()[1])
    killed: list[int] = []
    replace = training.group.gang.replace

    def replace_and_kill(name: str) -> None:
        replace(name)
        if not killed:
            killed.append(training.group.gang.workers[name].pid)
            kill(killed[0])

    training.group.gang.replace = replace_and_kill  # type: ignore[method-assign]
    until(lambda: training.group.place(1)[0].lost, "the notice of the loss")
    try:
        check.go_on()
    finally:
        training.group.gang.replace = replace  # type: ignore[method-assign]
    assert killed


def test_row_18_no_replica_runs_twice(check: Check, tmp_path: Path) -> None:
    training = check.training
    check.begin()

    def count(env: ReplicaEnv) -> None:
        with open(tmp_path / f"{env.rank}", "a") as file:
            file.write(f"{env.generation}\n")

    training.arm(1, "all_reduce.enter", "kill")
    _lost(training, lambda: training.step(2, count))
    assert training.cluster.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0
    assert training.step(2, count) == check.fault_free[2]
    assert [(tmp_path / f"{rank}").read_text().split() for rank in (0, 1)] == [["0", "1"]] * 2
    check.go_on(3)


def _exit(env: ReplicaEnv) -> None:
    if env.rank == 1:
        os._exit(7)


def _crash(env: ReplicaEnv) -> None:
    if env.rank == 1:
        ctypes.string_at(0)


def _sys_exit(env: ReplicaEnv) -> None:
    if env.rank == 1:
        sys.exit(3)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (_exit, "exited with code 7"),
        (_crash, "was killed by SIGSEGV (a crash in C code)"),
        (_sys_exit, "exited with code 3"),
    ],
)
def test_row_19_a_program_that_ends_its_process(check: Check, how: Any, cause: str) -> None:
    check.begin()
    error = _lost(check.training, lambda: check.training.step(2, how))
    assert error.cause == cause
    assert cause.partition(" (")[0] in str(error)
    check.go_on()


def test_row_19_no_memory_in_the_address_space_is_the_users_memory_error(check: Check) -> None:
    def exhaust(env: ReplicaEnv) -> None:
        import resource

        import numpy as np

        if env.rank == 1:
            limits = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(
                resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 50_000_000, limits[1])
            )
            try:
                np.ones(100_000_000)
            finally:
                resource.setrlimit(resource.RLIMIT_AS, limits)

    check.begin()
    with pytest.raises(MemoryError, match="replica 1"):
        check.training.step(2, exhaust)
    check.go_on()


def test_row_21_restart_by_another_client(check: Check, tmp_path: Path) -> None:
    training = check.training
    check.begin()
    arrived, arrive = arrival(tmp_path)
    cluster: Cluster = training.cluster

    def hang(env: ReplicaEnv) -> None:
        arrive(env)
        if env.rank == 1:
            threading.Event().wait(60)

    def inject() -> None:
        until(arrived.exists, "the arrival of replica 1")
        cluster.client.restart_workers([training.group.place(1)[0].address], timeout=20)

    with meanwhile(inject):
        error = _lost(training, lambda: training.step(2, hang))
    assert "shut down" in error.cause
    check.go_on()


def test_a_signal_name_is_told_for_every_signal(check: Check) -> None:
    def end(env: ReplicaEnv) -> None:
        if env.rank == 1:
            # A signal reaches the main thread some time later, because the process dumps its core first.
            os.abort()

    check.begin()
    error = _lost(check.training, lambda: check.training.step(2, end))
    assert error.cause == "was killed by SIGABRT (C code gave up)"
    check.go_on()


def test_a_worker_lost_in_the_first_step_says_that_nothing_is_committed(training: Training) -> None:
    training.arm(1, POINTS["before"], "kill")

    with no_hang(), pytest.raises(ReplicaLost, match=r"No step is committed yet\. Run"):
        training.step(0)


def test_a_blocked_event_loop_of_dask_is_named(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be asked then who takes the place of a lost worker, so a step must not wait for that."""
    monkeypatch.setattr(succession, "_LOOP_SECONDS", 1.0)
    let_go = threading.Event()
    training.step(0)
    loop: Any = training.cluster.client.loop
    loop.add_callback(let_go.wait, PATIENCE_SECONDS)
    try:
        kill(training.pids()[1])
        with no_hang():
            until(
                lambda: "something blocks Dask's event loop in this process" in _error_of(training),
                "the reason",
            )
    finally:
        let_go.set()
    with no_hang():
        until(lambda: _error_of(training) == "", "the recovery")


def _error_of(training: Training) -> str:
    """The error of a step; "" if it succeeds. The first step after a loss may run during it or after it."""
    try:
        training.step(1)
    except (ReplicaLost, UnavailableError) as error:
        return str(error)
    return ""
