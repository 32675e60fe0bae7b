"""Methods that choose and order elements, or read them ahead."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from workbench.arguments import flag, function, path, whole_number
from workbench.data.methods.staged import Staged
from workbench.data.seeds import draw
from workbench.data.sources.combine import Concatenated, covering_spec
from workbench.data.spec import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    UnknownSpec,
    is_dataset,
    spec_unread,
)
from workbench.data.stage import Pipeline
from workbench.data.stages.cache import Cache
from workbench.data.stages.computing.functions import Filter, TakeWhile, check_predicate
from workbench.data.stages.computing.resample import RejectionResample
from workbench.data.stages.ignore_errors import IgnoreErrors
from workbench.data.stages.ordering.select import AssertCardinality, Repeat, Shard, Skip, Take
from workbench.data.stages.ordering.shuffle import Shuffle
from workbench.data.stages.ordering.unique import Unique
from workbench.data.stages.prefetch import Prefetch
from workbench.data.stored.file_cache import FileCache
from workbench.errors import InvalidArgumentError, OutOfRangeError


class Ordering(Staged):
    """Methods that change which elements come, when, and how often, but not the elements."""

    def concatenate(self, dataset: Pipeline, name: str | None = None) -> Self:
        """This dataset's elements, then those of `dataset`.

        Raises:
          TypeError: if `dataset` is not a dataset, or structures or dtypes differ.

        >>> [int(x) for x in wb.data.Dataset.range(2).concatenate(wb.data.Dataset.range(5, 7))]
        [0, 1, 5, 6]
        """
        if not is_dataset(dataset):
            raise TypeError(f"concatenate takes a dataset, got {type(dataset).__name__} {dataset!r:.60}")
        source = Concatenated((self, dataset))  # type: ignore[arg-type]
        known = [spec for spec in map(spec_unread, source.datasets) if not isinstance(spec, UnknownSpec)]
        spec = covering_spec(known) if known else None
        return self.of_source(source, name).with_element_spec(spec if len(known) == 2 else None)

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Shuffles elements within a reservoir: element i comes at position i - buffer_size + 1 or later.

        Args:
          buffer_size: Size of the reservoir; the number of elements, or `UNKNOWN_CARDINALITY`, for a full shuffle.
          seed: Makes the sequence of orders repeatable when the dataset is built again.
          reshuffle_each_iteration: Whether each iteration has its own order (default True, also with a seed). Each
            dataset made from this one counts its own iterations. So `take` and `skip` of it complement each other, and
            batches should be made once, before the loop over epochs.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if the buffer has no room, or a full shuffle is requested for an endless dataset.

        >>> order = [int(x) for x in wb.data.Dataset.range(100).shuffle(100, seed=1)]
        >>> sorted(order) == list(range(100)) != order
        True
        """
        if buffer_size == UNKNOWN_CARDINALITY and self.cardinality() == INFINITE_CARDINALITY:
            raise InvalidArgumentError(
                "shuffle: an endless dataset cannot be shuffled in full; give a buffer_size"
            )
        stage = Shuffle.of(
            whole_number(buffer_size, "shuffle: buffer_size"),
            draw(seed),
            reshuffle_each_iteration is None
            or flag(reshuffle_each_iteration, "shuffle: reshuffle_each_iteration"),
        )
        return self.with_stage(stage, name)

    def take(self, count: int, name: str | None = None) -> Self:
        """The first `count` elements; all if negative.

        >>> [int(x) for x in wb.data.Dataset.range(100).take(2)]
        [0, 1]
        """
        return self.with_stage(Take(whole_number(count, "take: count")), name)

    def skip(self, count: int, name: str | None = None) -> Self:
        """All but the first `count` elements; none if negative.

        >>> [int(x) for x in wb.data.Dataset.range(5).skip(3)]
        [3, 4]
        """
        return self.with_stage(Skip(whole_number(count, "skip: count")), name)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Self:
        """Keeps every `num_shards`-th element, starting with number `index`.

        Args:
          num_shards: The number of parts, at least 1.
          index: The part to keep, from 0 to `num_shards - 1`.
          name: Name of the stage.

        >>> [int(x) for x in wb.data.Dataset.range(7).shard(3, index=1)]
        [1, 4]
        """
        shards, which = whole_number(num_shards, "shard: num_shards"), whole_number(index, "shard: index")
        return self.with_stage(Shard.of(shards, which), name)

    def repeat(self, count: int | None = None, name: str | None = None) -> Self:
        """Repeats the elements `count` times; forever if `count` is None or negative.

        >>> [int(x) for x in wb.data.Dataset.range(2).repeat(2)]
        [0, 1, 0, 1]
        """
        times = -1 if count is None else whole_number(count, "repeat: count")
        return self.with_stage(Repeat(times), name)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keeps the elements for which `predicate` returns True.

        Args:
          predicate: Returns a bool; the components of a tuple become separate arguments.
          name: Name of the stage.

        Raises:
          ValueError: if it returns anything other than one bool, as far as a call with made-up values shows.

        >>> [int(x) for x in wb.data.Dataset.range(6).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        check_predicate(function(predicate, "filter: predicate"), self, "filter")  # type: ignore[arg-type]
        return self.with_stage(Filter(predicate), name)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keeps the elements before the first one for which `predicate` returns False.

        Args:
          predicate: Returns a bool; the components of a tuple become separate arguments.
          name: Name of the stage.

        Raises:
          ValueError: if it returns anything other than one bool, as far as a call with made-up values shows.
        """
        check_predicate(function(predicate, "take_while: predicate"), self, "take_while")  # type: ignore[arg-type]
        return self.with_stage(TakeWhile(predicate), name)

    def unique(self, name: str | None = None) -> Self:
        """Keeps the first occurrence of each element, in order.

        Raises:
          InvalidArgumentError: if elements have several components.
          TypeError: if they are not scalars of int32, int64 or text.
        """
        with suppress(OutOfRangeError):  # the elements of an empty dataset are unknown, so it fits
            Unique.check(self.unread().element_spec)
        return self.with_stage(Unique(), name)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Pairs of class and element, with elements dropped at random so that classes have the requested proportions.

        Args:
          class_func: Returns an element's class, a whole number; a tuple element is unpacked over its arguments.
          target_dist: The requested share of each class, shape `(classes,)`.
          initial_dist: The share that each class has; None to estimate it from the elements so far.
          seed: Makes the choices repeatable when the dataset is built again.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if the shares are invalid; in a pass, if a class is not among them.
        """
        classes = function(class_func, "rejection_resample: class_func")
        return self.with_stage(RejectionResample.of(classes, target_dist, initial_dist, draw(seed)), name)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """Skips elements that cannot be made; `explain()` and the view Input count them.

        Args:
          log_warning: Whether to log each of them as a warning.
          name: Name of the stage.
        """
        return self.with_stage(IgnoreErrors(flag(log_warning, "ignore_errors: log_warning")), name)

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Self:
        """Prepares up to `buffer_size` elements ahead of their use, in a separate thread.

        `Options.autotune.ram_budget` also bounds the waiting elements in bytes; the default is 256 MiB. Rows of arrays
        in memory do not count, because they are gathered at their use. The thread ends with the iterator.

        Args:
          buffer_size: Number of elements; `AUTOTUNE` or None for as many as the reader needs to avoid waiting, 0 for
            none.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if the size is below -1.

        >>> [int(x) for x in wb.data.Dataset.range(3).prefetch(wb.data.AUTOTUNE)]
        [0, 1, 2]
        """
        return self.with_stage(Prefetch.of(buffer_size), name)

    def cache(self, filename: str | os.PathLike[str] = "", name: str | None = None) -> Self:
        """Keeps the elements of the first complete pass, and reuses them in later ones.

        A pass that stops early, or in which an element fails, stores nothing.

        Args:
          filename: The elements are in the folder `filename.cache`, which is created if missing; "" keeps them in
            memory. The folder stays, and is used even if the pipeline has changed.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: in a pass, if files cannot hold the elements, as with windows.
          FailedPreconditionError: in a pass, if the folder is a file, lies below one, or holds other things.
          StorageFull: in a pass, if there is no space left.

        >>> dataset = wb.data.Dataset.range(3).map(lambda x: x * x).cache()
        >>> [int(x) for epoch in range(2) for x in dataset]
        [0, 1, 4, 0, 1, 4]
        """
        if filename is not None:
            path(filename, "cache: filename")
        return self.with_stage(FileCache.of(filename) if filename else Cache(), name)

    def assert_cardinality(self, expected_cardinality: int, name: str | None = None) -> Self:
        """States the number of elements, which iterating checks.

        Args:
          expected_cardinality: The number, or `INFINITE_CARDINALITY`.
          name: Name of the stage.

        Raises:
          InvalidArgumentError: if it is neither.
          FailedPreconditionError: in a pass, if there are more or fewer.
        """
        expected = whole_number(expected_cardinality, "assert_cardinality: expected_cardinality")
        if expected < INFINITE_CARDINALITY:
            raise InvalidArgumentError(
                f"assert_cardinality: {expected} is not a number of elements; "
                "give one of at least 0, or INFINITE_CARDINALITY"
            )
        return self.with_stage(AssertCardinality(expected), name)
