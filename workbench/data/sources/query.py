"""The rows of a database query."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.passes import Pass
from workbench.data.sources.opening import missing
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec
from workbench.data.stage import Source
from workbench.data.structure import Array, flatten
from workbench.data.tables import ArrayTable, Run
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError

_ROWS = 1024
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_WHOLE = re.compile(rb"\s*([+-]?\d+)")
_REAL = re.compile(rb"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


@dataclass(frozen=True, eq=False)
class Query(Source):
    """Rows as tuples of scalars, in the order of the database.

    Attributes:
      connect: Returns a DB-API connection (PEP 249).
      place: Where the database is, for errors.
      query: The SQL text.
      dtypes: One for each column.
    """

    name: ClassVar[str] = "query"
    connect: Callable[[], Any]
    place: str
    query: str
    dtypes: tuple[np.dtype[Any], ...]

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        structure = flatten((np.int8(0),) * len(self.dtypes))[1]
        first = 0
        for rows in self._blocks():
            columns = zip(*rows, strict=True)
            table = ArrayTable(
                [_column(list(values), dtype) for values, dtype in zip(columns, self.dtypes, strict=True)],
                structure,
            )
            yield current.numbered(Run(table, range(len(rows))), first)
            first += len(rows)

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return tuple(TensorSpec((), dtype) for dtype in self.dtypes)

    def cardinality(self) -> int:
        """Number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return UNKNOWN_CARDINALITY

    def _blocks(self) -> Iterator[list[tuple[Any, ...]]]:
        with contextlib.closing(self.connect()) as connection:
            with self._told():
                cursor = connection.cursor()
                cursor.execute(self.query)
            found = len(cursor.description or ())
            if found != len(self.dtypes):
                raise InvalidArgumentError(
                    f"{self.query!r} gives {found} column(s), output_types has {len(self.dtypes)}; give one for each"
                )
            while True:
                with self._told():
                    rows = cursor.fetchmany(_ROWS)
                if not rows:
                    return
                yield rows

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Adds the query to the database's errors."""
        try:
            yield
        except sqlite3.Error as error:
            told = f"{self.place!r}: {error}; the query was {self.query!r}"
            if type(error) is sqlite3.DatabaseError:  # not a database, or a damaged one
                raise DataLossError(told, file=self.place) from error
            raise InvalidArgumentError(told) from error
        except Exception as error:  # each driver has its own errors
            raise InvalidArgumentError(f"{self.place!r}: {error}; the query was {self.query!r}") from error


def sqlite_connection(path: str) -> sqlite3.Connection:
    """Opens an SQLite database for reading; text comes as bytes.

    Raises:
      NotFoundError: if there is no such file, or it cannot be opened.
    """
    if not os.path.isfile(path):
        raise missing(path)
    try:
        # A pass may continue on another thread; two threads never use the connection at once.
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, check_same_thread=False)
    except sqlite3.Error as error:
        raise NotFoundError(f"cannot open {path!r}: {error}") from error
    connection.text_factory = bytes
    return connection


def _column(values: list[Any], dtype: np.dtype[Any]) -> Array:
    """The values of a column, converted as SQLite does: a value that is not a number becomes 0, and so does NULL."""
    if dtype == STRING:
        return np.fromiter(map(_text, values), STRING, len(values))
    if dtype.kind == "f":
        return np.array([value if type(value) is float else _real(value) for value in values], dtype)
    whole = [value if type(value) is int else _whole(value) for value in values]
    if dtype.kind == "b":
        return np.array([value != 0 for value in whole])
    return np.array([min(max(value, _LEAST), _MOST) for value in whole], np.int64).astype(dtype)


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return _real_text(value) if isinstance(value, float) else str(value).encode()


def _real_text(value: float) -> bytes:
    """15 digits with a decimal point, as SQLite writes them."""
    if math.isinf(value):
        return b"Inf" if value > 0 else b"-Inf"
    digits, power, exponent = f"{value + 0.0:.15g}".partition("e")  # SQLite has no -0.0
    return (digits if "." in digits else f"{digits}.0").encode() + f"{power}{exponent}".encode()


def _whole(value: Any) -> int:
    if isinstance(value, str | bytes):
        match = _WHOLE.match(_text(value))
        return int(match.group(1)) if match else 0
    if value is None or value != value:
        return 0
    return int(min(max(value, _LEAST), _MOST))


def _real(value: Any) -> float:
    if isinstance(value, str | bytes):
        match = _REAL.match(_text(value))
        return float(match.group(1)) if match else 0.0
    return 0.0 if value is None else float(value)
