"""Row 8, with a timeout: a replica that stays away from a collective for longer than its peers were told to wait."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.faults.conftest import Check
from workbench.communicators import CommunicationOptions, Reduction
from workbench.errors import DeadlineExceededError
from workbench.runtime.replica.env import ReplicaEnv

OPTIONS = CommunicationOptions(timeout_seconds=0.1)


def _overdue(check: Check, away: object) -> DeadlineExceededError:
    """The error of a third step, in which replica 1 opens a file instead of reaching the second collective."""
    check.begin()

    def program(env: ReplicaEnv) -> None:
        env.store["weights"] = None
        env.communicator.barrier(site="train.py:4")
        if env.rank == 1:
            while not os.path.exists(f"{away}.never"):
                os.close(os.open(f"{away}", os.O_RDONLY))
        env.communicator.all_reduce([np.ones(3)], Reduction("sum", site="train.py:6", options=OPTIONS))

    with pytest.raises(DeadlineExceededError) as caught:
        check.training.run(program)
    return caught.value


def test_row_08_a_replica_that_misses_a_deadline_is_named_and_stopped(check: Check, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.touch()  # opening it takes no time, and neither does stopping
    pids = check.training.pids()
    error = _overdue(check, away)
    assert (error.replica, error.step, error.pid, error.collective) == (1, 2, pids[1], "all_reduce #2")
    for part in (
        "train.py:6",
        "timeout of 0.1 s",
        "after 0.",
        "waiting for replica 1, which has not come to it",
    ):
        assert part in str(error)
    assert any("replica 1 was at test_overdue.py:" in note for note in error.__notes__)
    check.go_on()
    assert check.training.pids() == pids
    assert check.training.recovered == []


def test_row_08_a_replica_that_misses_a_deadline_in_c_code_holds_up_only_the_next_step(
    check: Check, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    os.mkfifo(away)  # opening it blocks until another process writes
    pids = check.training.pids()
    error = _overdue(check, away)
    assert error.replica == 1
    os.close(os.open(away, os.O_WRONLY))
    check.go_on()
    assert check.training.pids() == pids
    assert check.training.recovered == []
