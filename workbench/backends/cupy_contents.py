"""Summarises arrays on GPUs, and checks whether they are finite, with kernels of `cuda_source`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends import cuda_source
from workbench.backends import cupy as gpu
from workbench.backends.numpy import can_be_infinite
from workbench.backends.summary import BINS, PARTIAL, Summary, as_counts, merged, spacing

_AT_ONCE = 32


class QueuedChecks:
    """Asynchronous checks for NaN and infinity on a GPU; only `wait` waits for them.

    Each check runs after the work that is already in the current stream, and before later work. For one thread.
    """

    def __init__(self) -> None:
        self._flags = gpu.accelerator.flags.take(_AT_ONCE)
        self._streams: dict[int, Any] = {}
        self._bad: list[int] = []  # arrays that no kernel could check
        self._count = 0

    @property
    def full(self) -> bool:
        """Whether there is no room for another array before `wait`."""
        return self._count == _AT_ONCE

    def add(self, array: Any) -> None:
        """Queues the check of one more array on the current stream."""
        x = gpu.accelerator.view(array)
        if can_be_infinite(x.dtype) and x.size:
            cupy = gpu.namespace()
            # A kernel reads memory of its own device only.
            if self._flags is None or x.device.id != cupy.cuda.Device().id:
                if not np.isfinite(gpu.to_host(x)).all():
                    self._bad.append(self._count)
            else:
                stream = cupy.cuda.get_current_stream()
                self._streams[stream.ptr] = stream
                gpu.accelerator.flag_not_finite(
                    cupy.ascontiguousarray(x).reshape(-1), self._flags.of(self._count)
                )
        self._count += 1

    def found_any(self) -> bool:
        """Whether an array has already been found not to be finite."""
        return bool(self._bad) or (self._flags is not None and bool(self._flags.words.any()))

    def wait(self) -> list[int]:
        """The numbers of the arrays that were not finite, in the order of `add` from 0; the next array is number 0."""
        for stream in self._streams.values():
            stream.synchronize()
        bad = set(self._bad)
        if self._flags is not None:
            bad.update(np.flatnonzero(self._flags.words).tolist())
            self._flags.words[:] = 0
        self._streams.clear()
        self._bad.clear()
        self._count = 0
        return sorted(bad)

    def close(self) -> None:
        """Waits, and frees what the checks used."""
        self.wait()
        if self._flags is not None:
            gpu.accelerator.flags.give_back(self._flags)
            self._flags = None


def finite(arrays: Sequence[Any]) -> list[bool]:
    """Whether each of some GPU arrays is free of NaN and infinity; waits for the current stream."""
    found: list[bool] = []
    checks = QueuedChecks()
    for start in range(0, len(arrays), _AT_ONCE):
        chunk = arrays[start : start + _AT_ONCE]
        for x in chunk:
            checks.add(x)
        bad = checks.wait()
        found += [place not in bad for place in range(len(chunk))]
    checks.close()
    return found


def summary(x: Any) -> Summary:
    """Summarises a GPU array with two kernels, and copies a few kilobytes. See `backends.summary`.

    The digest differs in kind from that of CPU arrays, but equal digests still mean equal arrays.
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
    """The digest of the blocks' partial results.

    Args:
      parts: Partial results of all blocks, with a field "digest" of uint64.
      shape: Shape of the array.
      dtype: Its dtype.
    """
    text = f"{dtype.name}{shape}".encode() + parts["digest"].sum(axis=0, dtype=np.uint64).tobytes()
    return hashlib.sha256(text).hexdigest()
