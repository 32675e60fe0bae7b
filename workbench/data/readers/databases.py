"""Datasets that read databases, under the names of tf.data.experimental."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from workbench.backends.numpy import STRING, as_dtype
from workbench.data.dataset import Dataset
from workbench.data.sources.query import Query, sqlite_connection
from workbench.errors import InvalidArgumentError

_DTYPES = {"int8", "int16", "int32", "int64", "uint8", "uint16", "float64", "bool"}


class SqlDataset(Dataset):
    """The rows of a query as tuples of scalars, even if a row has one column.

    Values are converted as tf.data does: NULL is 0, 0.0, False or empty text, text that is not a number is 0, and
    integers that do not fit wrap around. A query should have an `ORDER BY`: without it, a database may return another
    order in each pass, and hosts that read different rows would disagree.

    Args:
      driver_name: "sqlite", which reads a file and cannot write it; or a function that returns a DB-API connection (PEP
        249), such as `psycopg.connect`. It is called for each pass, where elements are read.
      data_source_name: The file, or the argument of the function.
      query: One SQL statement that returns rows.
      output_types: The dtype of each column: int8 to int64, uint8, uint16, float64, bool, "string".

    Raises:
      InvalidArgumentError: if the driver or a type is not among these. Reading raises it for invalid SQL and a wrong
        number of columns, `DataLossError` for a damaged database, and `NotFoundError` for a missing file.
    """

    def __init__(
        self,
        driver_name: str | Callable[[str], Any],
        data_source_name: str | os.PathLike[str],
        query: str,
        output_types: Sequence[Any],
    ) -> None:
        place = os.fspath(data_source_name)
        if driver_name == "sqlite":
            connect = functools.partial(sqlite_connection, place)
        elif callable(driver_name):
            connect = functools.partial(driver_name, place)
        else:
            raise InvalidArgumentError(
                f"SqlDataset: driver_name is {driver_name!r}; use 'sqlite', or give a function that connects, such as "
                "psycopg.connect"
            )
        dtypes = tuple(as_dtype(dtype) for dtype in output_types)
        for dtype in dtypes:
            if dtype != STRING and dtype.name not in _DTYPES:
                raise InvalidArgumentError(
                    f"SqlDataset: a column cannot be read as {dtype}; use 'string', {', '.join(sorted(_DTYPES))}"
                )
        if not dtypes:
            raise InvalidArgumentError("SqlDataset: output_types is empty; give the dtype of each column")
        super().__init__(Query(connect, place, query, dtypes))
