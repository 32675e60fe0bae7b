"""`Dataset`: a source and a tuple of stages, as tf.data.Dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from workbench import tree
from workbench.arguments import function
from workbench.data.constructors import Constructors
from workbench.data.describe import DatasetText
from workbench.data.explanation import DEFAULT_SECONDS, InputExplanation, explain_dataset
from workbench.data.failing import guarded, opened
from workbench.data.fold import fold
from workbench.data.iterator import DatasetIterator, Elements, elements_of
from workbench.data.meter import StageMeter
from workbench.data.methods.computing import Computing
from workbench.data.methods.grouping import Grouping
from workbench.data.methods.ordering import Ordering
from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Cardinality, DatasetSpec
from workbench.data.stage import Opener, Source, Stage, calls_functions
from workbench.data.stages.observed import observed
from workbench.data.stages.ordering.select import Repeat
from workbench.data.stored.methods import DatasetFiles
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError, OutOfRangeError, WrongType

_DEFAULTS = Options().frozen()
_TWIN = 1 << 20  # the level for stages that share a seed, higher than any number of nested repetitions


class Dataset(DatasetText, DatasetFiles, Constructors, Ordering, Grouping, Computing):
    """A description of where elements come from and what is done to them (as tf.data.Dataset).

    It holds no iterator and no open file, so it can be sent to other processes; each `iter` starts from the beginning.
    Elements are arrays, NumPy scalars or bytes, in tuples and dicts.

    Attributes:
      source: Where elements come from.
      stages: What is done to them, in order.

    >>> dataset = wb.data.Dataset.range(6).map(lambda x: x * x).batch(4)
    >>> list(dataset)
    [array([0, 1, 4, 9]), array([16, 25])]
    """

    def __init__(
        self, source: Source, stages: tuple[Stage, ...] = (), options: Options | None = None
    ) -> None:
        self.source = source
        self.stages = stages
        self._options = options or _DEFAULTS
        self._epoch = 0
        self._element_spec: Any = None
        self._reads = True

    # Folding

    def reduce(
        self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str | None = None
    ) -> Any:
        """Folds the elements: `state = reduce_func(state, element)`, starting with `initial_state`.

        Args:
          initial_state: The first state, nested arrays or numbers.
          reduce_func: Returns the next state, with the structure and dtypes of the first.
          name: Appears in errors.

        Returns:
          The last state.

        Raises:
          TypeError: if the function changes structure or dtype of the state.

        >>> int(wb.data.Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x))
        10
        """
        function(reduce_func, "reduce: reduce_func")
        return fold(self, initial_state, reduce_func, "reduce" if name is None else f"reduce {name!r}")

    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset that has one.

        Raises:
          InvalidArgumentError: if it has none, or several.
        """
        elements = iter(self)
        which = "get_single_element" if name is None else f"get_single_element {name!r}"
        for element in elements:
            for _ in elements:
                raise InvalidArgumentError(f"{which}: {self!r} has more than one element; take(1) first")
            return element
        raise InvalidArgumentError(f"{which}: {self!r} has no element")

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `transformation_func(self)`, so that calls can be chained.

        Raises:
          TypeError: if the result is not a dataset.
        """
        result = function(transformation_func, "apply: transformation_func")(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply: the function must return a Dataset, got {type(result).__name__}")
        return result

    # Options

    def options(self) -> Options:
        """The options of this dataset; later transformations keep them. `with_options` changes them."""
        return self._options

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same dataset with `options` merged into its own; where both set one, the new value wins.

        Raises:
          TypeError: if they are not `Options`.
        """
        if not isinstance(options, Options):
            raise WrongType(f"with_options takes Options, got {type(options).__name__} {options!r:.60}")
        return self._with(self.source, self.stages, self._options.merge(options).frozen())

    # Looking

    @property
    def element_spec(self) -> Any:
        """Nested `TensorSpec`s of an element. Functions of map stages are called to find out.

        Raises:
          OutOfRangeError: if a function raises for made-up values, and no element could be made; its error is the
            cause.
        """
        if self._element_spec is None:
            upstream = self.upstream()
            spec = self.source.element_spec() if upstream is None else self.stages[-1].element_spec(upstream)
            self._element_spec = spec
        return self._element_spec

    @property
    def known_element_spec(self) -> Any:
        """`element_spec`; None if it is unknown without calling the user's functions."""
        if self._element_spec is None and not calls_functions(self):
            with suppress(OutOfRangeError):
                return self.element_spec
        return self._element_spec

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` (-1) or `UNKNOWN_CARDINALITY` (-2)."""
        upstream = self.upstream()
        return Cardinality(
            self.source.cardinality() if upstream is None else self.stages[-1].cardinality(upstream)
        )

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
        return True  # as the reference: `if dataset:` checks for None, not for emptiness

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self, self.next_pass())

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Elements as NumPy arrays and scalars (and bytes).

        Raises:
          TypeError: if elements hold datasets, such as windows.
        """
        spec = self.known_element_spec
        if any(isinstance(part, DatasetSpec) for part in tree.flatten(spec)[0]):
            raise TypeError(
                f"as_numpy_iterator gives arrays, but elements hold datasets: {spec}; batch and flatten them: "
                "dataset.flat_map(lambda inner: inner.batch(n))"
            )
        return iter(self)

    def first(self) -> Any:
        """The first element.

        Raises:
          OutOfRangeError: if there is none.
        """
        for element in Elements(self.attempted()):
            return element
        raise OutOfRangeError(f"{self!r} has no element")

    def attempted(self) -> Iterator[Any]:
        """The elements of one pass, with a `Failed` for each one that could not be made."""
        return elements_of(self.open(self.numbered_pass(0))) if self._reads else iter(())

    def explain(self, elements: int | None = None, seconds: float = DEFAULT_SECONDS) -> InputExplanation:
        """Runs the pipeline briefly, and shows what each stage costs and which one limits it.

        It makes a separate pass, which ends at whichever bound comes first, so the dataset's iterators and shuffled
        orders do not change. It calls the functions of stages, and reads generators and files. It reads a complete
        cache or snapshot, but neither fills nor writes an incomplete one. It counts elements that cannot be made, and
        reads the clock between elements.

        Args:
          elements: The most elements to take; None for no bound.
          seconds: The longest time to take elements.

        Raises:
          InvalidArgumentError: if the bounds leave nothing to measure.
          Exception: the error of the first element, if it cannot be made.
        """
        return explain_dataset(
            self, replace(self.numbered_pass(0), keeps=False), elements=elements, seconds=seconds
        )

    # The interface for stages, sharding and distribution

    def next_pass(self, *, provenance: bool = False) -> Pass:
        """The description of this dataset's next iteration."""
        self._epoch += 1  # two threads may get the same epoch; then they only see the same order
        return self.numbered_pass(self._epoch - 1, provenance=provenance)

    def numbered_pass(self, epoch: int, *, provenance: bool = False) -> Pass:
        """The description of the iteration with this number."""
        return Pass(Dataset, epoch, provenance, options=self._options)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts a pass; yields runs of elements."""
        return self._opener(len(self.stages), current, current.meter.input_of(self))()

    @classmethod
    def of_source(cls, source: Source, name: str | None = None) -> Dataset:
        """The dataset of a source's elements, with the options of what it combines."""
        return Dataset(source.named(name), options=source.options().frozen() if source.inputs() else None)

    def with_stage(self, stage: Stage, name: str | None = None) -> Dataset:
        """This dataset with one more stage at the end."""
        return self.with_source(self.source, (*self.stages, stage.named(name)))

    def with_source(self, source: Source, stages: tuple[Stage, ...]) -> Dataset:
        """Another pipeline with this one's options."""
        return self._with(source, stages, self._options)

    def with_element_spec(self, spec: Any) -> Dataset:
        """The same dataset with an element spec that is already known, so that no function is called to find it out."""
        known = self.with_source(self.source, self.stages)
        known._element_spec = spec
        return known

    def upstream(self) -> Dataset | None:
        """This dataset without its last stage; None if there is none."""
        return self.with_source(self.source, self.stages[:-1]) if self.stages else None

    def unread(self) -> Dataset:
        """This dataset as new stages inspect it: inspection reads none of its elements."""
        source = self.source.with_inputs(tuple(each.unread() for each in self.source.inputs()))
        other = self.with_source(source, self.stages).with_element_spec(self._element_spec)
        other._reads = False
        return other

    def _with(self, source: Source, stages: tuple[Stage, ...], options: Options) -> Dataset:
        """Another pipeline. Adding a stage to it may read elements if the same holds for this one."""
        other = Dataset(source, stages, options)
        other._reads = self._reads
        return other

    def _opener(self, depth: int, current: Pass, meters: Sequence[StageMeter] | None) -> Opener:
        if meters is None:
            opener = self._unmeasured(depth, current, None)
        else:
            meter = meters[depth]
            opener = partial(meter.around, self._unmeasured(depth, current.measured_by(meter), meters))
        if not current.keeps or current.options.experimental_stats.aggregator is None:
            return opener
        return partial(observed, self.stages[depth - 1].text if depth else self.source.text, opener, current)

    def _unmeasured(self, depth: int, current: Pass, meters: Sequence[StageMeter] | None) -> Opener:
        if depth == 0:
            return lambda: guarded(self.source.open(current))
        stage = self.stages[depth - 1].after(self.with_source(self.source, self.stages[: depth - 1]))
        # `repeat` reopens its upstream for each repetition; the level distinguishes nested ones.
        openings = itertools.count()
        level = 1 + sum(isinstance(each, Repeat) for each in self.stages[:depth])

        def open_stage() -> Iterator[Run]:
            here = current.inside(level, next(openings))
            kept = replace(here, in_order=True) if stage.keeps_elements else here
            below = self._opener(depth - 1, kept, meters)
            within = here.inside(_TWIN, self._twins(depth)).at_stage(depth)
            if stage.sees_failures:
                return guarded(stage.open(below, within))
            return opened(lambda upstream: stage.open(upstream, within), below)

        return open_stage

    def _twins(self, depth: int) -> int:
        """How many earlier stages share the seed of stage `depth`, and so must draw other numbers."""
        seed = getattr(self.stages[depth - 1], "seed", None)
        if seed is None:
            return 0
        below = (self.source, *self.stages[: depth - 1])
        return sum(getattr(each, "seed", None) == seed for each in below)
