"""Numbers from start to stop, like Python's range, or without end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.arguments import whole_number
from workbench.backends.numpy import as_dtype
from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, TensorSpec
from workbench.data.stage import Source
from workbench.data.structure import LEAF
from workbench.data.tables import RangeTable, Run
from workbench.errors import InvalidArgumentError

_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Counting(Source):
    """The numbers of a Python range, as scalars of one dtype."""

    name: ClassVar[str] = "range"
    random_access: ClassVar[bool] = True
    count: int
    table: RangeTable

    @staticmethod
    def of(args: tuple[Any, ...], output_type: Any) -> Counting:
        """Checks the arguments of `Dataset.range`.

        Raises:
          InvalidArgumentError: for no or more than three arguments, or a step of zero.
        """
        if not 1 <= len(args) <= 3:
            raise InvalidArgumentError(
                f"range takes 1 to 3 numbers (stop; start, stop; start, stop, step), got {len(args)}"
            )
        numbers = [whole_number(arg, "range: each number") for arg in args]
        if len(numbers) == 3 and numbers[2] == 0:
            raise InvalidArgumentError(f"range{tuple(numbers)}: the step must not be zero")
        dtype = as_dtype(output_type)
        if dtype.kind not in "biufc":
            raise InvalidArgumentError(f"range: output_type is {output_type!r:.40}; it counts in numbers")
        values = range(*numbers)
        count = max(0, -((values.start - values.stop) // values.step))
        if count > np.iinfo(np.int64).max:
            raise InvalidArgumentError(
                f"range{tuple(numbers)}: these are {count:,} numbers, more than int64 can count"
            )
        return Counting(count, RangeTable(values.start, values.step, dtype, LEAF))

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if self.count:
            yield Run(self.table, range(self.count))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return TensorSpec((), self.table.dtype)

    def cardinality(self) -> int:
        """Number of elements."""
        return self.count


@dataclass(frozen=True, eq=False)
class Counter(Source):
    """The numbers `start + step * n` for n = 0, 1, 2, ... without end, as scalars of one dtype."""

    name: ClassVar[str] = "counter"
    table: RangeTable

    @staticmethod
    def of(start: Any, step: Any, dtype: Any) -> Counter:
        """Numbers from `start` in steps of `step`.

        Raises:
          InvalidArgumentError: if the dtype is not numeric or cannot hold `start`, or `step` is of another kind.
        """
        wanted = as_dtype(dtype)
        if wanted.kind not in "iuf":
            raise InvalidArgumentError(
                f"counter: dtype is {dtype!r:.40}; it counts in whole or floating numbers"
            )
        first, width = _number(start, wanted, "start"), _number(step, wanted, "step")
        return Counter(RangeTable(first, width, wanted, LEAF))

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        for block in itertools.count():
            yield Run(self.table, range(block * _BLOCK, (block + 1) * _BLOCK))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return TensorSpec((), self.table.dtype)

    def cardinality(self) -> int:
        """Always infinite."""
        return INFINITE_CARDINALITY


def _number(value: Any, wanted: np.dtype[Any], argument: str) -> Any:
    given = np.asarray(value)
    number = given.item() if not given.shape else None
    if isinstance(number, int) and wanted.kind != "f":
        bounds = np.iinfo(wanted)
        if bounds.min <= number <= bounds.max or (argument == "step" and given.dtype.kind in "biu"):
            return number
    elif isinstance(number, int) and abs(number) <= float(np.finfo(wanted).max):
        return float(number)
    elif isinstance(number, float) and wanted.kind == "f":
        return number
    raise InvalidArgumentError(f"counter: {argument} is {value!r:.40}, which {wanted.name} cannot hold")
