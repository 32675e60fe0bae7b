"""Elements kept from the first complete pass."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from workbench.data.blocks.table import one_by_one
from workbench.data.passes import Pass
from workbench.data.sources.memory import read_only
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.structure import Structure
from workbench.data.tables import ArrayTable, Failed, Leaves, ListTable, RangeTable, Run
from workbench.errors import FailedPreconditionError
from workbench.io.storage import storage


@dataclass(slots=True)
class _Memory:
    """What one cache stage has kept in this process; it does not travel with the description."""

    runs: list[Run] | None = None

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        return _Memory, ()


@dataclass(frozen=True, eq=False)
class Cache(Stage):
    """Gives the elements of the first complete pass from then on.

    A pass is complete with its last element, as far as the number of elements is known beforehand, or else with its
    end. One that stops early leaves nothing, nor does one in which an element failed.

    Attributes:
      filename: Prefix of the file to keep them in; "" for memory. A file stays, and wins over a changed
        pipeline.
      memory: What was kept in this process.
      expected: How many elements a pass has, if that is known.
    """

    name: ClassVar[str] = "cache"
    sees_failures: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    filename: str = ""
    memory: _Memory = field(default_factory=_Memory, compare=False)
    expected: int = field(default=UNKNOWN_CARDINALITY, compare=False)

    def unfilled(self) -> Cache:
        """The stage with a memory of its own, for other elements than those that it has kept."""
        return replace(self, memory=_Memory())

    def after(self, pipeline: Pipeline) -> Cache:
        """The stage for a pass over `pipeline`, of which it knows the number of elements."""
        return replace(self, expected=pipeline.cardinality())

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        if not (current.keeps or self._is_kept()):
            current.meter.note("not filled while it is measured")
            yield from upstream()
            return
        if self.filename:
            yield from self._through_file(upstream, current)
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
                    self.memory.runs = runs  # before the element is given: nobody may ask for the end
                yield kept
            if not failed:
                self.memory.runs = runs
        else:
            yield from self.memory.runs

    @property
    def _path(self) -> str:
        return f"{self.filename}.cache.npz"

    def _is_kept(self) -> bool:
        """Whether an earlier pass has filled it."""
        return os.path.exists(self._path) if self.filename else self.memory.runs is not None

    def _through_file(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        path = self._path
        if self._is_kept():
            yield from _loaded(path)
            return
        rows: list[Leaves] = []
        structure: Structure | None = None
        failed = False
        for run in one_by_one(upstream(), current.provenance):
            if isinstance(run, Failed):
                failed = True
                yield run
                continue
            structure = run.table.structure
            rows.extend(run.elements())
            if len(rows) == self.expected and not failed:
                _save(path, rows, structure)
            yield run
        if structure is not None and not failed and len(rows) != self.expected:
            _save(path, rows, structure)

    def describe(self) -> str:
        """The stage as a short text."""
        return "cache(file)" if self.filename else "cache"

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return upstream.cardinality()


def _kept(run: Run, provenance: bool) -> Run:
    """The run with its elements made; read-only, since every epoch gets the same ones."""
    ids = [run.table.ids(range(row, row + 1)) for row in run.indices()] if provenance else None
    rows = [[read_only(leaf) for leaf in leaves] for leaves in run.elements()]
    return Run(ListTable(rows, run.table.structure, ids), range(len(run)))


def _save(path: str, rows: list[Leaves], structure: Structure) -> None:
    """Writes beside the target and renames, so that a half-written cache is never found."""
    if structure.pack([0] * len(rows[0])) not in (0, (0,) * len(rows[0])):
        raise FailedPreconditionError(
            f"cache({path!r}): a file can hold single arrays and plain tuples, not {structure.spec}; "
            "cache in memory, or map to a tuple"
        )
    arrays: dict[str, Any] = {}
    for index, leaves in enumerate(rows):
        for component, leaf in enumerate(leaves):
            name = f"{index}.{component}"
            if isinstance(leaf, bytes):
                arrays[name + ".bytes"] = np.frombuffer(leaf, np.uint8)
            else:
                arrays[name] = np.asarray(leaf)
    tuples = not isinstance(structure.pack([0] * len(rows[0])), int)
    arrays["shape"] = np.array([len(rows), len(rows[0]), tuples])
    folder = os.path.dirname(path) or "."
    descriptor, beside = tempfile.mkstemp(".tmp", dir=folder)
    try:
        with storage(path), open(descriptor, "wb") as file:
            np.savez(file, **arrays)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _loaded(path: str) -> Iterator[Run]:
    from workbench.data.structure import flatten

    with np.load(path, allow_pickle=False) as arrays:  # a data file must never be able to run code
        count, components, tuples = arrays["shape"].tolist()
        structure = flatten((0,) * components if tuples else 0)[1]
        for index in range(count):
            leaves: Leaves = []
            for component in range(components):
                name = f"{index}.{component}"
                leaves.append(arrays[name][()] if name in arrays else arrays[name + ".bytes"].tobytes())
            yield Run(ListTable([leaves], structure), range(1))
