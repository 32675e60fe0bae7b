"""CSV files under the names of tf.data.experimental: tuples of columns, and batches for training."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench.arguments import flag, whole_number
from workbench.backends.numpy import STRING, as_dtype
from workbench.data.dataset import Dataset
from workbench.data.formats.columns import ColumnReading
from workbench.data.formats.csv.files import CsvFiles
from workbench.data.formats.csv.form import CsvForm
from workbench.data.formats.csv.inference import CSV_TYPES, CsvHeads, inferred_defaults
from workbench.data.options import AUTOTUNE
from workbench.data.sources.files import file_names, matching_files
from workbench.data.structure import convert, flatten
from workbench.errors import InvalidArgumentError
from workbench.io.compression import check_compression

_TYPE_NAMES: Final = {"string", *(dtype.name for dtype in CSV_TYPES)}


class CsvDataset(Dataset):
    """Rows of CSV files as tuples of scalars, as tf.data.experimental.CsvDataset.

    `wb.data.CsvDataset` yields dicts, and infers types from the file. A record that cannot be read raises once, and the
    next ones follow. A quotation mark inside an unquoted field is part of it; the reference rejects it.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      record_defaults: For each column, a type if values are required, or the replacement for missing ones. Types are
        int32, int64, float32, float64 and "string" (`str`, `bytes`), or an empty array of one.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      buffer_size: Bytes read at a time; None for 1 MiB.
      header: Whether to skip the first record of each file.
      field_delim: The character between fields.
      use_quote_delim: Whether '"' is a quotation mark.
      na_value: The text of a missing value, besides an empty field.
      select_cols: Numbers of the columns to read, ascending; `record_defaults` belong to these. None for all.
      exclude_cols: Numbers of the columns to skip; excludes `select_cols`.

    Raises:
      TypeError: if the names are not text, or a type or default has another type than these.
      InvalidArgumentError: if arguments are inconsistent. Reading raises it for records that do not fit.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        quote = '"' if flag(use_quote_delim, "CsvDataset: use_quote_delim") else ""
        columns = [_Default.of(default, number) for number, default in enumerate(record_defaults)]
        selected = _ascending("select_cols", select_cols)
        left_out = _ascending("exclude_cols", exclude_cols)
        numbers = _numbers(len(columns), selected, left_out)
        names = tuple(f"f{number}" for number in numbers)
        reader = CsvFiles(
            file_names(filenames),
            check_compression(compression_type),
            int(buffer_size or 0),
            reading=ColumnReading(names, _defaults(names, columns)),
            form=CsvForm(
                header=flag(header, "CsvDataset: header"),
                names=names if selected is None and left_out is None else None,
                delimiter=field_delim,
                quote=quote,
                null_values=("", na_value),
                numbered=True,
                widths=None if left_out is None else _widths(numbers, left_out),
            ),
            dtypes={name: column.dtype for name, column in zip(names, columns, strict=True)},
            structure=flatten(tuple(np.zeros(len(names))))[1],
            strict=True,
        )
        super().__init__(reader)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Shuffled batches of CSV files: dicts of columns `(batch_size,)`, or pairs of such a dict and the labels.

    Args:
      file_pattern: A shell pattern, or a list of them.
      batch_size: Rows per batch; the last one may be smaller only with `num_epochs`.
      column_names: Names of all columns; None for those in the header of the first file.
      column_defaults: For each (selected) column, a type or the replacement for missing values, as for `CsvDataset`.
        None infers types; then 0 or empty text replaces missing values.
      label_name: The column that is the label; None for no labels.
      select_columns: Names or numbers of the columns to read; None for all.
      field_delim: The character between fields.
      use_quote_delim: Whether '"' is a quotation mark.
      na_value: The text of a missing value, besides an empty field.
      header: Whether the first record of each file holds names.
      num_epochs: How often to read the files; None for endlessly.
      shuffle: Whether files and rows are shuffled.
      shuffle_buffer_size: Rows that are shuffled at a time.
      shuffle_seed: Makes the order repeatable.
      prefetch_buffer_size: Batches made ahead; None to let AUTOTUNE choose.
      num_parallel_reads: Files that threads read at a time; their rows alternate. None for one.
      sloppy: Whether their order may differ from pass to pass.
      num_rows_for_inference: Rows from which types are inferred; None for all.
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      ignore_errors: Whether to skip records that cannot be read.

    Raises:
      InvalidArgumentError: if no file matches, or arguments are inconsistent with each other or the header.
    """
    header = flag(header, "make_csv_dataset: header")
    quote = '"' if flag(use_quote_delim, "make_csv_dataset: use_quote_delim") else ""
    shuffle = flag(shuffle, "make_csv_dataset: shuffle")
    in_order = not flag(sloppy, "make_csv_dataset: sloppy")
    ignore_errors = flag(ignore_errors, "make_csv_dataset: ignore_errors")
    paths = matching_files(file_pattern)
    content = CsvHeads(paths, field_delim, quote, check_compression(compression_type))
    names = list(column_names) if column_names is not None else _header(content, header)
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"make_csv_dataset: a column name occurs twice: {', '.join(names)}")
    numbers = _selected(select_columns, names)
    if column_defaults is None:
        rows = content.rows(header, len(names))
        column_defaults = inferred_defaults(rows, numbers, na_value, num_rows_for_inference)
    if len(column_defaults) != len(numbers):
        raise InvalidArgumentError(
            f"make_csv_dataset: {len(column_defaults)} column_defaults for {len(numbers)} column(s); give one for each"
        )
    chosen = [names[number] for number in numbers]
    if label_name is not None and label_name not in chosen:
        raise InvalidArgumentError(
            f"make_csv_dataset: label_name {label_name!r} is none of the columns {', '.join(chosen)}"
        )
    columns = [_Default.of(default, number) for number, default in enumerate(column_defaults)]
    reader = CsvFiles(
        tuple(paths),
        content.compression,
        reading=ColumnReading(tuple(chosen), _defaults(chosen, columns)),
        form=CsvForm(
            header=header,
            names=tuple(names),
            delimiter=field_delim,
            quote=content.quote,
            null_values=("", na_value),
        ),
        dtypes={name: column.dtype for name, column in zip(chosen, columns, strict=True)},
        strict=True,
    )
    dataset: Dataset = Dataset.from_tensor_slices(paths)
    if shuffle:
        dataset = dataset.shuffle(len(paths), shuffle_seed)
    cycle = num_parallel_reads or 1
    dataset = dataset.interleave(
        _OneFile(reader, ignore_errors),
        cycle,
        num_parallel_calls=None if cycle == 1 else cycle,
        deterministic=in_order,
    )
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    if label_name is not None:
        dataset = dataset.map(Labelled(label_name))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _header(content: CsvHeads, there: bool) -> list[str]:
    if not there:
        raise InvalidArgumentError("make_csv_dataset: give column_names, as the files have no header")
    return content.header()


@dataclass(frozen=True, slots=True)
class _OneFile:
    """Returns the dataset of one file."""

    reader: CsvFiles
    ignore_errors: bool

    def __call__(self, name: Any) -> Dataset:
        dataset = Dataset(self.reader.of_one(name))
        return dataset.ignore_errors() if self.ignore_errors else dataset


@dataclass(frozen=True, slots=True)
class Labelled:
    """Separates the label from a batch."""

    label: str

    def __call__(self, columns: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """The other columns, and the label."""
        return {name: column for name, column in columns.items() if name != self.label}, columns[self.label]


@dataclass(frozen=True, slots=True)
class _Default:
    """The type of a column, and the value that replaces a missing one, if any."""

    dtype: np.dtype[Any]
    value: Any = None

    @staticmethod
    def of(given: Any, number: int) -> _Default:
        if isinstance(given, type | np.dtype) or (isinstance(given, str) and given in _TYPE_NAMES):
            default = _Default(as_dtype(given))
        else:
            value = convert(given)
            values = np.ravel(np.asarray(value, STRING if isinstance(value, bytes) else None))
            if len(values) > 1:
                raise InvalidArgumentError(
                    f"the default of column {number} has {len(values)} values; give one"
                )
            default = _Default(values.dtype, values[0] if len(values) else None)
        if default.dtype != STRING and default.dtype not in CSV_TYPES:
            raise TypeError(
                f"column {number} cannot be read as {default.dtype}; use int32, int64, float32, float64 or str"
            )
        return default


def _defaults(names: Sequence[str], columns: Sequence[_Default]) -> dict[str, Any]:
    pairs = zip(names, columns, strict=True)
    return {name: column.value for name, column in pairs if column.value is not None}


def _widths(numbers: list[int], left_out: list[int]) -> range:
    """How many columns a file may have so that, without those left out, the columns `numbers` remain."""
    least = most = numbers[-1] + 1
    while most in left_out:
        most += 1
    return range(least, most + 1)


def _numbers(count: int, selected: list[int] | None, left_out: list[int] | None) -> list[int]:
    """The positions of the `count` columns to read."""
    if not count:
        raise InvalidArgumentError(
            "CsvDataset: record_defaults is empty; give a type or a default for each column"
        )
    if selected is not None and left_out is not None:
        raise InvalidArgumentError("CsvDataset takes select_cols or exclude_cols, not both")
    if left_out is not None:
        return list(itertools.islice((n for n in itertools.count() if n not in left_out), count))
    if selected is None:
        return list(range(count))
    if len(selected) != count:
        raise InvalidArgumentError(
            f"CsvDataset: {len(selected)} select_cols and {count} record_defaults; give one default for each column"
        )
    return selected


def _ascending(what: str, numbers: Iterable[int] | None) -> list[int] | None:
    if numbers is None:
        return None
    found = [whole_number(number, f"CsvDataset: each of {what}") for number in numbers]
    if found != sorted(set(found)) or (found and found[0] < 0):
        raise InvalidArgumentError(
            f"CsvDataset: {what} is {found}; numbers of columns ascend from 0, each once"
        )
    return found


def _selected(select: Sequence[int | str] | None, names: Sequence[str]) -> list[int]:
    if select is None:
        return list(range(len(names)))
    numbers = []
    for column in select:
        if isinstance(column, str) and column in names:
            numbers.append(names.index(column))
        elif not isinstance(column, str) and 0 <= int(column) < len(names):
            numbers.append(int(column))
        else:
            raise InvalidArgumentError(
                f"make_csv_dataset: select_columns has {column!r}; the columns are {', '.join(names)}"
            )
    if len(set(numbers)) != len(numbers):
        raise InvalidArgumentError(f"make_csv_dataset: select_columns has a column twice: {list(select)}")
    return sorted(numbers)
