"""Batches of consecutive elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench import tree
from workbench.data.background.parallel_calls import ParallelCalls
from workbench.data.blocks.table import is_block
from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.grouping.batches import BatchTable, Joined, SegmentTable
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Leaves, Run, Segment, Task
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True)
class Batch(Stage):
    """Stacks `batch_size` elements into one.

    Attributes:
      batch_size: Elements per batch.
      drop_remainder: Whether a smaller last batch is dropped, which makes the batch dimension known.
      num_parallel_calls: How many batches are assembled at a time, AUTOTUNE to measure it; 0 to assemble each on
        request.
      deterministic: Whether batches assembled in parallel keep their order; None for what the options say.
    """

    name: ClassVar[str] = "batch"
    sees_failures: ClassVar[bool] = True
    batch_size: int
    drop_remainder: bool = False
    num_parallel_calls: int = 0
    deterministic: bool | None = None

    @staticmethod
    def of(batch_size: int, drop_remainder: bool) -> Batch:
        """Checks the arguments.

        Raises:
          InvalidArgumentError: if a batch would be empty.
        """
        if batch_size < 1:
            raise InvalidArgumentError(f"batch: batch_size is {batch_size}, it must be at least 1")
        return Batch(int(batch_size), drop_remainder)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`; a batch fails with any of its elements."""
        batches = self._batches(upstream)
        if not self.num_parallel_calls:
            return batches
        calls = ParallelCalls(
            None,
            _gathered,
            self.text,
            current.options,
            current.arrival(self.deterministic),
            current.most_waiting_bytes,
            current.meter,
        )
        return calls.run(_tasks(batches, current.provenance), self.num_parallel_calls)

    def keeps_order(self, options: Options) -> bool:
        """Whether batches come in the order of their elements."""
        return not self.num_parallel_calls or options.keeps_order(self.deterministic)

    def _batches(self, upstream: Opener) -> Iterator[Run]:
        size = self.batch_size
        pending: list[Segment] = []
        missing = size
        for run in upstream():
            if isinstance(run, Failed):
                pending, missing = [], size
                yield run
                continue
            start = 0
            if pending:
                start = min(missing, len(run))
                pending.append(run if start == len(run) else Run(run.table, run.rows[:start]))
                missing -= start
                if missing:
                    continue
                yield _batch(pending, run)
                pending, missing = [], size
            full = (len(run) - start) // size * size
            ready = Run(run.table, run.rows[start : start + full])
            if full and is_block(run):
                # Yielded one by one, as if their elements had been made singly: the read-ahead thread assembles them.
                for first in range(0, full, size):
                    yield _batch([Run(ready.table, ready.rows[first : first + size])], run)
            elif full:
                yield Run(BatchTable(ready, size), range(full // size))
            if start + full < len(run):
                pending = [Run(run.table, run.rows[start + full :])]
                missing = size - len(pending[0])
        if pending and not self.drop_remainder:
            last = pending[-1]
            assert isinstance(last, Run)
            yield _batch(pending, last)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        size = self.batch_size if self.drop_remainder else None
        return tree.map(lambda spec: spec.batched(size), upstream.element_spec)

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if known < 0:
            return known
        return known // self.batch_size if self.drop_remainder else -(-known // self.batch_size)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"batch({self.batch_size}{', drop_remainder' if self.drop_remainder else ''})"


def _batch(parts: list[Segment], last: Run) -> Run:
    segment = parts[0] if len(parts) == 1 else Joined(parts)
    return Run(SegmentTable([segment], last.table.structure), range(1))


def _tasks(batches: Iterator[Run], provenance: bool) -> Iterator[Task]:
    """Each batch on its own, not yet assembled."""
    number = 0
    for run in batches:
        if isinstance(run, Failed):
            yield run
            continue
        for index in run.indices():
            segment = run.table.segment(index)
            ids = segment.ids() if provenance else None
            yield number, ([segment], run.table.structure, ids)
            number += 1


def _gathered(segments: list[Segment], structure: Structure, number: int) -> tuple[Leaves, Structure]:
    return segments[0].gather(), structure
