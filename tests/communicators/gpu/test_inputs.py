"""Records say what was not finite in the arrays of GPU replicas as they do for arrays of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.communicators.gpu.replicas import Replicas, put
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.communicators.test_recording import recorded
from tests.telemetry.reading import records
from workbench.backends.flags import FLAG, Flags
from workbench.communicators import Reduction
from workbench.communicators.communicator import Communicator
from workbench.communicators.core.finiteness import FINITE, NOT_FINITE, NOT_READ
from workbench.communicators.gpu import inputs
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.telemetry.records import Record

FLOATS = ["float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128"]
Place = Callable[[Any], Any]
"""Puts an array where a replica computes."""


def on_gpus(replicas: Replicas, body: Callable[[Communicator, Place], Any]) -> list[list[Record]]:
    def run(c: GpuCommunicator, gpus: SimulatedGpus) -> None:
        body(c, lambda array: put(c, gpus, array))
        c.finish()

    for outcome in replicas.run(run):
        assert outcome is None, outcome
    return [records(replicas.rings[rank]) for rank in sorted(replicas.rings)]


def on_cpus(size: int, body: Callable[[Communicator, Place], Any]) -> list[list[Record]]:
    def run(c: Communicator) -> None:
        with np.errstate(all="ignore"):
            body(c, lambda array: array)

    return recorded(size, run)


def told(found: list[list[Record]]) -> list[list[tuple[Any, ...]]]:
    """What a verdict about the first NaN is made of."""
    return [
        [(r.step, r.seq, r.op, r.redop, r.site, r.state, r.inputs) for r in sorted(mine, key=lambda r: r.seq)]
        for mine in found
    ]


def everything(c: Communicator, place: Place, *, dtype: Any, value: Any, at: int) -> None:
    """Each collective once with a bad number on replica `at`, once without; integers between them."""
    for bad in (at, -1):
        mine = np.ones(6, dtype)
        if c.rank == bad:
            mine[4] = value
        for op in ("sum", "mean", "prod"):
            c.all_reduce([place(mine)], Reduction(op, site=f"train.py:{bad + 2}"))
        if np.dtype(dtype).kind != "c":
            c.all_reduce([place(mine)], Reduction("min"))
            c.all_reduce([place(mine)], Reduction("max"))
        c.all_reduce([place(np.ones(3, np.int32)), place(mine)], Reduction("mean"))
        c.reduce([place(mine)], "sum", 1)
        c.reduce_scatter(place(mine), "sum")
        c.all_gather(place(mine.reshape(3, 2)), 0)
        c.broadcast(place(mine) if c.rank == 1 else None, 1)
        c.broadcast(mine if c.rank == 1 else None, 1)
        c.all_reduce([place(np.arange(4))], Reduction("sum"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("replicas", ["two", "shared"])
def test_records_of_gpu_arrays_say_what_those_of_host_arrays_say(
    request: pytest.FixtureRequest, replicas: str, dtype: Any, value: float
) -> None:
    group: Replicas = request.getfixturevalue(replicas)

    def body(c: Communicator, place: Place) -> None:
        everything(c, place, dtype=dtype, value=value, at=1)

    found = told(on_gpus(group, body))
    assert found == told(on_cpus(len(group.rings), body))
    assert {line[-1] for line in found[0]} == {FINITE}
    assert [line[-1] for line in found[1]].count(NOT_FINITE) == (
        10 if np.dtype(dtype).kind == "c" else 12
    ) - 1


@pytest.mark.parametrize("replicas", ["two", "shared"])
def test_a_sum_that_overflows_was_given_finite_numbers(request: pytest.FixtureRequest, replicas: str) -> None:
    largest = np.full(5, np.finfo(np.float32).max)

    def body(c: Communicator, place: Place) -> None:
        c.all_reduce([place(largest)], Reduction("sum"))

    for mine in on_gpus(request.getfixturevalue(replicas), body):
        assert [record.inputs for record in mine] == [FINITE]


def test_words_are_clear_for_the_next_collective(shared: Replicas) -> None:
    shared.gpus.flags = Flags(np.zeros(len(shared.rings), FLAG))

    def body(c: Communicator, place: Place) -> None:
        for step in range(3):
            c.begin(step)
            c.all_reduce([place(np.full(3, np.nan if step == c.rank else 1.0))], Reduction("sum"))
            c.finish()

    for rank, mine in enumerate(on_gpus(shared, body)):
        assert [record.inputs for record in mine] == [
            NOT_FINITE if step == rank else FINITE for step in range(3)
        ]


def test_with_more_collectives_in_flight_than_words_the_rest_is_not_read(shared: Replicas) -> None:
    shared.gpus.flags = Flags(np.zeros(len(shared.rings) - 1, FLAG))

    def body(c: Communicator, place: Place) -> None:
        c.all_reduce([place(np.full(3, np.nan))], Reduction("sum"))

    for mine in on_gpus(shared, body):
        assert [record.inputs for record in mine] == [NOT_READ]


def test_a_kernel_of_its_own_reads_large_arrays_only_while_there_is_time(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "FIRST_NS", 5_000)
    monkeypatch.setattr(inputs, "SHARE", 1 << 62)  # however long this machine takes to reach it
    large = np.full(1 << 19, np.nan)  # 4 MiB take 4,194 ns at the simulation's speed

    def body(c: Communicator, place: Place) -> None:
        for _ in range(2):
            c.all_reduce([place(large)], Reduction("sum"))
        c.all_reduce([place(large[:10])], Reduction("sum"))

    for mine in on_gpus(two, body):
        assert [record.inputs for record in mine] == [NOT_FINITE, NOT_READ, NOT_FINITE]
    assert sorted(two.gpus.reads) == [10, 10, large.size, large.size]


def test_the_fused_kernel_needs_no_time_for_it(shared: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "FIRST_NS", 0)
    monkeypatch.setattr(inputs, "SHARE", 1 << 62)

    def body(c: Communicator, place: Place) -> None:
        c.all_reduce([place(np.full(1 << 19, np.nan if c.rank == 2 else 0.0))], Reduction("max"))

    found = on_gpus(shared, body)
    assert [mine[0].inputs for mine in found] == [FINITE, FINITE, NOT_FINITE]
    assert shared.gpus.reads == []
