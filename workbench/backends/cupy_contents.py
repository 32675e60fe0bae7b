"""What is in arrays on GPUs: their summaries, and whether they are finite, by kernels of `cuda_source`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends import cuda_source
from workbench.backends import cupy as gpu
from workbench.backends.numpy import can_be_infinite
from workbench.backends.summary import BINS, PARTIAL, Summary, as_counts, merged, spacing

_ARRAYS_AT_ONCE = 32


def finite(arrays: Sequence[Any]) -> list[bool]:
    """Whether each of some GPU arrays has neither NaN nor infinity in it; waits once for the current stream."""
    cupy = gpu.namespace()
    here = cupy.cuda.Device().id
    found: list[bool] = []
    for start in range(0, len(arrays), _ARRAYS_AT_ONCE):
        chunk = [gpu.accelerator.view(x) for x in arrays[start : start + _ARRAYS_AT_ONCE]]
        taken = gpu.accelerator.flags.take(_ARRAYS_AT_ONCE)
        for place, x in enumerate(chunk):
            if taken is not None and x.size and can_be_infinite(x.dtype) and x.device.id == here:
                gpu.accelerator.flag_not_finite(cupy.ascontiguousarray(x).reshape(-1), taken.of(place))
        cupy.cuda.get_current_stream().synchronize()
        for place, x in enumerate(chunk):
            if taken is None or x.device.id != here:  # a kernel reads memory of its own device only
                found.append(not can_be_infinite(x.dtype) or bool(np.isfinite(gpu.to_host(x)).all()))
            else:
                found.append(not taken.words[place])
        if taken is not None:
            gpu.accelerator.flags.give_back(taken)
    return found


def summary(x: Any) -> Summary:
    """Summarises a GPU array by two kernels; a few kilobytes travel. See `backends.summary`.

    The digest is of another kind than that of CPU arrays: equal digests still mean equal arrays.
    """
    cupy = gpu.namespace()
    values = gpu.accelerator.view(x)
    flat = cupy.ascontiguousarray(values).reshape(-1)
    blocks = max(1, min(1024, -(-flat.size // cuda_source.SUMMARY_BLOCK)))
    partial = cupy.empty(blocks * PARTIAL.itemsize, np.uint8)
    kernel = gpu.compiled(cuda_source.summary(flat.dtype), "summary")
    arguments = (np.uint64(flat.data.ptr), np.uint64(partial.data.ptr), np.int64(flat.size))
    kernel((blocks,), (cuda_source.SUMMARY_BLOCK,), arguments)
    parts = cupy.asnumpy(partial).view(PARTIAL)
    figures = merged(parts)
    return Summary(
        shape=values.shape,
        dtype=flat.dtype.name,
        read=flat.size,
        histogram=_histogram(flat, figures["min"], figures["max"]),
        sha256=digest_of(parts, values.shape, flat.dtype),
        **figures,
    )


def _histogram(flat: Any, low: float, high: float) -> tuple[int, ...]:
    if not low < high:
        return ()
    cupy = gpu.namespace()
    counts, bounds = cupy.zeros(BINS, np.uint64), cupy.asarray(np.array([low, high]))
    every = spacing(flat.size)
    kernel = gpu.compiled(cuda_source.histogram(flat.dtype), "histogram")
    pointers = (np.uint64(array.data.ptr) for array in (flat, bounds, counts))
    kernel(gpu.grid(-(-flat.size // every)), (gpu.BLOCK,), (*pointers, np.int64(flat.size), np.int64(every)))
    return as_counts(cupy.asnumpy(counts))


def digest_of(parts: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> str:
    """The digest that the blocks' partial results come to.

    Args:
      parts: Partial results of all blocks, with a field "digest" of uint64.
      shape: Shape of the array.
      dtype: Its dtype.
    """
    text = f"{dtype.name}{shape}".encode() + parts["digest"].sum(axis=0, dtype=np.uint64).tobytes()
    return hashlib.sha256(text).hexdigest()
