"""Datasets as Arrow batches, and in formats based on them: pandas, Hugging Face."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arguments import count
from workbench.backends.numpy import STRING
from workbench.data.dataset import Dataset
from workbench.data.spec import INFINITE_CARDINALITY, required_spec
from workbench.errors import InvalidArgumentError, LibraryMissing

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_BATCH_ROWS = 1024


def to_arrow_batches(dataset: Dataset, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The elements as rows of Arrow record batches: a column per component of a dict, or per place in a tuple.

    Components of shape (n,) and more are lists of a fixed size, or of any size if they differ. Bytes are binary
    columns.

    Args:
      dataset: Elements are dicts of arrays, tuples of arrays (columns "0", "1", ...) or arrays (column "0").
      batch_rows: Elements per record batch.

    Raises:
      InvalidArgumentError: if elements are nested deeper, or no batch would have a row.
    """
    import pyarrow as pa

    batch_rows = count(batch_rows, "to_arrow_batches: batch_rows")
    names = _names(dataset)
    elements = iter(dataset)
    return (
        pa.record_batch(
            [_column([row[name] for row in rows]) for name in names], names=[str(n) for n in names]
        )
        for rows in iter(lambda: [_row(element) for element in itertools.islice(elements, batch_rows)], [])
    )


def to_dataframe(dataset: Dataset) -> Any:
    """The elements as rows of a `pandas.DataFrame`: a column per component, text as `str` where it is UTF-8.

    Raises:
      LibraryMissing: without pandas.
      InvalidArgumentError: if the dataset is endless, or elements are nested deeper than dicts or tuples of arrays.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise LibraryMissing("pandas is not installed: pip install pandas") from error

    _finite(dataset, "to_dataframe")
    names = _names(dataset)
    rows = [_row(element) for element in dataset]
    return pd.DataFrame({str(name): [_plain(row[name]) for row in rows] for name in names})


def to_hugging_face(dataset: Dataset) -> Any:
    """The elements as rows of a `datasets.Dataset` in memory: a column per component, through Arrow.

    Raises:
      LibraryMissing: without the library datasets.
      InvalidArgumentError: if the dataset is endless or empty, or elements are nested deeper than dicts or tuples of
        arrays.
    """
    try:
        import datasets
    except ImportError as error:
        raise LibraryMissing("the library datasets is not installed: pip install datasets") from error
    import pyarrow as pa

    _finite(dataset, "to_hugging_face")
    batches = list(to_arrow_batches(dataset))
    if not batches:
        raise InvalidArgumentError(
            "to_hugging_face: the dataset has no element, so its columns have no types"
        )
    table = pa.Table.from_batches(batches)
    text = [name for name in table.column_names if pa.types.is_large_binary(table.schema.field(name).type)]
    for name in text:  # Arrow's users expect str
        try:
            column = table.column(name).cast(pa.large_string())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(table.column_names.index(name), name, column)
    return datasets.Dataset(datasets.table.InMemoryTable(table))


def _finite(dataset: Dataset, function: str) -> None:
    if dataset.cardinality() == INFINITE_CARDINALITY:
        raise InvalidArgumentError(f"{function}: the dataset is endless; take(n) elements of it first")


def _names(dataset: Dataset) -> list[Any]:
    spec = required_spec(dataset, "a table")
    columns = spec if isinstance(spec, dict) else dict(enumerate(spec if type(spec) is tuple else (spec,)))
    if nested := [name for name, part in columns.items() if not hasattr(part, "dtype")]:
        raise InvalidArgumentError(
            f"a row has a column per component, but {nested[0]!r} of the elements {spec} is nested; map to a dict of "
            "arrays first"
        )
    return list(columns)


def _row(element: Any) -> dict[Any, Any]:
    if isinstance(element, dict):
        return element
    return dict(enumerate(element if type(element) is tuple else (element,)))


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if isinstance(values[0], bytes):
        return pa.array(values, pa.large_binary())
    if len({np.shape(value) for value in values}) > 1 or values[0].dtype == STRING:
        return pa.array([value.tolist() for value in values])
    stacked = np.stack(values)
    column = pa.array(stacked.reshape(-1))
    for size in reversed(stacked.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value
