"""Endless random numbers: uniform ones, and choices among weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.data.passes import Pass
from workbench.data.provenance import OffsetTable
from workbench.data.spec import INFINITE_CARDINALITY, TensorSpec
from workbench.data.stage import Source
from workbench.data.structure import LEAF, Array
from workbench.data.tables import ArrayTable, Run

_BLOCK = 1024
_HIGHEST = 1 << 32


@dataclass(frozen=True)
class RandomNumbers(Source):
    """Whole numbers from 0 to 2**32 - 1, int64 scalars; with `weights`, positions in them.

    Attributes:
      seed: The seed of the numbers; every host gets the same ones.
      rerandomize: Whether each iteration has other numbers.
      weights: How often to choose each position, in proportion; None for uniform numbers.
    """

    name: ClassVar[str] = "random"
    seed: int
    rerandomize: bool
    weights: tuple[float, ...] | None = None

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        generator = current.generator(self.seed, reshuffle=self.rerandomize)
        start = 0
        while True:
            table: Any = ArrayTable([self._draw(generator)], LEAF)
            if current.provenance and start:
                table = OffsetTable(table, start)
            yield Run(table, range(_BLOCK))
            start += _BLOCK

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return TensorSpec((), np.int64)

    def cardinality(self) -> int:
        """Always infinite."""
        return INFINITE_CARDINALITY

    def _draw(self, generator: np.random.Generator) -> Array:
        if self.weights is None:
            return generator.integers(0, _HIGHEST, _BLOCK)
        ends = np.cumsum(self.weights)
        drawn: Array = np.searchsorted(ends, generator.random(_BLOCK) * ends[-1], side="right")
        return drawn
