"""Stages that select elements by position, with index arithmetic and without reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.tables import Failed, Run
from workbench.errors import FailedPreconditionError, InvalidArgumentError

SHARD_HINT = -1


@dataclass(frozen=True)
class Take(Stage):
    """The first `count` elements; all of them if negative."""

    name: ClassVar[str] = "take"
    keeps_batches: ClassVar[bool] = True
    count: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        left = self.count
        if left < 0:
            yield from upstream()
            return
        if left == 0:
            return
        for run in upstream():
            if len(run) >= left:
                yield Run(run.table, run.rows[:left])
                return
            left -= len(run)
            yield run

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if self.count < 0:
            return known
        if known == UNKNOWN_CARDINALITY and self.count:
            return UNKNOWN_CARDINALITY
        return self.count if known == INFINITE_CARDINALITY or not self.count else min(known, self.count)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"take({self.count})"


@dataclass(frozen=True)
class Skip(Stage):
    """All but the first `count` elements; none if negative."""

    name: ClassVar[str] = "skip"
    keeps_batches: ClassVar[bool] = True
    count: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        left = self.count
        if left < 0:
            return
        for run in upstream():
            if left >= len(run):
                left -= len(run)
                continue
            yield Run(run.table, run.rows[left:]) if left else run
            left = 0

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if self.count < 0:
            return 0
        return known if known < 0 else max(0, known - self.count)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"skip({self.count})"


@dataclass(frozen=True)
class Shard(Stage):
    """Elements whose position leaves the remainder `index` when divided by `num_shards`.

    Attributes:
      num_shards: Number of shards.
      index: Which one this is.
      enough_for_all: Whether fewer elements than shards are an error, as for files distributed among hosts. As in the
        reference, only shards that got an element notice; the others end at once.
    """

    name: ClassVar[str] = "shard"
    keeps_batches: ClassVar[bool] = True
    num_shards: int
    index: int
    enough_for_all: bool = False

    @staticmethod
    def of(num_shards: int, index: int) -> Shard:
        """Checks the arguments; both may be `SHARD_HINT`.

        Raises:
          InvalidArgumentError: for less than one shard, or an index outside them.
        """
        if (num_shards, index) != (SHARD_HINT, SHARD_HINT):
            if num_shards < 1:
                raise InvalidArgumentError(f"shard: num_shards is {num_shards}, it must be at least 1")
            if not 0 <= index < num_shards:
                raise InvalidArgumentError(f"shard: index is {index}, it must be in 0..{num_shards - 1}")
        return Shard(num_shards, index)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if self.num_shards == SHARD_HINT:
            yield from upstream()
            return
        runs = self._checked(upstream()) if self.enough_for_all else upstream()
        position = 0
        for run in runs:
            first = (self.index - position) % self.num_shards
            position += len(run)
            if first < len(run):
                yield Run(run.table, run.rows[first :: self.num_shards])

    def _checked(self, runs: Iterator[Run]) -> Iterator[Run]:
        held: list[Run] = []
        count = 0
        for run in runs:
            held.append(run)
            count += len(run)
            if count >= self.num_shards:
                break
        if self.index < count < self.num_shards:
            raise InvalidArgumentError(
                f"{count} file(s) cannot be divided among {self.num_shards} hosts; use at least "
                f"{self.num_shards} files, "
                "or AutoShardPolicy.DATA, or AutoShardPolicy.OFF"
            )
        yield from held
        yield from runs

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if known < 0 or self.num_shards == SHARD_HINT:
            return known
        return max(0, (known - self.index + self.num_shards - 1) // self.num_shards)

    def describe(self) -> str:
        """The stage as a short text."""
        return "shard(hint)" if self.num_shards == SHARD_HINT else f"shard({self.num_shards}, {self.index})"


@dataclass(frozen=True)
class Repeat(Stage):
    """Repeats the upstream; if `count` is negative, forever, or until a pass has no elements."""

    name: ClassVar[str] = "repeat"
    keeps_batches: ClassVar[bool] = True
    count: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        done = 0
        while self.count < 0 or done < self.count:
            empty = True
            for run in upstream():
                empty = False
                yield run
            if empty and self.count < 0:  # repeating an empty dataset forever would never end
                return
            done += 1

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        if self.count == 0 or known == 0:
            return 0
        if self.count < 0:
            return INFINITE_CARDINALITY
        return known if known < 0 else known * self.count

    def describe(self) -> str:
        """The stage as a short text."""
        return "repeat()" if self.count < 0 else f"repeat({self.count})"


@dataclass(frozen=True)
class AssertCardinality(Stage):
    """States the number of elements, and checks it as they pass: each further one fails, as in the reference."""

    name: ClassVar[str] = "assert_cardinality"
    keeps_batches: ClassVar[bool] = True
    expected: int

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if self.expected == INFINITE_CARDINALITY:
            yield from upstream()
            raise FailedPreconditionError("assert_cardinality: expected endless elements, there are no more")
        left = self.expected
        for run in upstream():
            if len(run) <= left:
                left -= len(run)
                yield run
                continue
            if left:
                yield Run(run.table, run.rows[:left])
            for _ in range(len(run) - left):
                yield Failed(
                    FailedPreconditionError(f"{self.name}: expected {self.expected} elements, there are more")
                )
            left = 0
        if left:
            raise FailedPreconditionError(
                f"assert_cardinality: expected {self.expected} elements, there are {self.expected - left}"
            )

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        return self.expected

    def describe(self) -> str:
        """The stage as a short text."""
        return f"assert_cardinality({self.expected})"
