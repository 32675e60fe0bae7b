"""What can be done to a dataset's elements: each method adds a stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, Self

from workbench.data.options import Options
from workbench.data.seeds import draw
from workbench.data.sources.combine import Concatenated
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Pipeline, Source, Stage
from workbench.data.stages import probe
from workbench.data.stages.batch import Batch
from workbench.data.stages.cache import Cache
from workbench.data.stages.enumerate import Enumerate
from workbench.data.stages.flat import Interleave
from workbench.data.stages.functions import Filter, Map, TakeWhile, check_predicate
from workbench.data.stages.group import GroupByWindow, bucketed
from workbench.data.stages.ignore_errors import IgnoreErrors
from workbench.data.stages.padded import PaddedBatch
from workbench.data.stages.prefetch import Prefetch, check_parallel_calls
from workbench.data.stages.resample import RejectionResample
from workbench.data.stages.scan import Scan
from workbench.data.stages.select import AssertCardinality, Repeat, Shard, Skip, Take
from workbench.data.stages.shuffle import Shuffle
from workbench.data.stages.split import Regroup
from workbench.data.stages.unbatch import Unbatch
from workbench.data.stages.unique import Unique
from workbench.data.stages.window import Window
from workbench.errors import InvalidArgumentError, OutOfRangeError


class Transformations(ABC):
    """Stages; `Dataset` is the only one that inherits it. A `name` shows up in texts and errors.

    Attributes:
      stages: What is done to the elements, in order.
    """

    stages: tuple[Stage, ...]

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The nested spec of an element."""

    @property
    @abstractmethod
    def known_element_spec(self) -> Any:
        """The nested spec of an element; None if only calls of the user's functions would tell it."""

    @abstractmethod
    def options(self) -> Options:
        """The options of this dataset."""

    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, or what stands for endless and unknown."""

    @abstractmethod
    def with_stage(self, stage: Stage, name: str | None = None) -> Self:
        """This dataset with one more stage at the end."""

    @abstractmethod
    def with_source(self, source: Source, stages: tuple[Stage, ...]) -> Self:
        """Another pipeline with this one's options."""

    @abstractmethod
    def with_element_spec(self, spec: Any) -> Self:
        """This dataset, of which the element spec is known otherwise."""

    def concatenate(self, dataset: Pipeline, name: str | None = None) -> Self:
        """This dataset's elements, then those of `dataset`.

        Raises:
          TypeError: if structures or dtypes differ.
        """
        source = Concatenated((self, dataset))  # type: ignore[arg-type]
        return self.with_source(source.named(name), ()).with_element_spec(source.element_spec())

    # Choosing and ordering elements

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Random order within a reservoir: element i comes at position i - buffer_size + 1 or later.

        Args:
          buffer_size: Size of the reservoir; the number of elements, or `UNKNOWN_CARDINALITY`, for a full shuffle.
          seed: Makes the sequence of orders repeatable for a dataset built again.
          reshuffle_each_iteration: Whether each iteration has its own order (default True, also with a seed).
          name: Of the stage.

        Raises:
          InvalidArgumentError: if the buffer has no room, or an endless dataset is to be shuffled in full.
        """
        if buffer_size == UNKNOWN_CARDINALITY and self.cardinality() == INFINITE_CARDINALITY:
            raise InvalidArgumentError(
                "shuffle: an endless dataset cannot be shuffled in full; give a buffer_size"
            )
        stage = Shuffle.of(int(buffer_size), draw(seed), reshuffle_each_iteration is not False)
        return self.with_stage(stage, name)

    def take(self, count: int, name: str | None = None) -> Self:
        """The first `count` elements; all if negative."""
        return self.with_stage(Take(int(count)), name)

    def skip(self, count: int, name: str | None = None) -> Self:
        """All but the first `count` elements; none if negative."""
        return self.with_stage(Skip(int(count)), name)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Self:
        """Every `num_shards`-th element, starting with number `index`."""
        return self.with_stage(Shard.of(int(num_shards), int(index)), name)

    def repeat(self, count: int | None = None, name: str | None = None) -> Self:
        """The elements `count` times; forever if None or negative."""
        return self.with_stage(Repeat(-1 if count is None else int(count)), name)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Elements for which `predicate` gives True.

        Raises:
          ValueError: if it gives something else than one bool, as far as made-up values can tell.
        """
        check_predicate(predicate, self, "filter")  # type: ignore[arg-type]
        return self.with_stage(Filter(predicate), name)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Elements up to the first for which `predicate` gives False."""
        check_predicate(predicate, self, "take_while")  # type: ignore[arg-type]
        return self.with_stage(TakeWhile(predicate), name)

    def unique(self, name: str | None = None) -> Self:
        """First occurrences of scalar int32, int64 or text elements, in order."""
        with suppress(OutOfRangeError):  # nobody knows what an empty dataset would hold, and it fits
            Unique.check(self.element_spec)
        return self.with_stage(Unique(), name)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Pairs of class and element, elements left out at random so that classes come in the wanted proportions.

        Args:
          class_func: Gives an element's class, a whole number; a tuple element is unpacked over its arguments.
          target_dist: The wanted share of each class, shape `(classes,)`.
          initial_dist: The share that each class has; None to estimate it from the elements so far.
          seed: Makes the choices repeatable for a dataset built again.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if the shares are none; in a pass, if a class is not among them.
        """
        return self.with_stage(RejectionResample.of(class_func, target_dist, initial_dist, draw(seed)), name)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """Leaves out elements that could not be made; `log_warning` has each of them logged."""
        return self.with_stage(IgnoreErrors(bool(log_warning)), name)

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Self:
        """The same elements, made by a thread of their own, up to `buffer_size` of them ahead of their use.

        What waits is bounded in bytes, too: `Options.autotune.ram_budget`, 256 MiB without it. Rows of arrays in memory
        cost nothing to wait for; they are gathered when they are used. The thread ends with the iterator.

        Args:
          buffer_size: Elements; `AUTOTUNE` or None for as many as keep the reader from waiting, 0 for none.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if the size is below -1.
        """
        return self.with_stage(Prefetch.of(buffer_size), name)

    def cache(self, filename: str = "", name: str | None = None) -> Self:
        """Keeps the elements of the first complete pass, and gives those from then on."""
        return self.with_stage(Cache(filename), name)

    def assert_cardinality(self, expected_cardinality: int, name: str | None = None) -> Self:
        """States the number of elements; iterating checks it."""
        return self.with_stage(AssertCardinality(int(expected_cardinality)), name)

    # Grouping elements

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Stacks `batch_size` consecutive elements; shape `(batch_size, ...)`.

        Args:
          batch_size: Elements per batch.
          drop_remainder: Whether to leave out a smaller last batch; then the batch dimension is known.
          num_parallel_calls: Without effect: a batch is put together by the one who reads it.
          deterministic: Without effect: batches keep their order.
          name: Of the stage.
        """
        return self.with_stage(Batch.of(int(batch_size), bool(drop_remainder)), name)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """As `batch`, each component padded to a shape, or to the largest where it says None.

        Args:
          batch_size: Elements per batch.
          padded_shapes: Nested shapes, None for dimensions as large as the largest; None for all of them.
          padding_values: Nested values to pad with; None for zeros and empty texts.
          drop_remainder: Whether to leave out a smaller last batch.
          name: Of the stage.
        """
        stage = PaddedBatch.of(self.element_spec, batch_size, padded_shapes, padding_values, drop_remainder)
        return self.with_stage(stage, name)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = None,
        name: str | None = None,
    ) -> NoReturn:
        """Refused: there are no ragged arrays here.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            f"ragged_batch({batch_size}): arrays have no ragged rows; use padded_batch({batch_size}), or window and "
            "keep the elements apart"
        )

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> NoReturn:
        """Refused: there are no sparse arrays here.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            f"sparse_batch({batch_size}): there are no sparse arrays; use padded_batch({batch_size}, {row_shape})"
        )

    def unbatch(self, name: str | None = None) -> Self:
        """Rows of the elements as elements."""
        with suppress(OutOfRangeError):  # as for `unique`
            Unbatch.check(self.element_spec)
        return self.with_stage(Unbatch(), name)

    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> Self:
        """The rows of all batches, in order, in batches of other sizes.

        Args:
          batch_size: Rows per batch, or several such numbers that take turns.
          drop_remainder: Whether to leave out a smaller last batch.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if a size is negative, or none is positive.
        """
        return self.with_stage(Regroup.of(batch_size, bool(drop_remainder)), name)

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Datasets of `size` elements each, starting every `shift` elements and taking every `stride`-th.

        Args:
          size: Elements of a window.
          shift: From the beginning of one window to that of the next (default `size`).
          stride: From one element of a window to the next.
          drop_remainder: Whether to leave out windows that are not full.
          name: Of the stage.
        """
        stage = Window.of(size, size if shift is None else shift, stride, drop_remainder)
        return self.with_stage(stage, name)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Collects elements by key; a full window becomes `reduce_func(key, window)`.

        Args:
          key_func: Gives an element's key, an int64 scalar.
          reduce_func: Gets a key and the dataset of its elements; returns a dataset.
          window_size: Elements of a window.
          window_size_func: The same by key; one of the two is given.
          name: Of the stage.
        """
        return self.with_stage(GroupByWindow.of(key_func, reduce_func, window_size, window_size_func), name)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Batches elements of similar length; a length equal to a boundary belongs to the upper bucket.

        Args:
          element_length_func: Gives an element's length.
          bucket_boundaries: Upper ends of the buckets but the last.
          bucket_batch_sizes: Elements per batch, by bucket.
          padded_shapes: As for `padded_batch`.
          padding_values: As for `padded_batch`.
          pad_to_bucket_boundary: Whether unknown dimensions are as long as the bucket allows.
          no_padding: Whether elements of a batch have one shape already.
          drop_remainder: Whether to leave out smaller last batches.
          name: Of the stage.
        """
        stage = bucketed(
            self.element_spec,
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            pad_to_bucket_boundary=pad_to_bucket_boundary,
            no_padding=no_padding,
            drop_remainder=drop_remainder,
        )
        return self.with_stage(stage, name)

    def enumerate(self, start: int = 0, name: str | None = None) -> Self:
        """Pairs of a number and the element."""
        return self.with_stage(Enumerate(int(start)), name)

    # Computing with elements

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Self:
        """Replaces each element by `map_func(element)`; a tuple element is unpacked over the arguments.

        The function may be called with made-up values when `element_spec` is asked for.

        Args:
          map_func: Returns numbers, text, arrays, or tuples and dicts of them.
          num_parallel_calls: Calls at a time; None for the reader's own thread. Threads call it, or processes if
            `Options.threading.worker_kind` says so; with `AUTOTUNE` a few elements are measured, and processes are
            taken for functions that hold Python's lock and refer to nothing that can change.
          deterministic: Whether results keep their order; True if the options do not say otherwise.
          synchronous: Whether the caller's own thread calls it; not together with `num_parallel_calls`.
          use_unbounded_threadpool: Without effect: a stage has the threads that it is given.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if `synchronous` is to have parallel calls, or their number is less than 1.
        """
        if synchronous and num_parallel_calls is not None:
            raise InvalidArgumentError(
                f"map: synchronous=True calls the function one element at a time; leave out "
                f"num_parallel_calls={num_parallel_calls}"
            )
        spec = self.known_element_spec
        if spec is not None:
            probe.check_arguments(map_func, spec, "map")
        check_parallel_calls("map", num_parallel_calls)
        return self.with_stage(Map(map_func, num_parallel_calls or 0, deterministic), name)

    def map_batches(
        self,
        map_func: Callable[..., Any],
        batch_size: int,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """As `map`, for a function of whole arrays: it is called once for `batch_size` elements.

        `range(10**6).map_batches(lambda x: 2 * x + 1, 4096)` has the elements of `map(lambda x: 2 * x + 1)`, at a small
        part of its cost. The number of elements is unknown afterwards: `assert_cardinality` states it.

        Args:
          map_func: Gets the elements stacked, shape `(n, ...)` with `n` up to `batch_size`, and returns as many rows.
          batch_size: Most elements per call.
          num_parallel_calls: As for `map`.
          deterministic: As for `map`.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if a batch would be empty, or the function returns scalars.
        """
        batches = self.batch(batch_size)
        return batches.map(map_func, num_parallel_calls, deterministic, name=name).unbatch()

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """The elements of the datasets that `map_func` gives, one dataset after the other.

        Raises:
          TypeError: if it gives something else.
        """
        stage = Interleave("flat_map", map_func).checked(self)  # type: ignore[arg-type]
        return self.with_stage(stage, name)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements of the datasets that `map_func` gives, `cycle_length` of them in turn.

        Args:
          map_func: Gives a dataset for an element.
          cycle_length: Datasets open at a time.
          block_length: Elements taken from one before the next has its turn.
          num_parallel_calls: Inner datasets that are read at a time, by threads that are two blocks ahead and also open
            the datasets that follow; `AUTOTUNE` for all of the cycle, None for no threads.
          deterministic: Whether the order is that of reading without threads, True if the options do not say otherwise;
            False takes elements of the datasets that have some.
          name: Of the stage.

        Raises:
          InvalidArgumentError: if cycle, block or number of calls is less than 1.
          TypeError: if `map_func` gives something else than datasets.
        """
        stage = Interleave.of(map_func, cycle_length, block_length, num_parallel_calls, deterministic)
        return self.with_stage(stage.checked(self), name)  # type: ignore[arg-type]

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: str | None = None) -> Self:
        """Goes through the elements with a state: `state, output = scan_func(state, element)`; gives the outputs.

        Args:
          initial_state: Nested numbers and arrays that the first element gets.
          scan_func: Returns the next state, of the same structure and dtypes, and an output.
          name: Of the stage.

        Raises:
          TypeError: in a pass, if the function changes structure or dtype of the state, or returns no pair.
        """
        return self.with_stage(Scan(initial_state, scan_func), name)
