"""Dask collections as sources: partitions are divided among hosts and read where they are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.data.dataset import Dataset
from workbench.data.formats.columns import ColumnReading
from workbench.data.sources.files import FileReader
from workbench.data.sources.memory import read_only
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec, relax, spec_of
from workbench.data.stage import Pipeline, Stage
from workbench.data.stages.ordering.select import Shard
from workbench.data.structure import LEAF, convert, flatten_result
from workbench.data.tables import ArrayTable, ListTable, Run
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    from workbench.runtime.partitions import Partition

_LABEL = "dask.dataframe"
_PREFIX = "partition "


def from_dask(
    collection: Any,
    columns: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    element_spec: Any = None,
) -> Dataset:
    """The rows of a `dask.array`, the rows of a `dask.dataframe` as dicts of columns, or the items of a `dask.bag`.

    A pass reads partition by partition, and holds one at a time. `AutoShardPolicy.FILE`, which AUTO chooses,
    distributes partitions among hosts. For a persisted collection, a host first gets the partitions that its workers
    hold; the reading process uses its own without a copy, and fetches the others from the workers that hold them:
    nothing passes through the notebook. The reading process computes the partitions of other collections, once per
    pass; it repeats tasks that several of them need, so persist a collection after a shuffle or join.

    Args:
      collection: The collection; an array may only be chunked along its first axis.
      columns: Names of the columns of a data frame to read; None for all.
      defaults: Replacements for null in a data frame, by column.
      element_spec: Nested `TensorSpec`s of an item of a bag; None reads the first item when needed.

    Raises:
      TypeError: if it is not such a collection.
      InvalidArgumentError: if an array is a scalar or chunked along another axis, an array cannot hold a column's
        values, or a collection that is not persisted is computed from one that is.
    """
    from workbench.runtime.partitions import partitions_of

    kind = f"{type(collection).__module__}.{type(collection).__name__}"
    reading: _Reading
    match kind.split(".")[:2], type(collection).__name__:
        case ["dask", "array"], _:
            reading = _Blocks.of(collection)
        case _, "DataFrame" if kind.startswith(("dask.dataframe.", "dask_expr.")):
            reading = _Frames.of(collection, columns, defaults)
        case ["dask", "bag"], "Bag":
            reading = _Items(element_spec)
        case _:
            raise TypeError(
                f"from_dask takes a dask.array, dask.dataframe or dask.bag, got {kind}; of a series make a data frame: "
                "series.to_frame()"
            )
    parts = tuple(partitions_of(collection))
    names = tuple(f"{_PREFIX}{number}" for number in range(len(parts)))
    return Dataset(DaskPartitions(names, reading=reading, parts=parts))


def lies_on_workers(dataset: Pipeline) -> bool:
    """Whether workers of a cluster hold what a dataset reads."""
    if isinstance(dataset.source, DaskPartitions):
        return any(hasattr(part, "scheduler") for part in dataset.source.parts)
    return any(map(lies_on_workers, dataset.source.inputs()))


def placed(dataset: Dataset, workers: Sequence[frozenset[str]]) -> Dataset:
    """Orders the partitions of a dataset so that each host gets those that its workers hold.

    Waits until they hold them; raises an error from computing them.

    Args:
      dataset: Any dataset.
      workers: Addresses of the workers of each host.
    """
    from workbench.runtime.partitions import wait_for

    source = dataset.source
    if not isinstance(source, DaskPartitions):
        return dataset
    wait_for(source.parts)
    return dataset.with_source(source.placed(workers), dataset.stages)


@dataclass(frozen=True, eq=False, kw_only=True)
class DaskPartitions(FileReader):
    """Elements from the partitions of a collection, which this reader treats like files.

    Attributes:
      reading: How a partition becomes elements.
      parts: The partitions, by number.
    """

    name: ClassVar[str] = "Dask partitions"
    reads: ClassVar[str] = "partitions of Dask"
    reading: _Reading
    parts: tuple[Partition, ...]

    def read(self, path: str) -> Iterator[Run]:
        """The elements of one partition."""
        if run := self.reading.run(self._part(path).read(), path):
            yield run

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.reading.spec(self.parts)

    def cardinality(self) -> int:
        """Number of elements, if the collection knows it."""
        if isinstance(self.files, tuple):
            return self.reading.count(len(self.files))
        return UNKNOWN_CARDINALITY

    def sharded(self, shard: Stage, dataset: Pipeline) -> FileReader:
        """The reader of only the partitions that `shard` keeps.

        Raises:
          InvalidArgumentError: if there are fewer partitions than hosts.
        """
        if isinstance(shard, Shard) and len(self.parts) < shard.num_shards:
            raise InvalidArgumentError(
                f"{len(self.parts)} partition(s) of Dask cannot be divided among {shard.num_shards} hosts; cut the "
                f"collection into at least {shard.num_shards}, or use AutoShardPolicy.DATA or AutoShardPolicy.OFF"
            )
        return super().sharded(shard, dataset)

    def placed(self, workers: Sequence[frozenset[str]]) -> DaskPartitions:
        """The partitions in another order, so that hosts with these workers can take them in turn."""
        from workbench.runtime.partitions import holders

        assert isinstance(self.files, tuple)
        held = holders(self.parts)
        left = dict.fromkeys(range(len(self.parts)))
        hosts = len(workers)
        order: list[int | None] = [None] * len(self.parts)
        for position in range(len(order)):
            mine = workers[position % hosts]
            order[position] = next((number for number in left if held[number] & mine), None)
            left.pop(order[position], None)  # type: ignore[arg-type]  # there is no None among them
        rest = iter(left)
        numbers = [next(rest) if number is None else number for number in order]
        return replace(self, files=tuple(self.files[number] for number in numbers))

    def _part(self, path: str) -> Partition:
        return self.parts[int(path.removeprefix(_PREFIX))]


class _Reading(ABC):
    """How the partitions of one kind of collection become elements."""

    @abstractmethod
    def run(self, value: Any, path: str) -> Run | None:
        """The elements of a partition; None if it has none."""

    @abstractmethod
    def spec(self, parts: Sequence[Partition]) -> Any:
        """The nested spec of an element."""

    def count(self, parts: int) -> int:
        """Number of elements in all partitions, if that is known."""
        return UNKNOWN_CARDINALITY


@dataclass(frozen=True)
class _Blocks(_Reading):
    """Rows of arrays.

    Attributes:
      row: The spec of a row.
      lengths: Rows of each block; None if unknown.
    """

    row: TensorSpec
    lengths: tuple[int | None, ...]

    @staticmethod
    def of(array: Any) -> _Blocks:
        """Checks an array.

        Raises:
          InvalidArgumentError: if it has no rows, or its chunks split them.
        """
        if array.ndim == 0:
            raise InvalidArgumentError("from_dask cuts along the first dimension, but the array is a scalar")
        if cut := [axis for axis in range(1, array.ndim) if len(array.chunks[axis]) > 1]:
            whole = ", ".join(f"{axis}: -1" for axis in cut)
            raise InvalidArgumentError(
                f"from_dask: the array has chunks of {array.chunksize} for shape {array.shape}, so rows lie in "
                f"several; have each block hold whole rows: array.rechunk({{{whole}}})"
            )
        shape = tuple(None if np.isnan(size) else int(size) for size in array.shape[1:])
        lengths = tuple(None if np.isnan(size) else int(size) for size in array.chunks[0])
        return _Blocks(TensorSpec(shape, array.dtype), lengths)

    def run(self, value: Any, path: str) -> Run | None:
        """The rows of a block."""
        rows = convert(np.asarray(value))
        return Run(ArrayTable((read_only(rows),), LEAF), range(len(rows))) if len(rows) else None

    def spec(self, parts: Sequence[Partition]) -> Any:
        """The spec of a row."""
        return self.row

    def count(self, parts: int) -> int:
        """Number of rows."""
        known = [length for length in self.lengths if length is not None]
        return sum(known) if len(known) == parts else UNKNOWN_CARDINALITY


@dataclass(frozen=True, eq=False)
class _Frames(_Reading):
    """Rows of data frames.

    Attributes:
      columns: Which columns, and what replaces null.
      specs: The spec of each column.
    """

    columns: ColumnReading
    specs: dict[str, TensorSpec]

    @staticmethod
    def of(frame: Any, columns: Sequence[str] | None, defaults: Mapping[str, Any] | None) -> _Frames:
        """Checks a data frame.

        Raises:
          InvalidArgumentError: if a column is missing, or an array cannot hold its values.
        """
        import pyarrow as pa

        chosen = None if columns is None else tuple(dict.fromkeys(columns))
        reading = ColumnReading(chosen, dict(defaults or {}))
        schema = pa.Schema.from_pandas(frame._meta, preserve_index=False)
        for (
            name
        ) in schema.names:  # in an empty frame, nothing shows the type of objects; only text is possible here
            if pa.types.is_null(schema.field(name).type):
                schema = schema.set(schema.get_field_index(name), pa.field(name, pa.large_string()))
        return _Frames(reading, reading.specs(schema, _LABEL))

    def run(self, value: Any, path: str) -> Run | None:
        """The rows of a data frame."""
        import pyarrow as pa

        table = pa.Table.from_pandas(value[list(self.specs)], preserve_index=False)
        if not table.num_rows:
            return None
        label = f"{_LABEL}, {path}"
        self.columns.expect(self.specs, table.schema, label)
        batch = table.combine_chunks().to_batches()[0]
        return self.columns.run(batch, list(self.specs), range(table.num_rows), label)

    def spec(self, parts: Sequence[Partition]) -> Any:
        """The nested spec of a row."""
        return dict(self.specs)


@dataclass(frozen=True, eq=False)
class _Items(_Reading):
    """Items of bags.

    Attributes:
      given: The nested spec of an item; None to read the first one.
    """

    given: Any

    def run(self, value: Any, path: str) -> Run | None:
        """The items of a partition."""
        flat = [flatten_result(item) for item in value]
        if not flat:
            return None
        structure = flat[0][1]
        if odd := next((number for number, (_, found) in enumerate(flat) if found != structure), 0):
            raise InvalidArgumentError(
                f"from_dask: item {odd} of {path} has a different structure from item 0; map the bag to items "
                f"of one kind"
            )
        ids = [np.array([number]) for number in range(len(flat))]
        return Run(ListTable([leaves for leaves, _ in flat], structure, ids), range(len(flat)))

    def spec(self, parts: Sequence[Partition]) -> Any:
        """The nested spec of an item.

        Raises:
          InvalidArgumentError: if there is none to read.
        """
        if self.given is not None:
            return self.given
        for number, part in enumerate(parts):
            if run := self.run(part.read(), f"{_PREFIX}{number}"):
                pack = run.table.structure.pack
                specs = [pack([spec_of(leaf) for leaf in run.table.row(row)]) for row in (0, len(run) - 1)]
                return relax(*specs)
        raise InvalidArgumentError(
            "from_dask: the bag is empty, so nothing tells what items are; give element_spec"
        )
