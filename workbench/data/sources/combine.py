"""Datasets made of datasets: one after the other, side by side, or chosen by another dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from workbench import tree
from workbench.data.passes import Pass
from workbench.data.provenance import DATASET_SHIFT
from workbench.data.sources.memory import Slices
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, relax
from workbench.data.stage import Pipeline, Source
from workbench.data.structure import Structure, flatten
from workbench.data.tables import ArrayTable, Failed, Item, Run, attempts, single
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Concatenated(Source):
    """The elements of the first dataset, then those of the next."""

    name: ClassVar[str] = "concatenate"
    datasets: tuple[Pipeline, ...]

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        for number, dataset in enumerate(self.datasets):
            for run in dataset.open(current):
                yield current.numbered(run, number << DATASET_SHIFT)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        first, *others = (dataset.element_spec for dataset in self.datasets)
        for other in others:
            try:
                first = relax(first, other)
            except TypeError as error:
                raise TypeError(
                    f"concatenate needs elements of one structure and dtype, got {first} and {other}: {error}"
                ) from None
        return first

    def cardinality(self) -> int:
        """Number of elements, or what stands for endless and unknown."""
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
        """Takes a tuple or dict of datasets, nested as you like.

        Raises:
          TypeError: if something in it is no dataset.
        """
        leaves, structure = tree.flatten(datasets)
        for leaf in leaves:
            if not hasattr(leaf, "element_spec"):
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
        streams = [attempts(dataset.open(current), current.provenance) for dataset in self.datasets]
        packed: Structure | None = None
        for attempted in zip(*streams, strict=False):
            failed = next((item for item in attempted if isinstance(item, Failed)), None)
            if failed is not None:  # with what belongs to it, or the others would have the wrong partners
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
        """Number of elements, or what stands for endless and unknown."""
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
    """The next element of the dataset whose number comes next out of `choice`."""

    name: ClassVar[str] = "choose_from_datasets"
    datasets: tuple[Pipeline, ...]
    choice: Pipeline

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        streams = [attempts(dataset.open(current), current.provenance) for dataset in self.datasets]
        for choice in attempts(self.choice.open(current), False):
            if isinstance(choice, Failed):
                yield choice
                continue
            (number,), _, _ = choice
            if not 0 <= number < len(streams):
                raise InvalidArgumentError(
                    f"choose_from_datasets: {number} chosen, but there are {len(streams)} datasets"
                )
            chosen = next(streams[number], None)
            if chosen is None:
                return
            yield chosen if isinstance(chosen, Failed) else single(*chosen)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return Concatenated(self.datasets).element_spec()

    def cardinality(self) -> int:
        """Number of elements, or what stands for endless and unknown."""
        return UNKNOWN_CARDINALITY

    def inputs(self) -> tuple[Pipeline, ...]:
        """The datasets that are combined."""
        return self.datasets

    def with_inputs(self, inputs: tuple[Pipeline, ...]) -> Chosen:
        """The same combination of other datasets."""
        return Chosen(inputs, self.choice)


def _joined(datasets: Sequence[Pipeline], structure: tree.Spec) -> ArrayTable | None:
    """The columns of all datasets as one table, if they are nothing but arrays in memory."""
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
