"""Stages whose function gives a dataset for each element: flat_map and interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.data.failing import raised
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.spec import UNKNOWN_CARDINALITY, relax
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages import probe
from workbench.data.stages.functions import note_place
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Item, Leaves, Run, items
from workbench.errors import InvalidArgumentError, OutOfRangeError

DEFAULT_CYCLE = 4


@dataclass(frozen=True, eq=False)
class Interleave(Stage):
    """Goes round `cycle_length` inner datasets, `block_length` elements each; flat_map has a cycle of one.

    A slot whose dataset has ended is passed over once and filled with the next dataset when its turn comes
    again.

    Attributes:
      fn: Gives a dataset for an element; a tuple element is unpacked over its arguments.
      cycle_length: Inner datasets open at a time.
      block_length: Elements taken from one before the next has its turn.
      name: "interleave" or "flat_map".
    """

    name: str  # type: ignore[misc]  # one algorithm, two public names
    fn: Callable[..., Any]
    cycle_length: int = 1
    block_length: int = 1

    @staticmethod
    def of(fn: Callable[..., Any], cycle_length: int | None, block_length: int | None) -> Interleave:
        """Checks the arguments of interleave.

        Raises:
          InvalidArgumentError: if a cycle or block would be empty.
        """
        cycle = DEFAULT_CYCLE if cycle_length in (None, -1) else cycle_length
        block = 1 if block_length is None else block_length
        if cycle is None or cycle < 1 or block < 1:
            raise InvalidArgumentError(
                f"interleave: cycle_length is {cycle}, block_length {block}; both must be at least 1"
            )
        return Interleave("interleave", fn, cycle, block)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over what `upstream()` starts."""
        outer = enumerate(items(upstream(), current.provenance))
        slots: list[_Inner | None] = [None] * self.cycle_length
        outer_ended = False
        while True:
            for position in range(self.cycle_length):
                if slots[position] is None and not outer_ended:
                    following = next(outer, None)
                    if following is None:
                        outer_ended = True
                    else:
                        try:
                            slots[position] = _Inner(self._opened(*following, current))
                        except Exception as error:
                            yield Failed(error)
                inner = slots[position]
                if inner is not None:
                    left, last = self.block_length, None
                    while left and (last := next(inner, None)) is not None:
                        if len(last) > left:
                            inner.put_back(Run(last.table, last.rows[left:]))
                            last = Run(last.table, last.rows[:left])
                        left -= len(last)
                        yield last
                    if left:
                        slots[position] = None
            if outer_ended and all(slot is None for slot in slots):
                return

    def _opened(self, index: int, item: Item, current: Pass) -> Iterator[Run]:
        leaves, structure, ids = item
        runs = self._inner(leaves, structure, index).open(current.inside(0, index))
        if ids is None or len(ids) != 1:
            return runs
        # The outer element stands where a file stands for readers: names.flat_map(reader) is numbered like
        # reader(names).
        return (current.numbered(run, int(ids[0]) << FILE_SHIFT) for run in runs)

    def _inner(self, leaves: Leaves, structure: Structure, index: int) -> Pipeline:
        try:
            inner = probe.call(self.fn, structure.pack(leaves))
        except Exception as error:
            note_place(error, self.text, index)
            raise
        if not hasattr(inner, "open"):
            raise TypeError(
                f"{self.name}: the function must return a Dataset, got {type(inner).__name__} for element "
                f"{index}; "
                "wrap it: Dataset.from_tensors(value)"
            )
        return inner  # type: ignore[no-any-return]

    def example(self, upstream: Pipeline) -> Pipeline | None:
        """One inner dataset: for made-up values, or if they will not do for the first element (None without)."""
        try:
            inner = probe.result_examples(self.fn, upstream)[0]
            if hasattr(inner, "open"):
                return inner  # type: ignore[no-any-return]
        except Exception:
            pass
        first = next(items(raised(upstream.open(_pass_over(upstream))), False), None)
        return None if first is None else self._inner(first[0], first[1], 0)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        try:
            specs = [inner.element_spec for inner in probe.result_examples(self.fn, upstream)]
            return relax(*specs)
        except Exception:
            inner = self.example(upstream)
            if inner is None:
                raise OutOfRangeError(
                    f"{self.name}: the function refuses made-up values, and there is no element to learn from"
                ) from None
            return inner.element_spec

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return UNKNOWN_CARDINALITY

    def describe(self) -> str:
        """The stage as a short text."""
        label = getattr(self.fn, "__name__", type(self.fn).__name__)
        return f"{self.name}({label})"


class _Inner:
    """The runs of one inner dataset, of which the rest of one can be put back."""

    __slots__ = ("_rest", "_runs")

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self._rest: Run | None = None

    def __iter__(self) -> _Inner:
        return self

    def __next__(self) -> Run:
        if self._rest is None:
            return next(self._runs)
        rest, self._rest = self._rest, None
        return rest

    def put_back(self, rest: Run) -> None:
        """Has `rest` come next."""
        self._rest = rest


def _pass_over(upstream: Pipeline) -> Pass:
    """A pass by itself, which counts as none of the user's."""
    return Pass(lambda source: upstream.with_source(source, ()))
