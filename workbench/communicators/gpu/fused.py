"""Several replicas of one process on one GPU: one kernel reads all buffers and writes all results.

This mode is for correctness and teaching: the replicas share one GPU's time and memory, so nothing gets faster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.backends.accelerator import Accelerator
from workbench.communicators.gpu.work import Work

_BYTE = np.dtype(np.uint8)


class SharedGpuOps:
    """`GpuOps` for groups with all replicas in this process and on one GPU; also for a single replica."""

    name = "fused"

    def __init__(self, accelerator: Accelerator, ordinal: int) -> None:
        self._gpu = accelerator
        self._ordinal = ordinal

    def all_reduce(self, op: str, works: Sequence[Work]) -> None:
        """Runs the fused kernel: it reads every source once and writes every target once."""
        for position in range(len(works[0].sources)):
            self._combine(op, works, position, [work.targets[position] for work in works])

    def reduce(self, op: str, works: Sequence[Work], root: int) -> None:
        """Runs the fused kernel with one target."""
        for position in range(len(works[0].sources)):
            self._combine(op, works, position, [works[root].targets[position]])

    def reduce_scatter(self, op: str, works: Sequence[Work], bounds: Sequence[int]) -> None:
        """Runs one kernel per replica, on its part of all sources."""
        mean_over = len(works) if op == "mean" else 0
        with self._gpu.on(self._ordinal, works[0].stream):
            for work in works:
                part = slice(bounds[work.rank], bounds[work.rank + 1])
                self._gpu.combine(
                    op,
                    [other.sources[0][part] for other in works],
                    work.targets,
                    mean_over=mean_over,
                    flags=works[0].flag,
                )

    def all_gather(self, works: Sequence[Work], counts: Sequence[int]) -> None:
        """Copies the sources."""
        with self._gpu.on(self._ordinal, works[0].stream):
            for work in works:
                at = 0
                for other in works:
                    part = work.targets[0][at : at + counts[other.rank]]
                    self._gpu.copy(other.sources[0].view(_BYTE), part)
                    at += counts[other.rank]

    def broadcast(self, works: Sequence[Work], root: int) -> None:
        """Copies the sources."""
        with self._gpu.on(self._ordinal, works[0].stream):
            for work in works:
                self._gpu.copy(works[root].sources[0].view(_BYTE), work.targets[0])

    def abort(self) -> None:
        """Does nothing, because nothing here waits for peers."""

    def error(self) -> str:
        """Always "", because nothing runs in the background."""
        return ""

    def close(self) -> None:
        """Does nothing, because there is nothing to free."""

    def _combine(self, op: str, works: Sequence[Work], position: int, targets: Sequence[object]) -> None:
        mean_over = len(works) if op == "mean" else 0
        with self._gpu.on(self._ordinal, works[0].stream):
            sources = [work.sources[position] for work in works]
            self._gpu.combine(op, sources, targets, mean_over=mean_over, flags=works[0].flag)
