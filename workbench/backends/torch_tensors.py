"""Converts PyTorch tensors on a GPU to CuPy arrays and back, without a copy to the host.

Each conversion takes microseconds in both libraries, whatever the size, so the tensors of a collective go to CuPy
together. They come back one by one, because views of one tensor share its storage, which `torch.save` writes, and its
version counter, which `backward` checks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.backends.numpy import dtype_named


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor that is converted later, together with others.

    Attributes:
      tensor: The tensor.
      dtype: Its dtype in NumPy.
      shape: Its shape.
      size: Number of its elements.
      nbytes: Its size in bytes.
    """

    tensor: Any
    dtype: np.dtype
    shape: tuple[int, ...]
    size: int
    nbytes: int


def is_tensor(x: Any) -> bool:
    """Whether `x` is a PyTorch tensor; imports nothing."""
    return type(x).__module__.partition(".")[0] == "torch"


def described(tensor: Any, takes: frozenset[str]) -> Described:
    """The tensor's description, for planning a collective that supports the dtypes `takes`.

    Raises:
      TypeError: if the tensor's dtype is not one of them.
    """
    dtype, size = _dtype(tensor.dtype, takes), tensor.numel()
    return Described(tensor, dtype, tuple(tensor.shape), size, size * dtype.itemsize)


def joined(arrays: Sequence[Any]) -> Sequence[Any]:
    """Several tensors of one dtype, concatenated; anything else unchanged."""
    described = [each for each in arrays if type(each) is Described]
    if len(arrays) == 1 or len(described) < len(arrays) or len({each.dtype for each in described}) > 1:
        return [each.tensor if type(each) is Described else each for each in arrays]
    torch: Any = sys.modules["torch"]
    return [torch.cat([each.tensor.detach().reshape(-1) for each in described])]


def as_array(tensor: Any, cupy: Any) -> Any:
    """A tensor as a CuPy array, detached from gradients."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if str(tensor.dtype) == "torch.bfloat16":
        return cupy.from_dlpack(tensor.view(sys.modules["torch"].int16)).view(dtype_named("bfloat16"))
    return cupy.from_dlpack(tensor)


def as_tensor(array: Any) -> Any:
    """A CuPy array as a tensor."""
    torch: Any = sys.modules["torch"]
    if array.dtype.name == "bfloat16":
        return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_dlpack(array)


@lru_cache(maxsize=64)
def _dtype(dtype: Any, takes: frozenset[str]) -> np.dtype:
    name = str(dtype).removeprefix("torch.")
    if name not in takes:
        raise TypeError(
            f"collectives on a GPU take no tensors of {dtype}, only of {', '.join(sorted(takes))}: convert them first"
        )
    return dtype_named(name)
