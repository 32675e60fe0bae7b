"""Windows: datasets of consecutive elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench import tree
from workbench.data.passes import Pass
from workbench.data.sources.memory import Held
from workbench.data.spec import DatasetSpec
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.structure import LEAF
from workbench.data.tables import Failed, Item, Run, attempts, single
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True)
class Window(Stage):
    """Collects elements into datasets; each component becomes its own dataset.

    Attributes:
      size: Elements per window.
      shift: Elements between the starts of windows.
      stride: Distance between elements of one window.
      drop_remainder: Whether windows with less than `size` elements are dropped.
    """

    name: ClassVar[str] = "window"
    sees_failures: ClassVar[bool] = True
    size: int
    shift: int
    stride: int
    drop_remainder: bool

    @staticmethod
    def of(size: int, shift: int, stride: int, drop_remainder: bool) -> Window:
        """Checks the arguments.

        Args:
          size: Number of elements in a window.
          shift: Distance between the beginnings of two windows.
          stride: Distance between two elements of a window.
          drop_remainder: Whether to leave out windows that are not full.

        Raises:
          InvalidArgumentError: if a number is not positive.
        """
        if min(size, shift, stride) < 1:
            raise InvalidArgumentError(
                f"window: size {size}, shift {shift}, stride {stride} must all be at least 1"
            )
        return Window(size, shift, stride, drop_remainder)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`; a window fails with any of its elements."""
        held: list[Item | Failed] = []
        skip = 0
        reach = (self.size - 1) * self.stride + 1
        for item in attempts(upstream(), current.provenance):
            if skip:
                skip -= 1
                continue
            held.append(item)
            if len(held) == reach:
                yield _window(held[:: self.stride], current)
                skip = max(0, self.shift - reach)
                del held[: self.shift]
        while held and not self.drop_remainder:
            yield _window(held[:: self.stride][: self.size], current)
            del held[: self.shift]

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        return tree.map(lambda spec: DatasetSpec(spec.unnamed()), upstream.element_spec)

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if known < 0:
            return known
        if not self.drop_remainder:
            return -(-known // self.shift)
        reach = (self.size - 1) * self.stride + 1
        return 0 if known < reach else (known - reach) // self.shift + 1

    def describe(self) -> str:
        """The stage as a short text."""
        return (
            f"window({self.size}, shift={self.shift})" if self.shift != self.size else f"window({self.size})"
        )


def _window(held: list[Item | Failed], current: Pass) -> Run:
    made: list[Item] = []
    for item in held:
        if isinstance(item, Failed):
            return Failed(item.error)  # comes alone; the next window may fail with the same element
        made.append(item)
    _, structure, _ = made[0]
    columns = zip(*(leaves for leaves, _, _ in made), strict=True)
    ids = [item[2] for item in made]
    known = None if ids[0] is None else [i for i in ids if i is not None]
    return single(
        [current.dataset(Held.of([[value] for value in column], LEAF, known)) for column in columns],
        structure,
    )
