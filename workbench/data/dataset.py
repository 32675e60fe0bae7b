"""`Dataset`: a source and a tuple of stages, as tf.data.Dataset."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from workbench.data.describe import DatasetText
from workbench.data.failing import guarded, opened
from workbench.data.fold import fold
from workbench.data.iterator import DatasetIterator, Elements, elements_of
from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.seeds import draw
from workbench.data.sources.combine import Chosen, Concatenated, Zipped
from workbench.data.sources.counting import Counting
from workbench.data.sources.files import matching_files
from workbench.data.sources.generator import Generated, signature_of
from workbench.data.sources.memory import Slices, Whole
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Source, Stage
from workbench.data.stages import probe
from workbench.data.stages.batch import Batch
from workbench.data.stages.cache import Cache
from workbench.data.stages.enumerate import Enumerate
from workbench.data.stages.flat import Interleave
from workbench.data.stages.functions import Filter, Map, TakeWhile, check_predicate
from workbench.data.stages.group import GroupByWindow, bucketed
from workbench.data.stages.padded import PaddedBatch
from workbench.data.stages.select import AssertCardinality, Prefetch, Repeat, Shard, Skip, Take
from workbench.data.stages.shuffle import Shuffle
from workbench.data.stages.unbatch import Unbatch
from workbench.data.stages.unique import Unique
from workbench.data.stages.window import Window
from workbench.data.stored.methods import DatasetFiles
from workbench.data.tables import Run
from workbench.errors import OutOfRangeError

AUTOTUNE = -1


class Dataset(DatasetText, DatasetFiles):
    """A description of where elements come from and what is done to them.

    It holds no iterator and no open file, so it can be sent to other processes; each `iter` starts anew.
    Elements are arrays, NumPy scalars or bytes, in tuples and dicts.

    Attributes:
      source: Where elements come from.
      stages: What is done to them, in order.
    """

    def __init__(
        self, source: Source, stages: tuple[Stage, ...] = (), options: Options | None = None
    ) -> None:
        self.source = source
        self.stages = stages
        self._options = options or Options()
        self._options_are_own = False
        self._epoch = 0
        self._element_spec: Any = None

    # Sources

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """One element per row of the arrays (tuples are structure, a list is one array); not copied.

        Raises:
          ValueError: for scalars, or first dimensions that differ.
        """
        return Dataset(Slices.of(tensors))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """A single element."""
        return Dataset(Whole.of(tensors))

    @staticmethod
    def range(*args: int, output_type: Any = np.int64) -> Dataset:
        """Numbers as Python's range gives them: `stop`, or `start, stop`, or `start, stop, step`."""
        return Dataset(Counting.of(args, output_type))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] = (),
        *,
        output_signature: Any = None,
    ) -> Dataset:
        """What `generator(*args)` yields; it is called anew for every iteration.

        Args:
          generator: A function that gives an iterable.
          output_types: Nested dtypes, if there is no `output_signature`.
          output_shapes: Nested shapes to go with them; unknown if None.
          args: Arguments for `generator`.
          output_signature: Nested `TensorSpec`s.

        Raises:
          TypeError: if neither signature nor types are given.
        """
        if output_signature is None:
            output_signature = signature_of(output_types, output_shapes)
        return Dataset(Generated(generator, output_signature, tuple(args or ())))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """Names of the files that match the patterns; shuffled unless `shuffle=False`, else sorted.

        Raises:
          InvalidArgumentError: if nothing matches.
        """
        names = matching_files(file_pattern)
        dataset = Dataset.from_tensor_slices(names)
        return dataset if shuffle is False else dataset.shuffle(len(names), seed)

    @staticmethod
    def zip(datasets: Any, *others: Any) -> Dataset:
        """Elements of several datasets (a tuple or dict of them) side by side, until the shortest ends."""
        return Dataset(Zipped.of((datasets, *others) if others else datasets))

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Dataset) -> Dataset:
        """Elements of the dataset whose number comes next out of `choice_dataset`."""
        return Dataset(Chosen(tuple(datasets), choice_dataset))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """This dataset's elements, then those of `dataset`.

        Raises:
          TypeError: if structures or dtypes differ.
        """
        joined = Dataset(Concatenated((self, dataset)), (), self._options)
        joined._element_spec = joined.source.element_spec()
        return joined

    # Choosing and ordering elements

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Random order within a reservoir: element i comes at position i - buffer_size + 1 or later.

        Args:
          buffer_size: Size of the reservoir; the number of elements for a full shuffle.
          seed: Makes the sequence of orders repeatable for a dataset built again.
          reshuffle_each_iteration: Whether each iteration has its own order (default True, also with a seed).
        """
        return self.with_stage(
            Shuffle.of(int(buffer_size), draw(seed), reshuffle_each_iteration is not False)
        )

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all if negative."""
        return self.with_stage(Take(int(count)))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none if negative."""
        return self.with_stage(Skip(int(count)))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every `num_shards`-th element, starting with number `index`."""
        return self.with_stage(Shard.of(int(num_shards), int(index)))

    def repeat(self, count: int | None = None) -> Dataset:
        """The elements `count` times; forever if None or negative."""
        return self.with_stage(Repeat(-1 if count is None else int(count)))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Elements for which `predicate` gives True.

        Raises:
          ValueError: if it gives something else than one bool, as far as made-up values can tell.
        """
        check_predicate(predicate, self, "filter")
        return self.with_stage(Filter(predicate))

    def take_while(self, predicate: Callable[..., Any]) -> Dataset:
        """Elements up to the first for which `predicate` gives False."""
        check_predicate(predicate, self, "take_while")
        return self.with_stage(TakeWhile(predicate))

    def unique(self) -> Dataset:
        """First occurrences of scalar int32, int64 or text elements, in order."""
        Unique.check(self.element_spec)
        return self.with_stage(Unique())

    def prefetch(self, buffer_size: int) -> Dataset:
        """The same elements, `buffer_size` of them made ready ahead where a host feeds its replicas."""
        return self.with_stage(Prefetch(int(buffer_size)))

    def cache(self, filename: str = "") -> Dataset:
        """Keeps the elements of the first complete pass, and gives those from then on."""
        return self.with_stage(Cache(filename))

    def assert_cardinality(self, expected_cardinality: int) -> Dataset:
        """States the number of elements; iterating checks it."""
        return self.with_stage(AssertCardinality(int(expected_cardinality)))

    # Grouping elements

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Stacks `batch_size` consecutive elements; shape `(batch_size, ...)`.

        Args:
          batch_size: Elements per batch.
          drop_remainder: Whether to leave out a smaller last batch; then the batch dimension is known.
        """
        return self.with_stage(Batch.of(int(batch_size), bool(drop_remainder)))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        *,
        drop_remainder: bool = False,
    ) -> Dataset:
        """As `batch`, each component padded to a shape, or to the largest where it says None."""
        return self.with_stage(
            PaddedBatch.of(self.element_spec, batch_size, padded_shapes, padding_values, drop_remainder)
        )

    def unbatch(self) -> Dataset:
        """Rows of the elements as elements."""
        Unbatch.check(self.element_spec)
        return self.with_stage(Unbatch())

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False
    ) -> Dataset:
        """Datasets of `size` elements each, starting every `shift` elements and taking every `stride`-th."""
        return self.with_stage(Window.of(size, size if shift is None else shift, stride, drop_remainder))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset], Dataset],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
    ) -> Dataset:
        """Collects elements by key; a full window becomes `reduce_func(key, window)`."""
        return self.with_stage(GroupByWindow.of(key_func, reduce_func, window_size, window_size_func))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        *,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches elements of similar length; a length equal to a boundary belongs to the upper bucket."""
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
        return self.with_stage(stage)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of a number and the element."""
        return self.with_stage(Enumerate(int(start)))

    # Computing with elements

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Replaces each element by `map_func(element)`; a tuple element is unpacked over the arguments.

        The function may be called with made-up values when `element_spec` is asked for.

        Args:
          map_func: Returns numbers, text, arrays, or tuples and dicts of them.
          num_parallel_calls: Threads that call it; None for the caller's own.
          deterministic: Whether results keep their order (default True).
        """
        if self._element_spec is not None or not self._asks_functions():
            probe.check_arguments(map_func, self.element_spec, "map")
        ordered = (
            self._options.experimental_deterministic is not False if deterministic is None else deterministic
        )
        threads = 4 if num_parallel_calls == AUTOTUNE else num_parallel_calls or 0
        return self.with_stage(Map(map_func, threads, ordered))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` gives, one dataset after the other."""
        return self.with_stage(Interleave("flat_map", map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """The elements of the datasets that `map_func` gives, `cycle_length` of them in turn.

        Order does not depend on `num_parallel_calls` and `deterministic`: the inner datasets are read by the
        caller.
        """
        del num_parallel_calls, deterministic
        return self.with_stage(Interleave.of(map_func, cycle_length, block_length))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Folds the elements: `state = reduce_func(state, element)`, starting with `initial_state`.

        Raises:
          TypeError: if the function changes structure or dtype of the state.
        """
        return fold(self, initial_state, reduce_func)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What `transformation_func(self)` gives.

        Raises:
          TypeError: if that is no dataset.
        """
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply: the function must return a Dataset, got {type(result).__name__}")
        return result

    # Options

    def options(self) -> Options:
        """The options of this dataset; later transformations carry them on."""
        if not self._options_are_own:
            self._options, self._options_are_own = copy.deepcopy(self._options), True
        return self._options

    def with_options(self, options: Options) -> Dataset:
        """The same dataset with `options` merged into its own; where both set one, the new value wins."""
        return Dataset(self.source, self.stages, self._options.merge(options))

    # Looking

    @property
    def element_spec(self) -> Any:
        """Nested `TensorSpec`s of an element. Functions of map stages are called to find out."""
        if self._element_spec is None:
            upstream = self.upstream()
            spec = self.source.element_spec() if upstream is None else self.stages[-1].element_spec(upstream)
            self._element_spec = spec
        return self._element_spec

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` (-1) or `UNKNOWN_CARDINALITY` (-2)."""
        upstream = self.upstream()
        return self.source.cardinality() if upstream is None else self.stages[-1].cardinality(upstream)

    def __len__(self) -> int:
        count = self.cardinality()
        if count == INFINITE_CARDINALITY:
            raise TypeError("an infinite dataset has no length; take(n) elements of it first")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError(
                "the length of this dataset is unknown before reading it; count with reduce, or "
                "assert_cardinality(n)"
            )
        return count

    def __bool__(self) -> bool:
        return True  # as the reference; `if dataset:` asks whether there is one, not whether it is empty

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self, self.next_pass())

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Elements as NumPy arrays and scalars (and bytes)."""
        return iter(self)

    def first(self) -> Any:
        """The first element.

        Raises:
          OutOfRangeError: if there is none.
        """
        for element in Elements(elements_of(self.open(Pass(Dataset)))):
            return element
        raise OutOfRangeError(f"{self!r} has no element")

    # The seams for stages, sharding and distribution

    def next_pass(self, *, provenance: bool = False) -> Pass:
        """The description of this dataset's next iteration."""
        self._epoch += 1  # two threads may get the same epoch: then their orders agree, nothing else
        return Pass(Dataset, self._epoch - 1, provenance)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts a pass; gives runs of elements."""
        return self._opener(len(self.stages), current)()

    def with_stage(self, stage: Stage) -> Dataset:
        """This dataset with one more stage at the end."""
        return Dataset(self.source, (*self.stages, stage), self._options)

    def with_source(self, source: Source, stages: tuple[Stage, ...]) -> Dataset:
        """Another pipeline with this one's options."""
        return Dataset(source, stages, self._options)

    def with_element_spec(self, spec: Any) -> Dataset:
        """This dataset, of which the element spec is known otherwise."""
        known = self.with_source(self.source, self.stages)
        known._element_spec = spec
        return known

    def upstream(self) -> Dataset | None:
        """This dataset without its last stage; None if there is none."""
        return Dataset(self.source, self.stages[:-1], self._options) if self.stages else None

    def _opener(self, depth: int, current: Pass) -> Opener:
        if depth == 0:
            return lambda: guarded(self.source.open(current))
        stage = self.stages[depth - 1].after(self.with_source(self.source, self.stages[: depth - 1]))
        below = self._opener(depth - 1, current)
        if stage.sees_failures:
            return lambda: guarded(stage.open(below, current))
        return lambda: opened(lambda upstream: stage.open(upstream, current), below)

    def _asks_functions(self) -> bool:
        """Whether finding out the element spec would call a user's function."""
        return any(hasattr(stage, "fn") for stage in self.stages)
