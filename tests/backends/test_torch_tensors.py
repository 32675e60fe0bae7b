"""Tensors of PyTorch as arrays of CuPy and back, with NumPy in CuPy's place: a device is not needed for the order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends import cupy as gpu

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


def test_tensors_of_a_collective_are_handed_over_as_one(handed_over: list[tuple[int, ...]]) -> None:
    tensors = [torch.ones(3, 2), torch.arange(4.0), torch.tensor(5.0), torch.ones(2, 5).T]
    described = [gpu.accelerator.described(tensor) for tensor in tensors]

    flat = gpu.accelerator.flat(described, np.dtype(np.float32))
    parts = gpu.accelerator.parts(flat * 2, [0, 6, 10, 11, 21], tensors)

    assert [(each.dtype, each.shape, each.size, each.nbytes) for each in described[:2]] == [
        (np.float32, (3, 2), 6, 24),
        (np.float32, (4,), 4, 16),
    ]
    assert type(flat) is np.ndarray
    assert handed_over == [(21,), (21,)]
    for tensor, part in zip(tensors, parts, strict=True):
        assert part.dtype == torch.float32
        assert torch.equal(part, 2 * tensor)


def test_the_elements_of_a_collective_are_in_the_order_of_their_tensor(
    handed_over: list[tuple[int, ...]],
) -> None:
    across = torch.arange(6).reshape(2, 3).T

    (described,) = [gpu.accelerator.described(across)]

    assert gpu.accelerator.flat([described], np.dtype(np.int64)).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "complex64", "bool"])
def test_tensors_of_every_dtype_keep_it(handed_over: list[tuple[int, ...]], kind: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    tensors = [torch.tensor([0, 1]).to(getattr(torch, kind)), torch.tensor([[1]]).to(getattr(torch, kind))]
    described = [gpu.accelerator.described(tensor) for tensor in tensors]

    flat = gpu.accelerator.flat(described, dtype)
    parts = gpu.accelerator.parts(flat, [0, 2, 3], tensors)

    assert [each.dtype for each in described] == [dtype, dtype]
    assert flat.dtype == dtype
    assert all(torch.equal(part, tensor) for part, tensor in zip(parts, tensors, strict=True))


def test_a_gradient_is_handed_over_without_its_graph(handed_over: list[tuple[int, ...]]) -> None:
    weight = torch.ones(3, requires_grad=True)

    flat = gpu.accelerator.flat([gpu.accelerator.described(weight)] * 2, np.dtype(np.float32))

    assert flat.tolist() == [1.0] * 6


def test_tensors_among_arrays_and_of_several_dtypes_go_one_by_one(
    handed_over: list[tuple[int, ...]],
) -> None:
    tensor, array = torch.ones(2), np.ones(3, np.float32)
    mixed = [gpu.accelerator.described(each) for each in (tensor, array)]
    half = gpu.accelerator.described(torch.ones(2, dtype=torch.float16))

    flat = gpu.accelerator.flat(mixed, np.dtype(np.float32))
    parts = gpu.accelerator.parts(flat, [0, 2, 5], [tensor, array])
    wide = gpu.accelerator.flat([mixed[0], half], np.dtype(np.float32))

    assert [type(part) for part in parts] == [torch.Tensor, np.ndarray]
    assert flat.tolist() == [1.0] * 5
    assert wide.dtype == np.float32
    assert wide.tolist() == [1.0] * 4
