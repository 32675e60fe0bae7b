"""Rows 9-14, 16, 41, 42: what user code does wrong. The cluster and all earlier state stay as they were."""

from __future__ import annotations

import socket
import threading
from typing import Any

import numpy as np
import pytest

from tests.faults.conftest import Check, no_hang
from workbench.communicators import Reduction
from workbench.errors import CaptureError, CollectiveMismatch, ReplicaError
from workbench.runtime.replica.env import ReplicaEnv


def _failing(check: Check, kind: type[BaseException], program: Any, *, match: str | None = None) -> Any:
    """The error of a third step, which must leave the training unchanged."""
    check.begin()
    with no_hang(), pytest.raises(kind, match=match) as caught:
        check.training.run(program)
    pids = check.training.pids()
    check.go_on()
    assert check.training.pids() == pids
    assert check.training.recovered == []
    return caught.value


def test_row_09_one_replica_raises_while_others_wait(check: Check) -> None:
    def program(env: ReplicaEnv) -> None:
        env.store["weights"] = None
        if env.rank == 1:
            raise LookupError("the cause")
        env.communicator.barrier(site="train.py:1")

    error = _failing(check, LookupError, program, match="the cause")
    assert isinstance(error, ReplicaError)
    assert (error.replica, error.step) == (1, 2)
    assert 'raise LookupError("the cause")' in str(error)


def test_row_10_all_replicas_raise_differently(check: Check) -> None:
    def program(env: ReplicaEnv) -> None:
        raise (KeyError, OSError)[env.rank](f"of replica {env.rank}")

    first, second = _failing(check, ExceptionGroup, program).exceptions
    assert (first.replica, second.replica) == (0, 1)
    assert isinstance(first, KeyError)
    assert isinstance(second, OSError)


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Peculiar(Exception):
    def __init__(self, first: int, second: int) -> None:  # unpickling passes it one argument
        super().__init__(f"{first} and {second}")


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: Unpicklable("readable"), "Unpicklable on replica 1, step 2: readable"),
        (lambda: Mute(), "Mute on replica 1, step 2: <its __str__ raised RuntimeError>"),
        (lambda: Peculiar(1, 2), "Peculiar on replica 1, step 2: 1 and 2"),
        (lambda: ValueError("x" * 100_000_000), "100,000,000 characters"),
    ],
)
def test_row_11_exceptions_that_cannot_travel_keep_their_type(check: Check, make: Any, shown: str) -> None:
    def program(env: ReplicaEnv) -> None:
        if env.rank == 1:
            raise make()

    error = _failing(check, type(make()), program)
    assert isinstance(error, ReplicaError)
    assert shown in str(error)
    assert "raise make()" in str(error)
    assert len(str(error)) < 30_000


def test_row_12_different_kinds_of_collective(check: Check) -> None:
    def program(env: ReplicaEnv) -> None:
        if env.rank:
            env.communicator.broadcast(np.ones(3), 0, site="train.py:2")
        else:
            env.communicator.all_reduce([np.ones(3)], Reduction("sum", site="train.py:1"))

    error = _failing(check, CollectiveMismatch, program)
    for part in ("replica 0", "replica 1", "all_reduce", "broadcast", "train.py:1", "train.py:2"):
        assert part in str(error)


def test_row_12_different_order_of_collectives(check: Check) -> None:
    def program(env: ReplicaEnv) -> None:
        for op in ("sum", "max") if env.rank else ("max", "sum"):
            env.communicator.all_reduce([np.ones(3)], Reduction(op, site=f"train.py:{op}"))

    error = _failing(check, CollectiveMismatch, program)
    assert "train.py:sum" in str(error)
    assert "train.py:max" in str(error)


@pytest.mark.parametrize(
    ("shape", "dtype", "redop", "nesting", "count"),
    [
        ((4,), "float32", "sum", "", 1),
        ((3,), "float64", "sum", "", 1),
        ((3,), "float32", "mean", "", 1),
        ((3,), "float32", "sum", "other", 1),
        ((3,), "float32", "sum", "", 2),
        ((1, 3), "float32", "sum", "", 1),
    ],
)
def test_row_13_different_contents(
    check: Check, shape: tuple[int, ...], dtype: str, redop: str, nesting: str, count: int
) -> None:
    def program(env: ReplicaEnv) -> None:
        if env.rank:
            arrays = [np.ones(shape, dtype)] * count
            env.communicator.all_reduce(arrays, Reduction(redop, site="train.py:1", nesting=nesting))
        else:
            env.communicator.all_reduce([np.ones(3, np.float32)], Reduction("sum", site="train.py:1"))

    error = _failing(check, CollectiveMismatch, program)
    assert "they differ in" in str(error)


def test_row_14_a_replica_returns_early(check: Check) -> None:
    def program(env: ReplicaEnv) -> None:
        for i in range(3):
            env.communicator.all_reduce([np.ones(3)], Reduction("sum", site=f"train.py:{i}"))
        if env.rank:
            return
        env.communicator.all_reduce([np.ones(3)], Reduction("sum", site="train.py:9"))

    error = _failing(check, CollectiveMismatch, program)
    assert "replica 1 finished the step after 3 collectives, replica 0 waits in all_reduce #4" in str(error)
    assert "train.py:9" in str(error)


def test_row_16_what_is_not_finite_is_found_before_it_spreads(check: Check) -> None:
    """The check that a program makes itself; strategies offer it ready made."""

    def program(env: ReplicaEnv) -> None:
        value = np.full(3, np.nan if env.rank else 1.0)
        if not np.isfinite(value).all():
            raise FloatingPointError("value is not finite")
        env.communicator.all_reduce([value], Reduction("sum"))

    error = _failing(check, FloatingPointError, program, match="replica 1")
    assert (error.replica, error.step) == (1, 2)


@pytest.mark.parametrize("make", [threading.Lock, socket.socket, lambda: (i for i in ())])
def test_row_41_unpicklable_captures_are_named(check: Check, make: Any) -> None:
    held = make()
    try:
        error = _failing(check, CaptureError, lambda env: held)
    finally:
        if isinstance(held, socket.socket):
            held.close()
    assert "'held'" in str(error)
    assert type(held).__qualname__ in str(error)


def test_row_41_a_captured_client_is_named(check: Check) -> None:
    client = check.training.cluster.client
    assert "'client'" in str(_failing(check, CaptureError, lambda env: client))


def test_row_42_a_large_array_is_refused_by_name_and_size(check: Check) -> None:
    table = np.zeros(25_000_000)
    error = _failing(check, CaptureError, lambda env: table[0])
    assert "'table' of 200 MB" in str(error)
    assert "distribute_values_from_function" in str(error)
