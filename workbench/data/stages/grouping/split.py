"""Splitting of global batches among replicas: the two algorithms of the reference, as stages.

`rebatch.py` has the arithmetic; this file applies it to segments, so that only the replica that keeps a piece gathers
it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from workbench import tree
from workbench.arguments import whole_number
from workbench.data.passes import Pass
from workbench.data.rebatch import even_bounds
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.grouping.batches import Joined, SegmentTable
from workbench.data.structure import Structure
from workbench.data.tables import NO_IDS, Failed, Run, Segment, Slab
from workbench.errors import InvalidArgumentError, OutOfRangeError


@dataclass(frozen=True)
class EvenSplit(Stage):
    """Cuts every batch into `pieces` parts of ceil(rows / pieces) rows; the last parts may be short or empty."""

    name: ClassVar[str] = "even_split"
    pieces: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        rows = range(self.pieces)
        for run in upstream():
            table = run.table
            for index in run.indices():
                batch = run.segment(index)
                if isinstance(batch, Failed):
                    yield batch
                    continue
                parts = [batch.cut(start, stop) for start, stop in even_bounds(len(batch), self.pieces)]
                yield Run(SegmentTable(parts, table.structure), rows)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""

        def split(spec: TensorSpec) -> TensorSpec:
            size = first_dimension(spec)
            even = size is not None and size % self.pieces == 0
            return spec.unbatched().batched(size // self.pieces if even and size is not None else None)

        return tree.map(split, upstream.element_spec)

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        return known if known < 0 else known * self.pieces

    def describe(self) -> str:
        """The stage as a short text."""
        return f"even_split({self.pieces})"


@dataclass(frozen=True)
class Regroup(Stage):
    """Regroups the rows of all batches into cyclic `sizes`; a partial last one is kept unless dropped.

    As in the reference, dimensions that are unknown in `specs` are 0 in parts of size 0.
    """

    name: ClassVar[str] = "regroup"
    sizes: tuple[int, ...]
    drop_remainder: bool = False
    specs: tuple[TensorSpec, ...] = field(default=(), compare=False, repr=False)
    """The components' specs, if they are known and a size is 0."""

    @staticmethod
    def of(sizes: int | Sequence[int], drop_remainder: bool) -> Regroup:
        """Checks the arguments of `rebatch`.

        Raises:
          InvalidArgumentError: if a size is negative, or none is positive.
        """
        wanted = tuple(
            whole_number(size, "rebatch: batch_size") for size in np.atleast_1d(np.asarray(sizes)).tolist()
        )
        if not any(wanted) or min(wanted) < 0:
            raise InvalidArgumentError(
                f"rebatch: batches of {sizes} rows; give numbers of at least 0, one of them above"
            )
        return Regroup(wanted, drop_remainder)

    def knowing(self, element_spec: Callable[[], Any]) -> Regroup:
        """The stage with the specs of the batches, if it needs them: finding them may call the user's functions."""
        if all(self.sizes):
            return self
        # It has no elements, or its files are on another machine.
        with contextlib.suppress(OutOfRangeError, OSError):
            return replace(self, specs=tuple(tree.flatten(element_spec())[0]))
        return self

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if not any(self.sizes):
            raise InvalidArgumentError(
                f"regroup: batches of sizes {self.sizes} would never use up a row; give a positive one"
            )
        held: deque[Segment] = deque()
        rows = 0
        last: Segment | None = None
        sizes = itertools.cycle(self.sizes)
        size = next(sizes)
        structure: Structure | None = None
        for run in upstream():
            structure = run.table.structure
            for index in run.indices():
                batch = run.segment(index)
                if isinstance(batch, Failed):
                    yield batch
                    continue
                if not len(batch):
                    continue
                # In parts, because cutting rows off the front of many would copy the rest each time.
                held.extend(batch.parts if isinstance(batch, Joined) else [batch])
                rows += len(batch)
                parts: list[Segment] = []
                while rows >= size and rows:
                    parts.append(_cut_front(held, size) if size else self._nothing(held[0]))
                    rows -= size
                    size = next(sizes)
                if parts:
                    last = parts[-1]
                    yield Run(SegmentTable(parts, structure), range(len(parts)))
        if structure is None:
            return
        if rows:
            if not self.drop_remainder:
                yield Run(SegmentTable([_cut_front(held, rows)], structure), range(1))
        elif last is not None:
            # The reference makes empty batches before it requests more rows; this makes them only after some rows.
            parts = []
            while not size:
                parts.append(self._nothing(last))
                size = next(sizes)
            if parts:
                yield Run(SegmentTable(parts, structure), range(len(parts)))

    def _nothing(self, segment: Segment) -> Slab:
        """A part without rows. Takes its dimensions from `segment`, because the spec may not know the rank."""
        leaves = segment.cut(0, 0).gather()

        def empty(leaf: np.ndarray[Any, Any], spec: TensorSpec) -> np.ndarray[Any, Any]:
            row = leaf.shape[1:] if spec.shape is None else [size or 0 for size in spec.shape[1:]]
            return np.empty((0, *row), leaf.dtype)

        return Slab(list(map(empty, leaves, self.specs)) if self.specs else leaves, NO_IDS)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        return tree.map(lambda spec: spec.unbatched().batched(self._static_size(spec)), upstream.element_spec)

    def _static_size(self, spec: TensorSpec) -> int | None:
        """The batch size if all batches have the same one, as the reference infers it."""
        size, before = self.sizes[0], first_dimension(spec)
        if len(set(self.sizes)) > 1 or size == 0:
            return None
        return size if self.drop_remainder or (before is not None and before % size == 0) else None

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        return known if known <= 0 else UNKNOWN_CARDINALITY

    def describe(self) -> str:
        """The stage as a short text."""
        return f"regroup({', '.join(map(str, self.sizes))})"


def first_dimension(spec: TensorSpec) -> int | None:
    """The number of rows according to a component's spec.

    Raises:
      InvalidArgumentError: if it is a scalar.
    """
    if not isinstance(spec, TensorSpec):
        raise InvalidArgumentError(
            f"elements of {spec} cannot be split among replicas; turn nested datasets into batches"
        )
    if spec.shape == ():
        raise InvalidArgumentError(
            f"elements are scalars ({spec}), which cannot be split among replicas; "
            "batch the dataset first: dataset.batch(global_batch_size)"
        )
    return None if spec.shape is None else spec.shape[0]


def _cut_front(held: deque[Segment], rows: int) -> Segment:
    """Takes `rows` rows off the front. Puts the first segment back, shortened, if it has more."""
    parts: list[Segment] = []
    while rows:
        segment = held.popleft()
        if len(segment) > rows:
            held.appendleft(segment.cut(rows, len(segment)))
            segment = segment.cut(0, rows)
        parts.append(segment)
        rows -= len(segment)
    return parts[0] if len(parts) == 1 else Joined(parts)
