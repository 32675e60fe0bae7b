"""Values that NCCL alone would get wrong, and arrays that it must not get."""

from __future__ import annotations

import contextlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.communicators.gpu.replicas import Replicas, put, summed
from tests.communicators.simulated_gpu import SimulatedGpus
from workbench.communicators import CommunicationOptions, Reduction
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.communicators.gpu.nccl import NcclOps
from workbench.errors import (
    BackendUnavailable,
    CollectiveAborted,
)


@pytest.mark.parametrize("op", ["min", "max"])
def test_minimum_and_maximum_pass_nans_on(two: Replicas, op: str) -> None:
    inputs = [np.array([np.nan, 1.0, -0.5, np.inf]), np.array([1.0, np.nan, -2.5, -np.inf])]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> list[float]:
        (found,) = c.all_reduce([put(c, gpus, inputs[c.rank])], Reduction(op))
        return [float(x) for x in gpus.get(found)]

    want = getattr(np, f"{op}imum")(*inputs)
    for outcome in two.run(body):
        np.testing.assert_array_equal(outcome, want)


@pytest.mark.parametrize("op", ["prod", "min", "max"])
def test_complex_numbers_are_combined_as_such(two: Replicas, op: str) -> None:
    inputs = [np.array([1 + 2j, 3 - 1j]), np.array([2 - 1j, 3 + 1j])]
    function = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}[op]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        results = [
            c.all_reduce([put(c, gpus, inputs[c.rank])], Reduction(op))[0],
            c.reduce_scatter(put(c, gpus, inputs[c.rank]), op),
        ]
        results.append(c.reduce([put(c, gpus, inputs[c.rank])], op, 1)[0])
        return [None if result is None else gpus.get(result) for result in results]

    for rank, (whole, part, at_root) in enumerate(two.run(body)):
        np.testing.assert_array_equal(whole, function(*inputs))
        np.testing.assert_array_equal(part, function(*inputs)[rank : rank + 1])
        assert (at_root is None) == (rank == 0)


def test_bfloat16_sums_in_float32(shared: Replicas, two: Replicas) -> None:
    array = np.full(4, 256.0, ml_dtypes.bfloat16)
    one = np.ones(4, ml_dtypes.bfloat16)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        (total,) = c.all_reduce([put(c, gpus, array if c.rank == 0 else one)], Reduction("sum"))
        return gpus.get(total)

    for replicas, want in ((shared, 258.0), (two, 256.0)):
        for outcome in replicas.run(body):
            assert outcome.dtype == ml_dtypes.bfloat16
            assert float(outcome[0]) == want  # 256 + 1 + 1: bfloat16 would lose each 1


def test_arrays_of_both_kinds_in_one_structure(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        first, second = c.all_reduce([np.ones(2), put(c, gpus, np.ones(3))], Reduction("sum"))
        return first.tolist() + gpus.get(second).tolist()

    assert two.run(body) == [[2.0] * 5] * 2


def test_a_host_array_is_broadcast_without_the_gpus(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.broadcast(np.arange(3) if c.rank == 0 else None, 0).tolist()

    assert two.run(body) == [[0, 1, 2]] * 2


# -- user errors


def test_two_replicas_on_one_gpu_are_refused_before_nccl_is_asked() -> None:
    replicas = Replicas(2, uuids=["same", "same"])
    outcomes = replicas.run(summed)
    replicas.close()

    assert any(isinstance(outcome, BackendUnavailable) for outcome in outcomes)
    for outcome in outcomes:
        assert "replicas 0 and 1 are both on the Simulated at" in str(outcome)
        assert "gpu_replicas" in str(outcome)


def test_an_array_on_another_gpu_is_refused(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.all_reduce([gpus.put(np.ones(3), 1 - c.rank)], Reduction("sum"))

    for rank, outcome in enumerate(two.run(body)):
        assert type(outcome) is BackendUnavailable
        assert f"replica {rank} runs on GPU {rank} of its worker and got an array on GPU {1 - rank}" in str(
            outcome
        )


def test_nccl_cannot_be_asked_for_on_a_shared_gpu(shared: Replicas) -> None:
    options = CommunicationOptions(implementation="NCCL")  # type: ignore[arg-type]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum", options=options))

    assert all(type(outcome) is BackendUnavailable for outcome in shared.run(body))


# -- strict checks of the simulation, as in the libraries


def test_calls_for_several_gpus_of_a_process_need_a_group(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NcclOps, "_grouped", lambda ops, works: contextlib.nullcontext())

    for outcome in two.run(summed):
        assert isinstance(outcome, CollectiveAborted)
        assert "outside of a group" in str(outcome)
