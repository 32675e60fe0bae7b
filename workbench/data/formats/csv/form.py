"""How CSV files are written, and which type of Arrow a column is read as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.formats.csv.numbers import (
    as_numbers,
    is_number,
    looked_up,
    may_be_hexadecimal,
    may_be_refused,
)
from workbench.data.formats.csv.records import fields_of
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class CsvForm:
    """How the files are written.

    Attributes:
      header: Whether the first record of each file holds names of columns.
      names: The names of all columns, if they are known without a file.
      delimiter: The character between fields.
      quote: The quotation mark, "" if there is none.
      null_values: Texts of missing values.
      numbered: Whether columns are called f0, f1, ..., whatever the header says.
      widths: How many columns a file may have; None for any number.
    """

    header: bool
    names: tuple[str, ...] | None
    delimiter: str
    quote: str
    null_values: tuple[str, ...]
    numbered: bool = False
    widths: range | None = None

    def __post_init__(self) -> None:
        marks = {"delimiter": self.delimiter, "quote": self.quote}
        for what, mark in marks.items():
            if len(mark.encode()) > 1 or mark in ("\n", "\r") or (what == "delimiter" and not mark):
                raise InvalidArgumentError(
                    f"CSV: {what} is {mark!r}; it is one character of ASCII, no line end"
                )
        if self.delimiter == self.quote:
            raise InvalidArgumentError(f"CSV: delimiter and quote are both {self.quote!r}; they must differ")
        if self.names is not None and len(set(self.names)) != len(self.names):
            raise InvalidArgumentError(f"CSV: column_names has a name twice: {', '.join(self.names)}")

    def columns(self, record: bytes, path: str) -> tuple[str, ...]:
        """The names of a file's columns, given its first record.

        Raises:
          InvalidArgumentError: if the file's columns are not the expected ones.
        """
        try:
            found = fields_of(record, self.delimiter, self.quote)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{path!r}: {error}") from error
        if self.names is not None:
            return self.names
        if self.widths is not None and len(found) not in self.widths:
            raise InvalidArgumentError(
                f"{path!r} has {len(found)} columns, {self.widths[0]} are expected; name each column that is left out"
            )
        if self.header and not self.numbered:
            return tuple(found)
        return tuple(f"f{number}" for number in range(len(found)))

    def parse(self, text: bytes, names: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """The columns of some records.

        Args:
          text: Whole records.
          names: The names of all columns.
          types: The types of the columns to read; null to infer them.

        Raises:
          pyarrow.ArrowInvalid: if a record does not fit.
        """
        import pyarrow as pa

        unknown = any(map(pa.types.is_null, types.values()))
        if may_be_hexadecimal(text) or (unknown and may_be_refused(text)):
            return self._parse_texts(text, names, types)
        try:
            return self._read(text, names, types)
        except pa.ArrowInvalid:
            if not may_be_refused(text):
                raise
        return self._parse_texts(text, names, types)

    def _parse_texts(self, text: bytes, names: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """The columns of some records, with numbers read as text first."""
        import pyarrow as pa

        found = dict(types)
        if any(map(pa.types.is_null, types.values())):
            found = {field.name: field.type for field in self._read(text, names, types).schema}
        numbers = {name: kind for name, kind in found.items() if is_number(kind)}
        table = self._read(text, names, found | dict.fromkeys(numbers, pa.string()))
        for name, kind in numbers.items():
            read = looked_up if pa.types.is_null(types[name]) else as_numbers
            table = table.set_column(table.column_names.index(name), name, read(table.column(name), kind))
        return table

    def _read(self, text: bytes, names: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.csv

        known = {name: kind for name, kind in types.items() if not pa.types.is_null(kind)}
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(names)),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                newlines_in_values=bool(self.quote),
            ),
            pyarrow.csv.ConvertOptions(
                column_types=known,
                include_columns=list(types),
                null_values=self.null_values,
                strings_can_be_null=True,
            ),
        )


def arrow_type(dtype: np.dtype[Any]) -> pa.DataType:
    """The type that a column is read as.

    Raises:
      InvalidArgumentError: if there is none.
    """
    import pyarrow as pa

    try:
        return pa.binary() if dtype == STRING else pa.from_numpy_dtype(dtype)
    except pa.ArrowNotImplementedError as error:
        raise InvalidArgumentError(f"CSV: no column can be read as {dtype}: {error}") from error


def as_bytes(kind: pa.DataType) -> pa.DataType:
    """An inferred type, with text as bytes, which need not be UTF-8."""
    import pyarrow as pa

    return pa.binary() if pa.types.is_string(kind) else kind
