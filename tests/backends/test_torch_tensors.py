"""Tensors of PyTorch as arrays of CuPy and back, with NumPy in CuPy's place: a device is not needed for the order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.communicators.gpu.replicas import Replicas
from tests.communicators.simulated_gpu import SimArray, SimulatedGpus
from workbench.backends import cupy as gpu
from workbench.backends import torch_tensors
from workbench.communicators import Reduction
from workbench.communicators.gpu.communicator import GpuCommunicator

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: ./wb install torch")


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of what went from PyTorch to "CuPy" or back."""
    shapes: list[tuple[int, ...]] = []

    def seen(take: Any) -> Any:
        return lambda x: shapes.append(tuple(x.shape)) or take(x)

    numpy = SimpleNamespace(
        ndarray=np.ndarray,
        from_dlpack=seen(np.from_dlpack),
        ascontiguousarray=np.ascontiguousarray,
        ravel=np.ravel,
        concatenate=np.concatenate,
    )
    monkeypatch.setattr(gpu, "namespace", lambda: numpy)
    monkeypatch.setattr(torch, "from_dlpack", seen(torch.from_dlpack))
    return shapes


def _flat(described: list[Any], dtype: Any) -> Any:
    return gpu.accelerator.flat(gpu.accelerator.handed_over(described), np.dtype(dtype))


def test_tensors_of_a_collective_are_handed_over_as_one(handed_over: list[tuple[int, ...]]) -> None:
    tensors = [torch.ones(3, 2), torch.arange(4.0), torch.tensor(5.0), torch.ones(2, 5).T]
    described = [gpu.accelerator.described(tensor) for tensor in tensors]

    flat = _flat(described, np.float32)

    assert [(each.dtype, each.shape, each.size, each.nbytes) for each in described[:2]] == [
        (np.float32, (3, 2), 6, 24),
        (np.float32, (4,), 4, 16),
    ]
    assert type(flat) is np.ndarray
    assert handed_over == [(21,)]
    assert flat.tolist() == [x for tensor in tensors for x in tensor.flatten().tolist()]


def test_the_elements_of_a_collective_are_in_the_order_of_their_tensor(
    handed_over: list[tuple[int, ...]],
) -> None:
    across = torch.arange(6).reshape(2, 3).T

    assert _flat([gpu.accelerator.described(across)], np.int64).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "complex64", "bool"])
def test_tensors_of_every_dtype_keep_it(handed_over: list[tuple[int, ...]], kind: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    tensors = [torch.tensor([0, 1]).to(getattr(torch, kind)), torch.tensor([[1]]).to(getattr(torch, kind))]
    described = [gpu.accelerator.described(tensor) for tensor in tensors]

    flat = _flat(described, dtype)

    assert [each.dtype for each in described] == [dtype, dtype]
    assert flat.dtype == dtype
    assert torch.equal(gpu.accelerator.like(flat[:2], tensors[0]), tensors[0])
    assert torch.equal(gpu.accelerator.like(flat[2:].reshape(1, 1), tensors[1]), tensors[1])


def test_a_gradient_is_handed_over_without_its_graph(handed_over: list[tuple[int, ...]]) -> None:
    weight = torch.ones(3, requires_grad=True)

    flat = _flat([gpu.accelerator.described(weight)] * 2, np.float32)

    assert flat.tolist() == [1.0] * 6


def test_tensors_among_arrays_and_of_several_dtypes_go_one_by_one(
    handed_over: list[tuple[int, ...]],
) -> None:
    tensor, array = torch.ones(2), np.ones(3, np.float32)
    mixed = [gpu.accelerator.described(each) for each in (tensor, array)]
    half = gpu.accelerator.described(torch.ones(2, dtype=torch.float16))

    flat = _flat(mixed, np.float32)
    wide = _flat([mixed[0], half], np.float32)

    assert flat.tolist() == [1.0] * 5
    assert wide.dtype == np.float32
    assert wide.tolist() == [1.0] * 4


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("kind", ["bits8", "float8_e5m2", "complex32"])
def test_a_dtype_that_collectives_lack_is_named_with_those_that_they_take(
    handed_over: list[tuple[int, ...]], kind: str
) -> None:
    with pytest.raises(
        TypeError, match=rf"take no tensors of torch\.{kind}, only of bfloat16, bool, complex"
    ):
        gpu.accelerator.described(torch.empty(2, dtype=getattr(torch, kind)))


def test_results_share_neither_a_storage_nor_a_count_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(2, shared=True)

    def like(array: SimArray, original: SimArray) -> Any:
        replicas.gpus.get(array)  # the stream has reached this point
        return torch_tensors.as_tensor(array.data)

    monkeypatch.setattr(replicas.gpus, "like", like)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> tuple[list[float], int, int]:
        given = [gpus.put(np.full(size, 2.0, np.float32), 0) for size in (3, 1000)]
        first, second = c.all_reduce(given, Reduction("sum"))
        weight = torch.ones(3, requires_grad=True)
        loss = (weight * first).sum()
        second.add_(1)
        loss.backward()
        c.finish()
        return weight.grad.tolist(), first.untyped_storage().nbytes(), second._version

    try:
        assert replicas.run(body) == [([4.0] * 3, 12, 1)] * 2
    finally:
        replicas.close()
