"""Datasets made from datasets: one after the other, side by side, or chosen by another dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, cast

import numpy as np

from workbench import tree
from workbench.arguments import flag
from workbench.backends.users_line import warn
from workbench.data.options import Options
from workbench.data.passes import Pass
from workbench.data.provenance import DATASET_SHIFT
from workbench.data.sources.memory import Slices
from workbench.data.sources.random_numbers import RandomNumbers
from workbench.data.spec import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    TensorSpec,
    UnknownSpec,
    is_dataset,
    relax,
    spec_unread,
)
from workbench.data.stage import Pipeline, Source
from workbench.data.structure import Structure, flatten
from workbench.data.tables import ArrayTable, Failed, Item, Run, attempts, single
from workbench.errors import DataWarning, FailedPreconditionError, InvalidArgumentError, OutOfRangeError

_MOST_PASSED_OVER: Final = 1_000_000  # nothing shows whether another element will ever be chosen

_STOP: Final = "stop_on_empty_dataset"


def covering_spec(specs: Sequence[Any]) -> Any:
    """The nested spec that covers those of concatenated datasets.

    Raises:
      TypeError: if structures or dtypes differ.
    """
    first, *others = specs
    for other in others:
        try:
            first = relax(first, other)
        except TypeError as error:
            raise TypeError(
                f"concatenate needs elements of one structure and dtype, got {first} and {other}: {error}"
            ) from None
    return first


@dataclass(frozen=True, eq=False)
class Concatenated(Source):
    """The elements of the first dataset, then those of the next."""

    name: ClassVar[str] = "concatenate"
    datasets: tuple[Pipeline, ...]

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        passes = _passes(self.datasets, current)
        for number, dataset in enumerate(self.datasets):
            for run in dataset.open(passes[number]):
                yield current.numbered(run, number << DATASET_SHIFT)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return covering_spec(self._known_specs())

    def _known_specs(self) -> list[Any]:
        """The specs of the datasets whose elements are known; some empty datasets have none.

        Raises:
          OutOfRangeError: if no dataset has one.
        """
        known = []
        for dataset in self.datasets:
            with suppress(OutOfRangeError):
                known.append(dataset.element_spec)
        return known or [self.datasets[0].element_spec]

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        counts = [dataset.cardinality() for dataset in self.datasets]
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)

    def inputs(self) -> tuple[Pipeline, ...]:
        """The datasets that are combined."""
        return self.datasets

    def with_inputs(self, inputs: tuple[Pipeline, ...]) -> Concatenated:
        """The same combination of other datasets."""
        return Concatenated(inputs)


@dataclass(frozen=True, eq=False)
class Zipped(Source):
    """One element of each dataset at a time, until the shortest ends.

    Attributes:
      datasets: The datasets, left to right.
      structure: The structure that their elements are put into.
      joined: All columns in one table, if every dataset is just arrays in memory.
    """

    name: ClassVar[str] = "zip"
    datasets: tuple[Pipeline, ...]
    structure: tree.Spec
    joined: ArrayTable | None = None

    @staticmethod
    def of(datasets: Any) -> Zipped:
        """Takes an arbitrarily nested tuple or dict of datasets.

        Raises:
          TypeError: if something in it is not a dataset.
          InvalidArgumentError: if there is none.
        """
        leaves, structure = tree.flatten_records(
            datasets, is_leaf=lambda node: node is None or isinstance(node, list)
        )
        if not leaves:
            raise InvalidArgumentError(f"zip combines one dataset at least, got {datasets!r:.60}")
        for leaf in leaves:
            if not is_dataset(leaf):
                raise TypeError(
                    f"zip takes datasets in tuples or dicts, got {type(leaf).__name__}; wrap it in a "
                    "Dataset first"
                )
        return Zipped(tuple(leaves), structure, _joined(leaves, structure))

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if self.joined is not None:
            if self.cardinality():
                yield Run(self.joined, range(self.cardinality()))
            return
        streams = [
            attempts(dataset.open(inner), current.provenance)
            for dataset, inner in zip(self.datasets, _passes(self.datasets, current), strict=True)
        ]
        packed: Structure | None = None
        for attempted in zip(*streams, strict=False):
            failed = next((item for item in attempted if isinstance(item, Failed)), None)
            # Drops the items that belong to it; otherwise the streams would no longer match.
            if failed is not None:
                yield failed
                continue
            group = cast("tuple[Item, ...]", attempted)
            if packed is None:
                packed = flatten(
                    tree.unflatten(self.structure, [structure.pack(row) for row, structure, _ in group])
                )[1]
            yield single([leaf for row, _, _ in group for leaf in row], packed, group[0][2])

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return tree.unflatten(self.structure, [dataset.element_spec for dataset in self.datasets])

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        counts = [dataset.cardinality() for dataset in self.datasets]
        finite = [count for count in counts if count != INFINITE_CARDINALITY]
        if UNKNOWN_CARDINALITY in finite:
            return UNKNOWN_CARDINALITY
        return min(finite) if finite else INFINITE_CARDINALITY

    def inputs(self) -> tuple[Pipeline, ...]:
        """The datasets that are combined."""
        return self.datasets

    def with_inputs(self, inputs: tuple[Pipeline, ...]) -> Zipped:
        """The same combination of other datasets."""
        return Zipped(inputs, self.structure, _joined(inputs, self.structure))


@dataclass(frozen=True, eq=False)
class Chosen(Source):
    """Takes each element from the dataset whose number `choice` gives next.

    Attributes:
      datasets: The datasets.
      choice: Their numbers, in the order in which they are read.
      stop_on_empty: Whether to end when an exhausted dataset is chosen; if not, that choice is skipped.
      name: The source's name in texts.
    """

    datasets: tuple[Pipeline, ...]
    choice: Pipeline
    stop_on_empty: bool = True
    name: str = "choose_from_datasets"  # type: ignore[misc]  # one algorithm, two public names

    @staticmethod
    def of(datasets: tuple[Pipeline, ...], choice: Pipeline, stop_on_empty: bool) -> Chosen:
        """Checks the arguments.

        Args:
          datasets: At least one.
          choice: The dataset of numbers.
          stop_on_empty: Whether to end when an exhausted dataset is chosen.

        Raises:
          InvalidArgumentError: if there is no dataset.
          TypeError: if the choices are not whole numbers, or elements of the datasets differ in structure or dtype.
        """
        _some((choice,), "choose_from_datasets: choice_dataset")
        chosen = Chosen(_some(datasets, "choose_from_datasets"), choice, flag(stop_on_empty, _STOP))
        spec = spec_unread(choice)
        if not isinstance(spec, UnknownSpec) and spec != TensorSpec((), np.int64):
            raise TypeError(
                f"choose_from_datasets: choices are int64 scalars, not {spec}; map them to such, as with np.int64(x)"
            )
        return chosen.checked()

    def checked(self) -> Chosen:
        """Itself, if the datasets may be mixed.

        Raises:
          TypeError: if their elements are known to differ in structure or dtype.
        """
        with suppress(OutOfRangeError):  # none of their specs is known
            self.with_inputs(tuple(each.unread() for each in self.inputs())).element_spec()
        return self

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        *passes, choosing = _passes((*self.datasets, self.choice), current)
        streams = [
            attempts(dataset.open(inner), current.provenance)
            for dataset, inner in zip(self.datasets, passes, strict=True)
        ]
        left = set(range(len(streams)))
        passed_over = 0
        for choice in attempts(self.choice.open(choosing), False):
            if isinstance(choice, Failed):
                yield choice
                continue
            (number,), _, _ = choice
            if not 0 <= number < len(streams):
                yield Failed(
                    InvalidArgumentError(
                        f"{self.name}: {number} chosen, but there are {len(streams)} datasets"
                    )
                )
                continue
            chosen = next(streams[number], None)
            if chosen is not None:
                passed_over = 0
                element = chosen if isinstance(chosen, Failed) else single(*chosen)
                yield current.numbered(element, int(number) << DATASET_SHIFT)
                continue
            left.discard(int(number))
            if self.stop_on_empty or not left:
                return
            passed_over += 1
            if passed_over == _MOST_PASSED_OVER:
                self._report_passed_over(sorted(left))

    def _report_passed_over(self, left: list[int]) -> None:
        told = (
            f"{self.name}: the last {_MOST_PASSED_OVER:,} choices were of datasets that have ended; give "
            f"stop_on_empty_dataset=True, or choose datasets that are left, too: number {', '.join(map(str, left))}"
        )
        count = self.choice.cardinality()
        if count == INFINITE_CARDINALITY:
            raise FailedPreconditionError(told)
        if count == UNKNOWN_CARDINALITY:  # the choices may still end, or name another dataset
            warn(told, DataWarning)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return Concatenated(self.datasets).element_spec()

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        if self.choice.cardinality() != INFINITE_CARDINALITY:
            return UNKNOWN_CARDINALITY
        if not self.stop_on_empty or len(self.datasets) == 1:
            return Concatenated(self.datasets).cardinality()
        endless = all(dataset.cardinality() == INFINITE_CARDINALITY for dataset in self.datasets)
        return INFINITE_CARDINALITY if endless else UNKNOWN_CARDINALITY

    def options(self) -> Options:
        """The options of the choices and of the datasets, merged."""
        return self.choice.options().merge(super().options())  # type: ignore[no-any-return]

    def inputs(self) -> tuple[Pipeline, ...]:
        """The datasets that are combined."""
        return self.datasets

    def with_inputs(self, inputs: tuple[Pipeline, ...]) -> Chosen:
        """The same combination of other datasets."""
        return replace(self, datasets=inputs)


def chosen_by_weight(
    datasets: tuple[Pipeline, ...],
    weights: Any,
    random: RandomNumbers,
    stop_on_empty: bool,
    dataset: Callable[[Source], Any],
) -> Source:
    """Takes each element from a dataset chosen at random.

    Args:
      datasets: The datasets.
      weights: Numbers, a dataset of arrays of them, or None.
      random: The source of random numbers.
      stop_on_empty: See `Chosen`.
      dataset: Makes a dataset from a source.

    Raises:
      InvalidArgumentError: if there is no dataset, or weights do not fit.
    """
    name = "sample_from_datasets"
    _some(datasets, name)
    if is_dataset(weights):
        pairs = Zipped.of((weights, dataset(random)))
        choice = dataset(pairs).map(_Draw(len(datasets)))
    else:
        wanted = _weights(np.ones(len(datasets)) if weights is None else weights, len(datasets))
        # A dataset without weight is never chosen, so its end would never be noticed.
        asked = [number for number, weight in enumerate(wanted) if weight]
        datasets = tuple(datasets[number] for number in asked)
        choice = dataset(replace(random, weights=tuple(wanted[number] for number in asked)))
    chosen = Chosen(datasets, choice, flag(stop_on_empty, _STOP), name)
    return chosen.checked()


@dataclass(frozen=True)
class _Draw:
    """Turns weights and a random number into an index."""

    count: int

    def __call__(self, weights: Any, number: Any) -> np.int64:
        ends = np.cumsum(_weights(weights, self.count))
        return np.int64(np.searchsorted(ends, int(number) / (1 << 32) * ends[-1], side="right"))


def _weights(given: Any, count: int) -> list[float]:
    try:
        weights = np.asarray(given, np.float64)
    except TypeError:
        weights = np.empty(0)
    if weights.shape != (count,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InvalidArgumentError(
            f"sample_from_datasets: weights must be {count} numbers of at least 0, one per dataset, with a positive "
            f"sum, got {given!r:.80}"
        )
    found: list[float] = weights.tolist()
    return found


def _some(datasets: tuple[Pipeline, ...], name: str) -> tuple[Pipeline, ...]:
    if not datasets:
        raise InvalidArgumentError(f"{name} needs at least one dataset, got none")
    for dataset in datasets:
        if not is_dataset(dataset):
            raise TypeError(f"{name} takes datasets, got {type(dataset).__name__}")
    return datasets


def _passes(datasets: Sequence[Pipeline], current: Pass) -> list[Pass]:
    """The pass for each of the datasets.

    A dataset with a seed keeps its order, so that two datasets can be shuffled alike. A dataset that occurs twice, or
    shares random parts with an earlier one, gets another order.
    """
    passes: list[Pass] = []
    before: list[set[int]] = []
    for number, dataset in enumerate(datasets):
        random = set(_random_parts(dataset))
        twins = sum(bool(random & earlier) for earlier in before)
        passes.append(current.inside(0, twins).at_input(number))
        before.append(random)
    return passes


def _random_parts(dataset: Pipeline) -> Iterator[int]:
    for part in (dataset.source, *dataset.stages):
        if getattr(part, "seed", None) is not None:
            yield id(part)
    for inner in dataset.source.inputs():
        yield from _random_parts(inner)


def _joined(datasets: Sequence[Pipeline], structure: tree.Spec) -> ArrayTable | None:
    """The columns of all datasets as one table, if all of them are arrays in memory."""
    tables = [
        dataset.source.table
        for dataset in datasets
        if isinstance(dataset.source, Slices) and not dataset.stages
    ]
    if not tables or len(tables) < len(datasets):
        return None
    rows = min(len(table.columns[0]) for table in tables)
    columns = [column[:rows] for table in tables for column in table.columns]
    element = tree.unflatten(structure, [table.structure.pack([0] * len(table.columns)) for table in tables])
    return ArrayTable(tuple(columns), flatten(element)[1])
