"""Drops the elements of an incomplete last group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import Item, Run, items, single


@dataclass(frozen=True)
class WholeGroups(Stage):
    """The elements of whole groups, one by one. Unlike those of a batch, they need not have the same form.

    Attributes:
      size: Number of elements in a group.
    """

    name: ClassVar[str] = "whole_groups"
    keeps_batches: ClassVar[bool] = True
    size: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        held: list[Item] = []
        for item in items(upstream(), current.provenance):
            held.append(item)
            if len(held) == self.size:
                yield from (single(*whole) for whole in held)
                held.clear()

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        return known if known in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY) else known - known % self.size

    def describe(self) -> str:
        """The stage as a short text."""
        return f"whole_groups({self.size})"
