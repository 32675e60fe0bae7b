"""Arrow columns as NumPy arrays, without a loop over rows, and without a copy if layouts agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.data.formats.arrow_values import dtype_of, values_of
from workbench.data.formats.splits import PositionedTable
from workbench.data.spec import TensorSpec
from workbench.data.structure import Array, Structure
from workbench.data.tables import Rows, Run
from workbench.errors import DataLossError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ColumnReading:
    """How the columns of files become components of elements.

    Attributes:
      names: Columns to read; None for all.
      defaults: Replacements for null, by column.
    """

    names: tuple[str, ...] | None
    defaults: Mapping[str, Any]

    def chosen(self, schema: pa.Schema, path: str) -> list[str]:
        """The columns to read from a file.

        Raises:
          InvalidArgumentError: if one is missing, or there are no columns.
        """
        for name in dict.fromkeys([*(self.names or ()), *self.defaults]):
            if schema.names.count(name) != 1:
                found = "several columns" if name in schema.names else "no column"
                raise InvalidArgumentError(
                    f"{path!r} has {found} {name!r}; its columns are {', '.join(schema.names)}"
                )
        chosen = schema.names if self.names is None else list(self.names)
        if not chosen:
            raise InvalidArgumentError(f"{path!r} has no columns to read; give columns= that it has")
        return chosen

    def specs(self, schema: pa.Schema, path: str) -> dict[str, TensorSpec]:
        """The spec of each column that is read.

        Raises:
          InvalidArgumentError: if an array cannot hold a column's values.
        """
        return {name: _spec(schema.field(name).type, name, path) for name in self.chosen(schema, path)}

    def expect(self, specs: Mapping[str, TensorSpec], schema: pa.Schema, path: str) -> None:
        """Rejects a file whose columns differ from those of the first file.

        Args:
          specs: The specs of the first file's columns.
          schema: The columns of this file.
          path: Name of this file, for the error.

        Raises:
          InvalidArgumentError: if they differ.
        """
        found = self.specs(schema, path)
        for name in dict.fromkeys([*specs, *found]):
            if specs.get(name) != found.get(name):
                raise InvalidArgumentError(
                    f"{path!r}: column {name!r} is {found.get(name, 'missing')}, in the first file it is "
                    f"{specs.get(name, 'missing')}; write all files with one schema, or choose columns= they share"
                )

    def run(
        self,
        batch: pa.RecordBatch | pa.Table,
        names: Sequence[str],
        positions: Rows,
        path: str,
        structure: Structure | None = None,
    ) -> Run:
        """The rows of a record batch.

        Args:
          batch: Holds at least the columns `names`, each as one array.
          names: The names of the components.
          positions: The positions of the rows in the file.
          path: The path of the file, for errors.
          structure: The structure of an element, with the components in the order of `names`; None for a dict.

        Raises:
          DataLossError: if a null has no default.
          InvalidArgumentError: if lists of one column differ in length.
        """
        arrays = [
            _Column(name, path, positions, self.defaults.get(name)).array(batch.column(name))
            for name in names
        ]
        if structure is None:
            order, structure = columns_layout(names)
            arrays = [arrays[index] for index in order]
        return Run(PositionedTable(arrays, structure, positions), range(batch.num_rows))


def columns_layout(names: Sequence[str]) -> tuple[list[int], Structure]:
    """The order of components in a structure, which may differ from that of the columns."""
    # Not structure.flatten, which reorders a dict's keys to those of the first dict with the same names.
    order, spec = tree.flatten({name: index for index, name in enumerate(names)})
    return order, Structure(spec)


@dataclass(slots=True)
class _Column:
    name: str
    path: str
    positions: Rows
    default: Any
    inside: str = field(default="")

    def array(self, values: pa.Array | pa.ChunkedArray) -> Array:
        import pyarrow as pa

        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.null_count:
            values = self._filled(values)
        kind = values.type
        if pa.types.is_fixed_size_list(kind):
            return self._rows(values, kind.list_size)
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            lengths = values_of(values.value_lengths())
            if len(lengths) and lengths.min() != lengths.max():
                row = self.positions[int((lengths != lengths[0]).argmax())]
                raise InvalidArgumentError(
                    f"{self.path!r}: column {self.name!r} has lists of different lengths, first at row {row}; "
                    "leave it out with columns=, or write lists of one length"
                )
            return self._rows(values, int(lengths[0]) if len(lengths) else 0)
        return values_of(values)

    def _rows(self, values: pa.Array, length: int) -> Array:
        inner = _Column(self.name, self.path, range(1 << 62), None, " in a list").array(values.flatten())
        return inner.reshape(len(values), length, *inner.shape[1:])

    def _filled(self, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if self.default is not None:
            try:
                return values.fill_null(pa.scalar(self.default, values.type))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise InvalidArgumentError(
                    f"column {self.name!r} is {values.type}, its default {self.default!r} is not: {error}"
                ) from error
        if pa.types.is_floating(values.type) or pa.types.is_temporal(values.type):
            return values  # NaN or NaT
        row = int(values_of(values.is_null()).argmax())
        place = self.inside or f" at row {self.positions[row]}"
        raise DataLossError(
            f"{self.path!r}: column {self.name!r} has a null{place}; say what stands for it: "
            f"defaults={{{self.name!r}: ...}}, or leave the column out with columns=",
            file=self.path,
        )


def _spec(kind: pa.DataType, name: str, path: str) -> TensorSpec:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if (dtype := dtype_of(kind)) is not None:
        return TensorSpec((), dtype)
    if types.is_fixed_size_list(kind):
        return _spec(kind.value_type, name, path).batched(kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return _spec(kind.value_type, name, path).batched(None)
    raise InvalidArgumentError(
        f"{path!r}: column {name!r} is {kind}, which no array holds; leave it out with columns=, or write it as "
        "numbers, text or lists of one length"
    )
