"""Which sizes the results for all elements share, if a function raises for made-up values, given one element.

`np.frombuffer(text, np.uint8).reshape(28, 28)` accepts only texts of one length. So this module makes up elements with
the sizes of a known one, and then with others: if the function accepts other contents of these sizes, and no other
sizes give another result, its results have one size.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench import tree
from workbench.data.spec import TensorSpec, relax
from workbench.data.stages.computing.made_up import APART, ONES, Filling
from workbench.data.stages.computing.trials import tried
from workbench.data.structure import flatten
from workbench.io.made_up import TextAlike, features_of

_TEXTS: Final = b"1", b"1,2 3\n"
_ITEM_BYTES: Final = (1, 2, 4, 8)
_MOST_TRIALS: Final = 256


@dataclass(frozen=True, slots=True)
class _Part:
    """A component of elements.

    Attributes:
      value: Its value in the known element.
      shape: Its sizes; for a text, its length; for an example, how many more values, and how much longer texts, each
        feature has than in the known element.
      free: The axes whose sizes may differ in other elements.
      any_rank: Whether other elements may have another number of dimensions.
    """

    value: Any
    shape: tuple[int, ...]
    free: tuple[int, ...]
    any_rank: bool = False

    @staticmethod
    def of(value: Any, spec: Any) -> _Part:
        """The component for a value of an element.

        Raises:
          TypeError: if similar values cannot be made up.
        """
        if isinstance(value, bytes):
            shape = (len(value), *(0 for _ in range(2 * len(features_of(value)))))
            return _Part(value, shape, tuple(range(len(shape))))
        if not isinstance(spec, TensorSpec) or value.dtype.hasobject:
            raise TypeError(f"nothing like {spec} can be made up")
        if spec.shape is None:
            return _Part(value, value.shape, tuple(range(value.ndim)), any_rank=True)
        free = tuple(axis for axis, size in enumerate(spec.shape) if size is None)
        return _Part(value, value.shape, free)

    def filled(self, shape: tuple[int, ...], filling: Filling) -> Any:
        """A component of this kind with the given shape."""
        if isinstance(self.value, bytes):
            text = TextAlike.of(self.value, shape[0], _TEXTS[filling is not ONES])
            names = features_of(self.value)
            text.more_values = dict(zip(names, shape[1::2], strict=True))
            text.longer_texts = dict(zip(names, shape[2::2], strict=True))
            return text
        return filling.array(shape, self.value.dtype)


def shared_sizes(spec_of: Callable[[Any], Any], element: Any, element_spec: Any) -> Any:
    """The spec of results for all elements, with the sizes that they share.

    Args:
      spec_of: Returns the nested spec of the function's result for an element.
      element: An element that the function accepts.
      element_spec: The nested spec of all elements.

    Raises:
      Exception: if the function does not accept other contents, so that nothing is known about other elements.
    """
    leaves, structure = flatten(element)
    parts = [_Part.of(*each) for each in zip(leaves, tree.flatten(element_spec)[0], strict=True)]
    known = spec_of(element)

    def covering(shapes: list[tuple[int, ...]], filling: Filling) -> Any:
        made = [part.filled(shape, filling) for part, shape in zip(parts, shapes, strict=True)]
        with np.errstate(all="ignore"):  # these values are made up
            return relax(known, tried(functools.partial(spec_of, structure.pack(made))))

    shapes = [part.shape for part in parts]
    for filling in (ONES, APART[0]):
        known = covering(shapes, filling)
    for count, others in enumerate(_other_shapes(parts, _steps(known))):
        if count == _MOST_TRIALS:
            raise TypeError("there are too many sizes to try")
        with contextlib.suppress(Exception):
            known = covering(others, ONES)
    return known


def _steps(spec: Any) -> set[int]:
    """By how much a component may have to grow so that a result gets one more row along an axis."""
    steps = {1}
    for part in tree.flatten(spec)[0]:
        sizes = [size for size in getattr(part, "shape", None) or () if size]
        steps |= {math.prod(sizes) // size * item for size in sizes for item in _ITEM_BYTES}
    return steps


def _other_shapes(parts: list[_Part], steps: set[int]) -> Iterator[list[tuple[int, ...]]]:
    """Shapes of components that other elements may have."""
    shapes = [part.shape for part in parts]
    for place, part in enumerate(parts):
        for axis in part.free:
            for step in sorted(steps | {part.shape[axis]} - {0}):
                yield _replaced(shapes, place, _grown(part.shape, (axis,), step))
        if part.any_rank:
            yield _replaced(shapes, place, (1, *part.shape))
            yield _replaced(shapes, place, (math.prod(part.shape),))
    yield [_grown(part.shape, part.free, 1) for part in parts]
    yield [
        tuple(2 * size if axis in part.free else size for axis, size in enumerate(part.shape))
        for part in parts
    ]


def _grown(shape: tuple[int, ...], axes: tuple[int, ...], step: int) -> tuple[int, ...]:
    return tuple(size + step if axis in axes else size for axis, size in enumerate(shape))


def _replaced(shapes: list[tuple[int, ...]], place: int, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [*shapes[:place], shape, *shapes[place + 1 :]]
