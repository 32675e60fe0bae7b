"""Elements kept in memory from the first complete pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from workbench.data.blocks.table import one_by_one
from workbench.data.passes import Pass
from workbench.data.sources.memory import read_only
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import ArrayTable, Failed, ListTable, RangeTable, Run


@dataclass(slots=True)
class _Memory:
    """What one cache stage holds in this process; it is not pickled with the stage."""

    runs: list[Run] | None = None

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        return _Memory, ()


@dataclass(frozen=True, eq=False)
class Cache(Stage):
    """Keeps the elements of the first complete pass, and yields them in later ones.

    A pass is complete with its last element if the number of elements is known beforehand, and otherwise with its end.
    A pass that stops early, or in which an element failed, stores nothing.

    Attributes:
      memory: The elements kept in this process.
      expected: How many elements a pass has, if known.
    """

    name: ClassVar[str] = "cache"
    sees_failures: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    keeps_elements: ClassVar[bool] = True
    memory: _Memory = field(default_factory=_Memory, compare=False)
    expected: int = field(default=UNKNOWN_CARDINALITY, compare=False)

    def unfilled(self) -> Cache:
        """The stage with an empty memory, for elements other than those it has kept."""
        return replace(self, memory=_Memory())

    def after(self, pipeline: Pipeline) -> Cache:
        """The stage for a pass over `pipeline`, with the number of its elements."""
        return replace(self, expected=pipeline.cardinality())

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if not current.keeps and self.memory.runs is None:
            current.meter.note("not filled while it is measured")
            yield from upstream()
            return
        if self.memory.runs is None:
            runs = []
            count = 0
            failed = False
            for run in one_by_one(upstream(), current.provenance):
                if isinstance(run, Failed):
                    failed = True
                    yield run
                    continue
                kept = (
                    run if isinstance(run.table, ArrayTable | RangeTable) else _kept(run, current.provenance)
                )
                runs.append(kept)
                count += len(kept)
                if count == self.expected and not failed:
                    # Before yielding the last element, because the reader may not ask for the end.
                    self.memory.runs = runs
                yield kept
            if not failed:
                self.memory.runs = runs
        else:
            yield from self.memory.runs

    def describe(self) -> str:
        """The stage as a short text."""
        return "cache"

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return upstream.cardinality()


def _kept(run: Run, provenance: bool) -> Run:
    """The run with its elements made; read-only, because every epoch gets the same arrays."""
    ids = [run.table.ids(range(row, row + 1)) for row in run.indices()] if provenance else None
    rows = [[read_only(leaf) for leaf in leaves] for leaves in run.elements()]
    return Run(ListTable(rows, run.table.structure, ids), range(len(run)))
