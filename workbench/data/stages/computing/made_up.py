"""Made-up elements that fit the element spec of a pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench import tree
from workbench.backends.kept_memory import keep_freed_memory
from workbench.backends.numpy import STRING
from workbench.data.sources.memory import Whole
from workbench.data.spec import DatasetSpec, TensorSpec
from workbench.data.stage import Pipeline
from workbench.data.stages.computing.watched import Answers, WatchedArray, WatchedText
from workbench.data.stages.ordering.select import Repeat
from workbench.io.made_up import MadeUpText

_LARGE_BYTES: Final = 1 << 17
"""glibc initially requests each block of this size from the kernel."""
_REPEATED: Final = 256
"""Long strips are copied faster than short ones."""


@dataclass(frozen=True, slots=True)
class Filling:
    """The content of made-up elements.

    Attributes:
      values: Numbers that arrays repeat; a scalar is the first.
      text: The content of every text.
      rows: The size of a dimension that is unknown.
      rank: The number of dimensions if unknown.
      count: How many elements an inner dataset has.
    """

    values: tuple[float, ...]
    text: bytes
    rows: int
    rank: int
    count: int

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array, a scalar or a text."""
        if dtype == STRING:
            text = MadeUpText(self.text)
            if not shape:
                return text
            array = np.empty(shape, STRING)
            array[...] = text
            return array
        values = np.array(self.values)
        if dtype.kind == "b":
            values = values % 2
        elif dtype.kind == "u":
            values = abs(values)
        elif dtype.kind in "fc" and len(self.values) > 1:
            values = values * 1.25
        if math.prod(shape) * dtype.itemsize > _LARGE_BYTES:
            keep_freed_memory()
        if len(values) == 1:
            return np.full(shape, values.astype(dtype)[0])[()]
        return np.resize(np.tile(values.astype(dtype), _REPEATED), shape)[()]

    def shape(self, spec: TensorSpec) -> tuple[int, ...]:
        """The shape of a value that fits a spec."""
        shape = (None,) * self.rank if spec.shape is None else spec.shape
        return tuple(self.rows if size is None else size for size in shape)


ONES: Final = Filling((1,), b"1", rows=2, rank=1, count=1)
TWOS: Final = Filling((2,), b"22", rows=3, rank=2, count=2)
APART: Final = (
    Filling((0, -1, 7, 20, 3), b"", rows=5, rank=1, count=3),
    Filling((-1, 20, 0, 7, 3), b"1,2", rows=0, rank=2, count=1),
    Filling((20, 7, -1, 0, 3), b"3 4 5", rows=9, rank=3, count=2),
)
"""Values with little in common: other signs, zero, larger ones, and several kinds in one array."""


def element(upstream: Pipeline, filling: Filling) -> Any:
    """An element that fits the spec of those of `upstream`.

    Raises:
      TypeError: if a component is not an array.
    """
    return tree.map(lambda part: _component(part, filling, upstream), upstream.element_spec)


def element_bytes(element_spec: Any) -> int:
    """How much memory the arrays of a made-up element take."""
    total = 0
    for spec in tree.flatten(element_spec)[0]:
        if isinstance(spec, DatasetSpec):
            total += element_bytes(spec.element_spec)
        elif isinstance(spec, TensorSpec):
            total += spec.dtype.itemsize * math.prod(TWOS.shape(spec))
    return total


def _component(spec: Any, filling: Filling, upstream: Pipeline) -> Any:
    if isinstance(spec, DatasetSpec):
        inner = tree.map(lambda part: _component(part, filling, upstream), spec.element_spec)
        return upstream.with_source(Whole.of(inner), (Repeat(filling.count),))
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"nothing can be made up for {spec}")
    return filling.array(filling.shape(spec), spec.dtype)


def watched(element: Any, answers: Answers) -> Any:
    """A made-up element whose arrays, numbers and texts let `answers` decide comparisons."""
    return tree.map(lambda part: _watched(part, answers), element)


def _watched(part: Any, answers: Answers) -> Any:
    if isinstance(part, MadeUpText):
        return WatchedText.of(part, answers)
    if isinstance(part, np.ndarray | np.generic) and part.dtype != STRING:
        return WatchedArray.of(part, answers)
    return part
