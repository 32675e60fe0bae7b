"""A replica that does not come to a collective in time fails the step at once, wherever it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import Run, runner
from workbench.communicators import CommunicationOptions, Reduction
from workbench.errors import DeadlineExceededError
from workbench.runtime import Cluster, Group
from workbench.runtime.driver import straggler_deadline
from workbench.runtime.replica.env import ReplicaEnv

HURRY = CommunicationOptions(timeout_seconds=0.05)


def late(delay: Callable[[], Any]) -> Callable[[ReplicaEnv], None]:
    """A program whose replica 1 does something else while replica 0 waits for it."""

    def program(env: ReplicaEnv) -> None:
        env.store["value"] = "of the failed step"
        if env.rank == 1:
            delay()
        env.communicator.all_reduce([np.ones(3)], Reduction("sum", site="train.py:9", options=HURRY))

    return program


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[str]:
    """Opening it to read blocks, and no exception gets in, until `let_go` opens the other end."""
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    yield path
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # releases threads that a failed test has left there


def let_go(fifo: str) -> None:
    """Ends the wait of the replica that reads."""
    os.close(os.open(fifo, os.O_WRONLY))


def held_by(fifo: str) -> Callable[[], None]:
    def delay() -> None:
        os.close(os.open(fifo, os.O_RDONLY))

    return delay


def forever() -> None:
    while True:
        threading.Event().wait(0.001)


def begin(env: ReplicaEnv) -> None:
    """The step before. A worker imports this module for it, which takes longer than replicas wait below."""
    env.store["value"] = env.rank


def fails(run: Run, program: Callable[..., Any]) -> DeadlineExceededError:
    run(begin)
    with pytest.raises(DeadlineExceededError) as caught:
        run(program)
    return caught.value


def works(run: Run) -> None:
    """The failed step has left no trace, and collectives work."""
    assert run(lambda env: env.store["value"]).values() == [0, 1]
    sums = run(lambda env: env.communicator.all_reduce([np.ones(3)], Reduction("sum"))[0][0]).values()
    assert sums == [2.0, 2.0]


def test_a_replica_that_runs_on_is_stopped(any_group: Group, run_any: Run) -> None:
    error = fails(run_any, late(forever))
    text = str(error)
    assert (
        "all_reduce #1 sum float64[3] (train.py:9) of replica 0 exceeded its timeout of 0.05 s: after" in text
    )
    assert "waiting for replica 1, which has not come to it. Look at what replica 1 did instead" in text
    assert (error.replica, error.collective) == (1, "all_reduce #1")
    assert error.worker == any_group.place(1)[0].address
    (place,) = (note for note in error.__notes__ if note.startswith("replica "))
    assert place.startswith("replica 1 was at test_straggler_deadline.py:")
    assert place.endswith("in forever then")
    works(run_any)


def test_a_replica_that_cannot_be_stopped_does_not_hold_up_the_error(
    any_group: Group, run_any: Run, fifo: str
) -> None:
    fails(run_any, late(held_by(fifo)))
    assert any_group.in_flight == 1  # replica 1 still exists
    let_go(fifo)
    works(run_any)
    assert any_group.overdue is None


def test_the_next_step_says_whom_it_waits_for(
    run_any: Run, fifo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails(run_any, late(held_by(fifo)))
    monkeypatch.setattr(straggler_deadline, "_SAY_AFTER_SECONDS", 0.0)
    said = threading.Event()
    show = straggler_deadline.Overdue._say

    def say(self: straggler_deadline.Overdue, ranks: list[int]) -> None:
        show(self, ranks)
        said.set()

    monkeypatch.setattr(straggler_deadline.Overdue, "_say", say)
    releasing = threading.Thread(target=lambda: (said.wait(60), let_go(fifo)))
    releasing.start()
    works(run_any)
    releasing.join(60)
    assert "replica 1 is still in the step that exceeded its timeout" in capsys.readouterr().err


def test_pipelined_steps_raise_the_error_once(any_group: Group, run_any: Run, fifo: str) -> None:
    run_any(begin)

    def program(env: ReplicaEnv, hurried: bool) -> int:
        if hurried:
            late(held_by(fifo))(env)
        return env.rank

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, (False,))
    handles = [any_group.run(prepared, (hurried,), pipelined=True) for hurried in (False, True, False)]
    with pytest.raises(DeadlineExceededError, match="waiting for replica 1"):
        any_group.wait()
    assert handles[0].values() == [0, 1]
    for handle in handles[1:]:
        with pytest.raises(DeadlineExceededError, match="waiting for replica 1"):
            handle.values()
    let_go(fifo)
    any_group.wait()
    works(run_any)


def test_a_late_replica_in_an_earlier_step_is_found_too(any_group: Group, run_any: Run) -> None:
    """Replica 0 is a step ahead."""
    run_any(begin)

    def program(env: ReplicaEnv, what: str) -> int:
        if what == "first" and env.rank == 1:
            forever()
        if what == "second":
            env.communicator.barrier(options=HURRY)
        return env.rank

    prepared = any_group.prepare(program, user_function=program)
    any_group.run(prepared, ("",))
    handles = [any_group.run(prepared, (what,), pipelined=True) for what in ("first", "second")]
    for handle in reversed(handles):
        with pytest.raises(DeadlineExceededError, match="waiting for replica 1"):
            handle.values()
    works(run_any)


def test_a_worker_that_stays_in_the_step_is_replaced(
    cluster: Cluster, fifo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = cluster.group(cluster.devices, label="Test")
    run = runner(group)
    pid = group.place(1)[0].pid
    fails(run, late(held_by(fifo)))
    monkeypatch.setattr(straggler_deadline, "_END_AFTER_SECONDS", 0.0)
    sums = run(lambda env: env.communicator.all_reduce([np.ones(3)], Reduction("sum"))[0][0]).values()
    assert sums == [2.0, 2.0]
    assert group.place(1)[0].pid != pid
    group.close()
