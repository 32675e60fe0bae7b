"""Rows of databases: how values are converted, what is told of databases and SQL that cannot be read."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from workbench.data import AutoShardPolicy, Options, auto_shard
from workbench.data.experimental import SqlDataset
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "a ?#%.sqlite"  # a name that must be quoted in a URI
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE numbers (id INTEGER, square REAL, word TEXT)")
        rows = [(i, float(i * i), f"word {i}") for i in range(3000)]
        connection.executemany("INSERT INTO numbers VALUES (?, ?, ?)", rows)
    return str(path)


ALL = "SELECT id, square, word FROM numbers ORDER BY id"
TYPES = (np.int32, np.float64, "string")


def value_of(database: str, expression: str, dtype: Any) -> Any:
    ((value,),) = SqlDataset("sqlite", database, f"SELECT {expression}", [dtype])
    return value


def test_rows_are_tuples_and_batches_columns(database: str) -> None:
    dataset = SqlDataset("sqlite", database, ALL, TYPES)
    rows = list(dataset)
    assert len(rows) == 3000
    assert rows[2999] == (2999, 2999.0**2, b"word 2999")
    ids, squares, words = list(dataset.batch(1000))[1]
    assert (ids.dtype, squares.dtype, words.dtype) == (np.int32, np.float64, object)
    assert ids.tolist() == list(range(1000, 2000))
    assert words[0] == b"word 1000"


@pytest.mark.parametrize(
    ("expression", "dtype", "value"),
    [
        ("NULL", np.int32, 0),
        ("NULL", np.float64, 0.0),
        ("NULL", np.bool_, False),
        ("NULL", "string", b""),
        ("'word'", np.int64, 0),
        ("' -12 apples'", np.int64, -12),
        ("'1.5e2x'", np.float64, 150.0),
        ("'.'", np.float64, 0.0),
        ("2.9", np.int32, 2),
        ("1e300", np.int64, (1 << 63) - 1),
        ("4294967297", np.int32, 1),
        ("300", np.uint8, 44),
        ("-1", np.uint16, 65535),
        ("2", np.bool_, True),
        ("12", "string", b"12"),
        ("1.5", "string", b"1.5"),
        ("0.1 + 0.2", "string", b"0.3"),
        ("-0.0", "string", b"0.0"),
        ("1e300", "string", b"1.0e+300"),
        ("1e999", "string", b"Inf"),
        ("x'00ff'", "string", b"\x00\xff"),
    ],
)
def test_values_are_converted_as_sqlite_does(database: str, expression: str, dtype: Any, value: Any) -> None:
    read = value_of(database, expression, dtype)
    assert read == value
    assert isinstance(read, bytes) or read.dtype == dtype


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELEKT 1", "syntax error.*the query was 'SELEKT 1'"),
        ("SELECT x FROM absent", "no such table: absent"),
        ("SELECT 1, 2", r"gives 2 column\(s\), output_types has 1"),
        ("DELETE FROM numbers", "readonly"),
    ],
)
def test_sql_that_gives_no_such_rows_is_told(database: str, query: str, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        list(SqlDataset("sqlite", database, query, [np.int32]))
    assert len(list(SqlDataset("sqlite", database, ALL, TYPES))) == 3000


def test_files_that_are_no_database_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no database at all" * 100)
    with pytest.raises(DataLossError, match="file is not a database"):
        list(SqlDataset("sqlite", tmp_path / "a", "SELECT x FROM y", [np.int32]))
    with pytest.raises(NotFoundError, match="no file"):
        list(SqlDataset("sqlite", tmp_path / "missing", "SELECT 1", [np.int32]))
    assert not (tmp_path / "missing").exists()


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="psycopg"):
        SqlDataset("mysql", "a", "SELECT 1", [np.int32])
    with pytest.raises(InvalidArgumentError, match="float32"):
        SqlDataset("sqlite", "a", "SELECT 1", [np.float32])
    with pytest.raises(InvalidArgumentError, match="empty"):
        SqlDataset("sqlite", "a", "SELECT 1", [])


def test_any_database_is_read_through_a_function_that_connects(database: str) -> None:
    dataset = SqlDataset(sqlite3.connect, database, ALL, TYPES)
    assert dataset.first() == (0, 0.0, b"word 0")

    def refuses(place: str) -> Any:
        raise ConnectionError(f"nobody answers at {place}")

    with pytest.raises(ConnectionError, match="nobody answers"):
        list(SqlDataset(refuses, "db.host", ALL, TYPES))


def test_a_pass_that_is_left_closes_its_connection(database: str) -> None:
    opened: list[sqlite3.Connection] = []

    def connect(place: str) -> sqlite3.Connection:
        opened.append(sqlite3.connect(place))
        return opened[-1]

    iterator = iter(SqlDataset(connect, database, ALL, TYPES))
    next(iterator)
    del iterator
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].cursor()


def test_a_query_travels_and_is_sharded_by_rows(database: str) -> None:
    dataset = pickle.loads(cloudpickle.dumps(SqlDataset("sqlite", database, ALL, TYPES)))
    assert [int(row[0]) for row in dataset.shard(3, 1).take(3)] == [1, 4, 7]
    rest = [auto_shard(dataset, 2, index) for index in range(2)]
    assert [part.choice.used for part in rest] == [AutoShardPolicy.DATA] * 2
    assert [[int(row[0]) for row in part.dataset.take(2)] for part in rest] == [[0, 2], [1, 3]]
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.FILE
    dataset = dataset.with_options(options)
    with pytest.raises(NotFoundError, match="source is a query"):
        auto_shard(dataset, 2, 0)
