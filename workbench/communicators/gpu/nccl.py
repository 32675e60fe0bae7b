"""Replicas on GPUs of their own, in one process or many: NVIDIA's NCCL moves the data.

NCCL takes raw pointers and checks nothing, so the host link first compares fingerprints, which cover dtypes and sizes;
lifetimes are checked, too. A missing peer blocks NCCL's calls forever; `GpuPlane` watches for that from outside.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.backends.accelerator import Accelerator
from workbench.backends.numpy import accumulator
from workbench.communicators.gpu.work import Work

_TYPES = {
    **{name: name.upper() for name in ("int8", "int32", "int64", "uint8", "uint32", "uint64")},
    **{name: name.upper() for name in ("float32", "float64")},
    "bool": "UINT8",
    "complex64": "FLOAT32",
    "complex128": "FLOAT64",
}
_WIDENED = {"int16": np.dtype(np.int32), "uint16": np.dtype(np.uint32)}
_OPS = {"sum": "SUM", "mean": "SUM", "min": "MIN", "max": "MAX", "prod": "PROD"}
_BOOL_OPS = {"sum": "MAX", "max": "MAX", "min": "MIN", "prod": "MIN"}  # MAX is logical or, MIN is logical and
_FLUSH_SECONDS = 2.0
"""How long closing waits for NCCL to send data to peers that still wait for it."""


def wire_dtype(dtype: np.dtype, op: str) -> np.dtype:
    """The dtype in which NCCL combines arrays of `dtype`: float16 and bfloat16 in float32, int16 in int32."""
    wide = accumulator(dtype, op).newbyteorder("=")
    return _WIDENED.get(wide.name, wide)


@dataclass(frozen=True, slots=True)
class _Wire:
    """How NCCL sees arrays of a dtype: its numbers for dtype and reduction, and its elements per array element."""

    dtype: int
    op: int
    factor: int


class NcclOps:
    """`GpuOps` over NCCL. NCCL's ranks follow hosts and PCI addresses; all other ranks are the strategy's.

    `_ending` guards the end of the communicators: it frees their memory, so it happens once, and never while another
    thread reads their errors. Threads that queue work do not take the lock, because one that is stuck in NCCL must
    not prevent the abort that frees it.
    """

    name = "nccl"

    def __init__(
        self,
        accelerator: Accelerator,
        communicators: Mapping[int, Any],
        ordinals: Mapping[int, int],
        *,
        order: Sequence[int],
    ) -> None:
        """`order` maps NCCL's ranks to the strategy's ranks."""
        self._gpu = accelerator
        self._nccl = accelerator.nccl
        self._communicators = dict(communicators)
        self._ordinals = dict(ordinals)
        self._order = tuple(order)
        self._place = {rank: place for place, rank in enumerate(order)}
        self._size = len(order)
        self._ending = threading.Lock()
        self._ended = False

    def all_reduce(self, op: str, works: Sequence[Work]) -> None:
        """`ncclAllReduce`, in one group of calls per pack, for all local replicas."""
        for position in range(len(works[0].sources)):
            dtype, count = works[0].sources[position].dtype, works[0].sources[position].size
            if count == 0:
                continue
            if _needs_gather(op, dtype):
                self._gather_and_combine(op, works, position, works)
                continue
            wire = self._wire(op, dtype)
            with self._prepared(op, works, position) as sources, self._grouped(works):
                for work, source in zip(works, sources, strict=True):
                    self._communicators[work.rank].allReduce(
                        self._gpu.pointer(source),
                        self._gpu.pointer(work.targets[position]),
                        count * wire.factor,
                        wire.dtype,
                        wire.op,
                        self._gpu.stream_pointer(work.stream),
                    )
            self._restore(op, works, position)

    def reduce(self, op: str, works: Sequence[Work], root: int) -> None:
        """`ncclReduce`."""
        at_root = [work for work in works if work.rank == root]
        for position in range(len(works[0].sources)):
            dtype, count = works[0].sources[position].dtype, works[0].sources[position].size
            if count == 0:
                continue
            if _needs_gather(op, dtype):
                self._gather_and_combine(op, works, position, at_root)
                continue
            with self._prepared(op, works, position) as sources, self._grouped(works):
                for work, source in zip(works, sources, strict=True):
                    target = work.targets[position] if work.rank == root else source
                    self._reduce_part(op, dtype, work, source, slice(0, count), target=target, root=root)
            self._restore(op, at_root, position)

    def reduce_scatter(self, op: str, works: Sequence[Work], bounds: Sequence[int]) -> None:
        """`ncclReduceScatter` if all parts have one size, else a group with one `ncclReduce` per part."""
        dtype = works[0].sources[0].dtype
        if bounds[-1] == 0:
            return
        if _needs_gather(op, dtype):
            whole = [self._with_scratch(work, work.sources[0].size, dtype) for work in works]
            self._gather_and_combine(op, whole, 0, whole)
            for work, full in zip(works, whole, strict=True):
                with self._gpu.on(self._ordinals[work.rank], work.stream):
                    part = full.targets[0][bounds[work.rank] : bounds[work.rank + 1]]
                    self._gpu.copy(part, work.targets[0])
                work.temporary += [*full.targets, *full.temporary]
            return
        sizes = {high - low for low, high in pairwise(bounds)}
        in_order = self._order == tuple(range(self._size))
        wire = self._wire(op, dtype)
        with self._prepared(op, works, 0) as sources, self._grouped(works):
            for work, source in zip(works, sources, strict=True):
                if len(sizes) == 1 and in_order:
                    self._communicators[work.rank].reduceScatter(
                        self._gpu.pointer(source),
                        self._gpu.pointer(work.targets[0]),
                        work.targets[0].size * wire.factor,
                        wire.dtype,
                        wire.op,
                        self._gpu.stream_pointer(work.stream),
                    )
                    continue
                for root in range(self._size):
                    part = slice(bounds[root], bounds[root + 1])
                    target = work.targets[0] if root == work.rank else source[part]
                    self._reduce_part(op, dtype, work, source, part, target=target, root=root)
        self._restore(op, works, 0)

    def all_gather(self, works: Sequence[Work], counts: Sequence[int]) -> None:
        """`ncclAllGather`, or a group of broadcasts if sizes differ. Elements are single bytes."""
        if not any(counts):
            return
        even = len(set(counts)) == 1 and self._order == tuple(range(self._size))
        byte = self._nccl_constant("UINT8")
        starts = np.cumsum([0, *counts]).tolist()
        with self._grouped(works):
            for work in works:
                communicator = self._communicators[work.rank]
                stream = self._gpu.stream_pointer(work.stream)
                source = self._gpu.pointer(work.sources[0])
                target = self._gpu.pointer(work.targets[0])
                if even:
                    communicator.allGather(source, target, counts[0], byte, stream)
                    continue
                for root in range(self._size):
                    if counts[root]:
                        sent = source if root == work.rank else target + starts[root]
                        communicator.broadcast(
                            sent, target + starts[root], counts[root], byte, self._place[root], stream
                        )

    def broadcast(self, works: Sequence[Work], root: int) -> None:
        """`ncclBroadcast` of bytes."""
        if works[0].targets[0].size == 0:
            return
        byte = self._nccl_constant("UINT8")
        with self._grouped(works):
            for work in works:
                target = self._gpu.pointer(work.targets[0])
                source = self._gpu.pointer(work.sources[0]) if work.rank == root else target
                self._communicators[work.rank].broadcast(
                    source,
                    target,
                    work.targets[0].size,
                    byte,
                    self._place[root],
                    self._gpu.stream_pointer(work.stream),
                )

    def abort(self) -> None:
        """`ncclCommAbort`: streams that wait for a peer continue, with garbage. Happens once for all callers."""
        if self._ends():
            for communicator in self._communicators.values():
                communicator.abort()

    def error(self) -> str:
        """`ncclCommGetAsyncError` of every local communicator."""
        with self._ending:  # a concurrent abort would free what this reads
            if self._ended:
                return ""
            for rank, communicator in self._communicators.items():
                try:
                    communicator.check_async_error()
                except Exception as error:  # the class is the library's, which this file does not import
                    return f"NCCL reports at replica {rank}: {error}"
        return ""

    def close(self) -> None:
        """`ncclCommDestroy`, which first sends the data that peers on other hosts still wait for.

        It blocks when a peer is gone, and ranks of one host wait for each other in it, so each communicator has its own
        thread. If it takes long, that thread is left to finish it, because nothing may abort a communicator while it is
        being destroyed.
        """
        if not self._ends():
            return
        threads = [
            threading.Thread(target=self._destroy, args=(rank,), name="workbench-gpu-close", daemon=True)
            for rank in self._communicators
        ]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + _FLUSH_SECONDS
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))

    def _destroy(self, rank: int) -> None:
        # The group is closed, so nothing could use an error of NCCL's.
        with contextlib.suppress(Exception), self._gpu.on(self._ordinals[rank]):
            self._communicators[rank].destroy()

    def _ends(self) -> bool:
        """Whether the calling thread is the one that frees the communicators."""
        with self._ending:
            first, self._ended = not self._ended, True
        return first

    # -- one collective ----------------------------------------------------------------------------------------

    def _reduce_part(
        self, op: str, dtype: np.dtype, work: Work, source: Any, part: slice, *, target: Any, root: int
    ) -> None:
        wire = self._wire(op, dtype)
        count = part.stop - part.start
        if count:
            self._communicators[work.rank].reduce(
                self._gpu.pointer(source[part]),
                self._gpu.pointer(target),
                count * wire.factor,
                wire.dtype,
                wire.op,
                self._place[root],
                self._gpu.stream_pointer(work.stream),
            )

    @contextmanager
    def _prepared(self, op: str, works: Sequence[Work], position: int) -> Iterator[list[Any]]:
        """Converts the sources for NCCL. For min and max, floats become integers, which keeps NaNs."""
        sources = [work.sources[position] for work in works]
        if _is_ordered(op, sources[0].dtype):
            for index, work in enumerate(works):
                with self._gpu.on(self._ordinals[work.rank], work.stream):
                    sources[index] = self._gpu.ordered(sources[index], op)
                work.temporary.append(sources[index])
        yield sources

    def _restore(self, op: str, works: Sequence[Work], position: int) -> None:
        for work in works:
            target = work.targets[position]
            with self._gpu.on(self._ordinals[work.rank], work.stream):
                if _is_ordered(op, target.dtype):
                    self._gpu.unordered(target, op)
                elif op == "mean":
                    self._gpu.divide(target, self._size)

    def _gather_and_combine(
        self, op: str, works: Sequence[Work], position: int, receivers: Sequence[Work]
    ) -> None:
        """For dtypes that NCCL cannot combine: each replica gathers all parts and combines them in rank order."""
        dtype = works[0].sources[position].dtype
        count = works[0].sources[position].size
        nbytes = count * dtype.itemsize
        gathering = []
        for work in works:
            with self._gpu.on(self._ordinals[work.rank], work.stream):
                everything = self._gpu.empty(self._size * count, dtype)
            work.temporary.append(everything)
            gathering.append(self._bytes_of(work, work.sources[position], everything))
        self.all_gather(gathering, [nbytes] * self._size)
        for work in receivers:
            everything = next(other.temporary[-1] for other in works if other.rank == work.rank)
            parts = [everything[rank * count : (rank + 1) * count] for rank in range(self._size)]
            with self._gpu.on(self._ordinals[work.rank], work.stream):
                self._gpu.combine(op, parts, [work.targets[position]])

    def _bytes_of(self, work: Work, source: Any, target: Any) -> Work:
        byte = np.dtype(np.uint8)
        return Work(
            work.rank, work.call, work.step, work.seq, work.enter_ns, work.ready,
            [source.view(byte)], [target.view(byte)], work.stream,
        )  # fmt: skip

    def _with_scratch(self, work: Work, count: int, dtype: np.dtype) -> Work:
        with self._gpu.on(self._ordinals[work.rank], work.stream):
            scratch = self._gpu.empty(count, dtype)
        return Work(
            work.rank, work.call, work.step, work.seq, work.enter_ns, work.ready,
            work.sources, [scratch], work.stream,
        )  # fmt: skip

    @contextmanager
    def _grouped(self, works: Sequence[Work]) -> Iterator[None]:
        """Starts calls for several devices or roots together; otherwise the first may wait for the second."""
        with group(self._nccl, self._gpu.on(self._ordinals[works[0].rank])):
            yield

    def _wire(self, op: str, dtype: np.dtype) -> _Wire:
        sent = np.dtype(f"i{dtype.itemsize}") if _is_ordered(op, dtype) else dtype
        reduction = _BOOL_OPS[op] if dtype.kind == "b" else _OPS[op]
        return _Wire(
            self._nccl_constant(_TYPES[sent.name]),
            self._nccl_constant(reduction),
            2 if dtype.kind == "c" else 1,
        )

    def _nccl_constant(self, name: str) -> int:
        return int(getattr(self._nccl, f"NCCL_{name}"))


def _is_ordered(op: str, dtype: np.dtype) -> bool:
    return op in ("min", "max") and dtype.kind == "f"


def _needs_gather(op: str, dtype: np.dtype) -> bool:
    return dtype.kind == "c" and op not in ("sum", "mean")


@contextmanager
def group(nccl: Any, device: contextlib.AbstractContextManager[None]) -> Iterator[None]:
    """A group of calls, ended on `device` even if a call fails, because work in an open group never starts."""
    nccl.groupStart()
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception), device:  # the call's own error says more
            nccl.groupEnd()
        raise
    with device:
        nccl.groupEnd()
