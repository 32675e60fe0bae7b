"""Rows 5-8: processes that are there but do not answer."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.faults.conftest import STALL_SECONDS, Check, arrival, gone, kill, meanwhile, no_hang, until
from workbench.errors import ReplicaStalled
from workbench.runtime.replica.env import ReplicaEnv


def test_row_05_a_pause_is_no_failure(check: Check, tmp_path: Path) -> None:
    training = check.training
    check.begin()
    worker, _ = training.group.place(1)
    arrived, arrive = arrival(tmp_path)
    resumed = tmp_path / "resumed"

    def pause(env: ReplicaEnv) -> None:
        arrive(env)
        if env.rank == 1:
            until(resumed.exists, "the end of the pause")

    def inject() -> None:
        until(arrived.exists, "the arrival of replica 1")
        kill(worker.pid, signal.SIGSTOP)
        until(lambda: time.monotonic() - worker.last_beat > STALL_SECONDS / 2, "silence")
        kill(worker.pid, signal.SIGCONT)
        resumed.touch()

    with meanwhile(inject):
        assert training.step(2, pause) == check.fault_free[2]
    assert not worker.lost
    check.go_on(3)
    assert training.group.generation == 0


def test_row_06_a_stopped_process_is_given_up(check: Check) -> None:
    training = check.training
    check.begin()
    pid = training.pids()[1]

    def stop(env: ReplicaEnv) -> None:
        if env.rank == 1:
            # Sent to this thread: if another one takes the signal first, this one can still finish the step.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    with no_hang(), pytest.raises(ReplicaStalled) as caught:
        training.step(2, stop)
    error = caught.value
    assert (error.replica, error.step, error.pid) == (1, 2, pid)
    assert "its process is stopped (state T)" in error.cause
    assert "stalled at step 2" in str(error)
    assert "replica 0 was released from all_reduce #1 (train.py:41)" in str(error)
    until(lambda: gone(pid), "the end of the stopped process")
    check.go_on()


def test_row_06_sending_much_to_a_stopped_process_is_no_hang(check: Check) -> None:
    training = check.training
    check.begin()
    kill(training.pids()[1], signal.SIGSTOP)
    with no_hang(), pytest.raises(ReplicaStalled):
        training.run(lambda env, data: len(data), bytes(20_000_000))
    check.go_on()


def test_row_06_asking_a_stopped_process_for_a_value_is_no_hang(check: Check) -> None:
    training = check.training
    check.begin()
    handle = training.run(lambda env: bytes(100_000))
    pid = training.pids()[1]
    kill(pid, signal.SIGSTOP)
    with no_hang(), pytest.raises(ReplicaStalled, match=r"replica 1 is gone .* stopped") as caught:
        handle.value(1)
    assert (caught.value.replica, caught.value.pid) == (1, pid)
    assert len(handle.value(0)) == 100_000
    assert [training.step(number) for number in (2, 3)] == check.fault_free[2:4]


_ROW_07 = (
    r"inside C code that holds Python's lock, called by hold \(test_stalled\.py:\d+\) ← "
    r".*; it was ended"
)


def test_row_07_a_held_interpreter_lock_is_told_from_a_stopped_process(check: Check) -> None:
    def hold(env: ReplicaEnv) -> None:
        if env.rank == 1:
            ctypes.PyDLL(None).sleep(60)

    check.begin()
    with pytest.raises(ReplicaStalled, match=_ROW_07) as caught:
        check.training.step(2, hold)
    assert caught.value.replica == 1
    check.go_on()


def test_row_08_a_slow_replica_is_waited_for(check: Check) -> None:
    def dawdle(env: ReplicaEnv) -> None:
        if env.rank == 1:
            threading.Event().wait(STALL_SECONDS + 0.5)

    check.begin()
    assert check.training.step(2, dawdle) == check.fault_free[2]
    assert check.training.group.generation == 0
    check.go_on(3)
