"""The ways to make a dataset: from memory, numbers, functions, file names, and other datasets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from workbench.arguments import flag, optional_flag
from workbench.data.seeds import draw
from workbench.data.sources.combine import Chosen, Zipped, chosen_by_weight
from workbench.data.sources.counting import Counter, Counting
from workbench.data.sources.files import matching_files
from workbench.data.sources.generator import Generated, checked_signature, signature_of
from workbench.data.sources.memory import Slices, Whole
from workbench.data.sources.random_numbers import RandomNumbers
from workbench.data.stage import Pipeline, Source, Stage
from workbench.data.stages.ordering.shuffle import Shuffle
from workbench.errors import WrongType


class Constructors(ABC):
    """The constructors of `Dataset`, the only class that inherits it. A `name` appears in texts and errors."""

    @classmethod
    @abstractmethod
    def of_source(cls, source: Source, name: str | None = None) -> Self:
        """The dataset of a source's elements."""

    @abstractmethod
    def with_stage(self, stage: Stage, name: str | None = None) -> Self:
        """This dataset with one more stage at the end."""

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Self:
        """Makes one element of each row of the arrays, without a copy; tuples are structure, a list is one array.

        Raises:
          ValueError: for scalars, or first dimensions that differ.

        >>> pairs = wb.data.Dataset.from_tensor_slices({"x": [1, 2], "y": ["a", "b"]})
        >>> [(int(pair["x"]), pair["y"]) for pair in pairs]
        [(1, b'a'), (2, b'b')]
        """
        return cls.of_source(Slices.of(tensors), name)

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Self:
        """A single element."""
        return cls.of_source(Whole.of(tensors), name)

    @classmethod
    def range(cls, *args: int, output_type: Any = np.int64, name: str | None = None) -> Self:
        """The numbers of Python's `range`.

        Args:
          *args: `stop`, or `start, stop`, or `start, stop, step`.
          output_type: The dtype of the numbers.
          name: Name of the source.

        >>> [int(x) for x in wb.data.Dataset.range(2, 8, 3)]
        [2, 5]
        """
        return cls.of_source(Counting.of(args, output_type), name)

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] = (),
        output_signature: Any = None,
        name: str | None = None,
    ) -> Self:
        """Makes a dataset of what `generator(*args)` yields; each iteration calls the function again.

        Args:
          generator: A function that returns an iterable.
          output_types: Nested dtypes, if there is no `output_signature`.
          output_shapes: Nested shapes to go with them; unknown if None.
          args: Arguments for `generator`.
          output_signature: Nested `TensorSpec`s.
          name: Name of the source.

        Raises:
          TypeError: if neither a signature nor types are given, if those given are invalid, or if `generator` is not a
            function, such as the result of calling one.

        >>> dataset = wb.data.Dataset.from_generator(lambda: (n / 2 for n in range(3)), output_types="float32")
        >>> [float(x) for x in dataset]
        [0.0, 0.5, 1.0]
        """
        if not callable(generator):
            raise WrongType(
                f"from_generator takes a function that returns an iterable, as each iteration calls it again, got "
                f"{type(generator).__name__}; leave out the call, or write lambda: ..."
            )
        if output_signature is None:
            output_signature = signature_of(output_types, output_shapes)
        signature = checked_signature(output_signature)
        return cls.of_source(Generated(generator, signature, tuple(args or ())), name)

    @classmethod
    def list_files(
        cls,
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Names of the files that match the patterns; shuffled unless `shuffle=False`, else sorted.

        Args:
          file_pattern: A shell pattern, which may be a URL (`s3://bucket/*.csv`), or a list of them.
          shuffle: Whether each iteration has its own order (default True).
          seed: Seed of that order.
          name: Name of the source.

        Raises:
          InvalidArgumentError: if nothing matches.
          UnavailableError: if the server of a URL cannot be reached.
        """
        is_sorted = optional_flag(shuffle, "list_files: shuffle") is False
        names = matching_files(file_pattern)
        dataset = cls.from_tensor_slices(names, name)
        return dataset if is_sorted else dataset.with_stage(Shuffle.of(len(names), draw(seed), True))

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Self:
        """Combines the elements of several datasets, one of each, until the shortest dataset ends.

        Args:
          args: Datasets, or one tuple or dict of them.
          datasets: The same as a keyword.
          name: Name of the source.

        Raises:
          TypeError: if there is no dataset, or an argument is not one.

        >>> numbers = wb.data.Dataset.range(2)
        >>> [(int(a), int(b)) for a, b in wb.data.Dataset.zip(numbers, numbers.map(lambda x: 10 * x))]
        [(0, 0), (1, 10)]
        """
        if bool(args) == (datasets is not None):
            raise WrongType("zip takes datasets, or a tuple or dict of them, once: zip(a, b) or zip((a, b))")
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        return cls.of_source(Zipped.of(given), name)

    @classmethod
    def random(
        cls,
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Endless random whole numbers from 0 to 2**32 - 1, int64 scalars.

        Args:
          seed: Makes the numbers repeatable when the dataset is built again; they differ from TensorFlow's.
          rerandomize_each_iteration: Whether each iteration has other numbers (default False).
          name: Name of the source.
        """
        again = _each_iteration(rerandomize_each_iteration, "random", default=False)
        return cls.of_source(RandomNumbers(draw(seed), again), name)

    @classmethod
    def counter(cls, start: Any = 0, step: Any = 1, dtype: Any = np.int64, name: str | None = None) -> Self:
        """The numbers `start`, `start + step`, `start + 2 * step`, ... without end.

        Args:
          start: The first number.
          step: The difference between two numbers; may be negative.
          dtype: The dtype of the numbers.
          name: Name of the source.
        """
        return cls.of_source(Counter.of(start, step, dtype), name)

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Any], choice_dataset: Pipeline, stop_on_empty_dataset: bool = True
    ) -> Self:
        """Takes each element from the dataset whose number `choice_dataset` gives next.

        Args:
          datasets: At least one.
          choice_dataset: A dataset of int64 scalars from 0 to `len(datasets) - 1`.
          stop_on_empty_dataset: Whether to end when an exhausted dataset is chosen; if not, that choice is skipped.

        Raises:
          InvalidArgumentError: if there is no dataset.
          TypeError: if the choices are not whole numbers, or elements of the datasets differ in structure or dtype.
        """
        return cls.of_source(Chosen.of(tuple(datasets), choice_dataset, stop_on_empty_dataset))

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Any],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Self:
        """Takes each element from a dataset chosen at random.

        Args:
          datasets: At least one.
          weights: How often each is chosen, in proportion: numbers of at least 0, or a dataset with one array of them
            per element; None for equal weights.
          seed: Makes the choices repeatable when the dataset is built again.
          stop_on_empty_dataset: Whether to end when an exhausted dataset is chosen; if not, the others continue.
          rerandomize_each_iteration: Whether each iteration makes other choices (default True).

        Raises:
          InvalidArgumentError: if there is no dataset, or weights do not fit.
        """
        again = _each_iteration(rerandomize_each_iteration, "sample_from_datasets", default=True)
        if not isinstance(datasets, Iterable):
            raise WrongType(f"sample_from_datasets takes a list of datasets, got {datasets!r:.60}")
        random = RandomNumbers(draw(seed), again)
        return cls.of_source(
            chosen_by_weight(tuple(datasets), weights, random, stop_on_empty_dataset, cls.of_source)
        )


def _each_iteration(given: bool | None, name: str, *, default: bool) -> bool:
    return default if given is None else flag(given, f"{name}: rerandomize_each_iteration")
