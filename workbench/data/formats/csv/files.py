"""CSV files: parsed by Arrow in blocks of whole records; an unreadable record affects no others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from workbench.arguments import flag
from workbench.backends.numpy import as_dtype
from workbench.data.dataset import Dataset
from workbench.data.formats.columns import ColumnReading
from workbench.data.formats.csv.form import CsvForm, arrow_type, as_bytes
from workbench.data.formats.csv.records import fields_of, first_record, record_ends, whole_records
from workbench.data.formats.damage import damage_told
from workbench.data.formats.splits import SplitReader
from workbench.data.readers.files import read_files
from workbench.data.sources.compressed import blocks
from workbench.data.sources.files import file_names
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Run
from workbench.errors import DataLossError, InvalidArgumentError
from workbench.io.compression import check_compression

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES: Final = 1 << 20
_LOOKED_AT_BYTES: Final = 1 << 18  # records read to infer types


class CsvDataset(Dataset):
    """Rows of CSV files, as dicts of their columns.

    Types that are not given are inferred from the first rows of the first file: whole numbers, floats, booleans, dates,
    times, or text, which is bytes. Empty lines are skipped. A missing float is NaN; other types need a default. A
    record that cannot be read raises once, with its line and column, and the next ones follow. `AutoShardPolicy.FILE`
    distributes whole files among hosts.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      columns: Names of the columns to read; None for all.
      dtypes: Types by column; missing ones are inferred from the first file.
      defaults: Replacements for missing values, by column.
      header: Whether the first record of each file holds names of columns.
      column_names: Names of all columns, instead of those in the header; f0, f1, ... without either.
      delimiter: The character between fields.
      quote: The quotation mark, doubled inside quoted fields; "" if there is none.
      null_values: Texts of missing values, quoted or not.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      num_parallel_reads: If above 1, threads read that many files at a time; their rows alternate.

    Raises:
      TypeError: if the names are not text, or a dtype is invalid.
      InvalidArgumentError: if compression, delimiter or quote are invalid. Reading raises it for columns that a file
        lacks and records that do not fit, `DataLossError` for a truncated file, and `NotFoundError` for a missing file.
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
        *,
        header: bool = True,
        column_names: Sequence[str] | None = None,
        delimiter: str = ",",
        quote: str = '"',
        null_values: Sequence[str] = ("",),
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        reader = CsvFiles(
            file_names(filenames),
            check_compression(compression_type),
            reading=ColumnReading(
                None if columns is None else tuple(dict.fromkeys(columns)), dict(defaults or {})
            ),
            form=CsvForm(
                header=flag(header, "CSV: header"),
                names=None if column_names is None else tuple(column_names),
                delimiter=delimiter,
                quote=quote,
                null_values=tuple(null_values),
            ),
            dtypes={name: as_dtype(dtype) for name, dtype in (dtypes or {}).items()},
        )
        reader.check_dtypes()
        read_files(self, reader, num_parallel_reads)


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvFiles(SplitReader):
    """Rows of CSV files. A file is one split: where a record begins is known only from the start of the file.

    Attributes:
      reading: Which columns, and what replaces null.
      form: How the files are written.
      dtypes: Types by column.
      structure: The structure of an element, with the columns in the order of `reading.names`; None for dicts.
      strict: Whether every value without default must be present; otherwise, missing text is empty and a missing float
        NaN.
    """

    name: ClassVar[str] = "CSV rows"
    split_names: ClassVar[str] = "files"
    reading: ColumnReading
    form: CsvForm
    dtypes: Mapping[str, np.dtype[Any]]
    structure: Structure | None = None
    strict: bool = False

    def check_dtypes(self) -> None:
        """Rejects types that Arrow cannot read from text.

        Raises:
          InvalidArgumentError: if there is one.
        """
        import pyarrow as pa

        for name, dtype in self.dtypes.items():
            try:
                self.form.parse(b"0\n", [name], {name: arrow_type(dtype)})
            except pa.ArrowNotImplementedError as error:
                raise InvalidArgumentError(
                    f"CSV: column {name!r} cannot be read as {dtype}: {error}"
                ) from error
            except pa.ArrowInvalid:  # "0" may not be a date
                pass

    def element_spec(self) -> Any:
        """The nested spec of an element, from the given types or the first file."""
        import pyarrow as pa

        named = self.reading.specs(pa.schema(self._types()), "")
        return named if self.structure is None else self.structure.pack(list(named.values()))

    def count_splits(self, path: str) -> int:
        """How many parts a file has: one."""
        return 1

    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The rows of a file."""
        types = self._types()
        records: _Records | None = None
        line, row = 1, 0
        for text in self._texts(path):
            start = 0
            if records is None:
                names, start = self._columns(text, path)
                if names:
                    self._check_columns(names, types, path)
                    records = _Records(self, path, names, types)
            if records is not None:
                for run in records.runs(text[start:], line + text.count(b"\n", 0, start), row):
                    yield run
                    row += len(run) or 1
            line += text.count(b"\n")
        if records is None and self.form.header:
            raise DataLossError(
                f"{path!r} is empty: it has no header; give header=False if it may be", file=path
            )

    def _texts(self, path: str) -> Iterator[bytes]:
        content = blocks(path, self.compression, self.block_bytes or _BLOCK_BYTES)
        return whole_records(content, self.form.quote, path)

    def _columns(self, text: bytes, path: str) -> tuple[tuple[str, ...], int]:
        """The names of the columns, and where the first row begins. No names if there are only empty lines."""
        start = first_record(text)
        if start == len(text):
            return (), start
        end = start + int(record_ends(text[start:], self.form.quote)[0])
        return self.form.columns(text[start:end], path), end if self.form.header else start

    def _types(self) -> dict[str, pa.DataType]:
        """The types of the columns that are read."""
        names = self.reading.names or self.form.names
        if names is not None and all(name in self.dtypes for name in names):
            return {name: arrow_type(self.dtypes[name]) for name in names}
        path = self.first_file()
        head = b""
        for text in self._texts(path):
            head += text
            if len(head) >= _LOOKED_AT_BYTES:
                break
        names, start = self._columns(head, path)
        if not names:
            raise InvalidArgumentError(
                f"{path!r} is empty, so the types of its columns are unknown; give dtypes="
            )
        return self._looked_up(head[start:], names, path)

    def _check_columns(self, names: Sequence[str], types: Mapping[str, Any], path: str) -> None:
        import pyarrow as pa

        chosen = self.reading.chosen(pa.schema([(name, pa.null()) for name in names]), path)
        if set(chosen) != set(types):
            raise InvalidArgumentError(
                f"{path!r} has columns {', '.join(names)}, in the first file they are {', '.join(types)}; "
                "choose columns= that all files have"
            )

    def _looked_up(self, text: bytes, names: Sequence[str], path: str) -> dict[str, pa.DataType]:
        import pyarrow as pa

        chosen = self.reading.chosen(pa.schema([(name, pa.null()) for name in names]), path)
        given = {name: arrow_type(self.dtypes[name]) for name in chosen if name in self.dtypes}
        unknown = {name: pa.null() for name in chosen if name not in given}
        types = dict(given)
        if text and unknown:
            with damage_told(path, "CSV"):
                try:
                    table = self.form.parse(text, names, unknown)
                except pa.ArrowInvalid:
                    table = self.form.parse(self._fitting(text, len(names)), names, unknown)
            types |= {field.name: as_bytes(field.type) for field in table.schema}
        for name in chosen:
            if pa.types.is_null(types.get(name, pa.null())):
                raise InvalidArgumentError(
                    f"{path!r}: column {name!r} has no value in the first rows, so its type is unknown; "
                    f"give dtypes={{{name!r}: ...}}"
                )
        return {name: types[name] for name in chosen}

    def _fitting(self, text: bytes, width: int) -> bytes:
        """The records of a text that have `width` fields, plus an empty line, because Arrow rejects an empty text."""
        ends = record_ends(text, self.form.quote).tolist()
        records = [text[start:end] for start, end in itertools.pairwise([0, *ends])]
        return b"".join(record for record in records if self._width(record) == width) + b"\n"

    def _width(self, record: bytes) -> int:
        try:
            return len(fields_of(record, self.form.delimiter, self.form.quote))
        except InvalidArgumentError:
            return -1


class _Records:
    """The records of one file, as rows."""

    def __init__(
        self, files: CsvFiles, path: str, names: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> None:
        import pyarrow as pa

        texts = {} if files.strict else {name: b"" for name, kind in types.items() if kind == pa.binary()}
        self._reading = replace(files.reading, defaults=texts | dict(files.reading.defaults))
        self._files, self._path, self._names, self._types = files, path, names, types

    def runs(self, text: bytes, line: int, row: int) -> Iterator[Run]:
        """The rows of some records, with a `Failed` in place of each record that cannot be read.

        Arrow parses all of a text or nothing, so this halves the text until it finds the record.
        """
        import pyarrow as pa

        waiting = [(text, line)]
        while waiting:
            text, line = waiting.pop()
            try:
                run = self._run(text, row) if text else None
            except (pa.ArrowInvalid, InvalidArgumentError, DataLossError) as error:
                run = None
                ends = record_ends(text, self._files.form.quote)
                if len(ends) == 1:
                    run = Failed(self._explained(text, line, error))
                else:
                    middle = int(ends[len(ends) // 2 - 1])
                    waiting.append((text[middle:], line + text.count(b"\n", 0, middle)))
                    waiting.append((text[:middle], line))
            if isinstance(run, Failed):
                yield run
                row += 1
            elif run is not None and len(run):
                yield run
                row += len(run)

    def _run(self, text: bytes, row: int) -> Run:
        form, structure = self._files.form, self._files.structure
        table = form.parse(text, self._names, self._types).combine_chunks()
        for name in self._types if self._files.strict else ():
            if table.column(name).null_count and name not in self._reading.defaults:
                raise InvalidArgumentError(_missing(name))
        positions = range(row, row + table.num_rows)
        return self._reading.run(table, list(self._types), positions, self._path, structure)

    def _explained(self, record: bytes, line: int, error: Exception) -> InvalidArgumentError:
        """What is wrong with one record."""
        import pyarrow as pa

        form = self._files.form
        place = f"{self._path!r}, line {line}"
        try:
            fields = fields_of(record, form.delimiter, form.quote)
        except InvalidArgumentError:
            return InvalidArgumentError(f"{place}: {error}")
        if len(fields) != len(self._names):
            return InvalidArgumentError(
                f"{place} has {len(fields)} field(s), {len(self._names)} are expected: {record[:60]!r}"
            )
        for name, kind in self._types.items():
            field = fields[self._names.index(name)]
            try:
                column = form.parse(record, self._names, {name: kind}).column(name)
            except pa.ArrowInvalid:
                return InvalidArgumentError(
                    f"{place}, column {name!r}: {field[:60]!r} cannot be read as {kind}"
                )
            if (
                column.null_count
                and name not in self._reading.defaults
                and (self._files.strict or not pa.types.is_floating(kind))
            ):
                return InvalidArgumentError(f"{place}, {_missing(name)}")
        return InvalidArgumentError(f"{place}: {error}")


def _missing(name: str) -> str:
    return f"column {name!r} has no value; say what stands for it: a default for {name!r}"
