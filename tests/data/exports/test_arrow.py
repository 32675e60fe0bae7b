"""Datasets as record batches of Arrow and as data frames."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from workbench.data import Dataset, to_arrow_batches, to_dataframe
from workbench.errors import InvalidArgumentError


def test_components_are_columns() -> None:
    dataset = Dataset.from_tensor_slices(
        {"x": np.arange(5), "image": np.arange(30.0, dtype=np.float32).reshape(5, 2, 3), "t": list("abcde")}
    )
    batches = list(to_arrow_batches(dataset, 2))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    schema = batches[0].schema
    assert schema.field("x").type == pa.int64()
    assert schema.field("image").type == pa.list_(pa.list_(pa.float32(), 3), 2)
    assert schema.field("t").type == pa.large_binary()
    table = pa.Table.from_batches(batches)
    assert table["x"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["image"][1].as_py() == [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]
    assert table["t"].to_pylist() == [b"a", b"b", b"c", b"d", b"e"]


def test_tuples_and_single_arrays_have_numbered_columns() -> None:
    assert [b.to_pydict() for b in to_arrow_batches(Dataset.range(2))] == [{"0": [0, 1]}]
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 7))
    assert [b.to_pydict() for b in to_arrow_batches(pairs)] == [{"0": [0, 1], "1": [5, 6]}]


def test_rows_that_differ_in_length_are_lists() -> None:
    dataset = Dataset.range(3).map(lambda x: np.arange(x))
    assert [b.to_pydict() for b in to_arrow_batches(dataset)] == [{"0": [[], [0], [0, 1]]}]


def test_what_has_no_columns_is_refused() -> None:
    nested = Dataset.range(2).map(lambda x: {"a": {"b": x}})
    with pytest.raises(InvalidArgumentError, match=r"'a' of the elements .* is nested"):
        to_arrow_batches(nested)
    with pytest.raises(InvalidArgumentError, match="batch_rows must be an integer of at least 1, got 0"):
        to_arrow_batches(Dataset.range(2), 0)


def test_a_data_frame_has_a_column_per_component() -> None:
    frame = to_dataframe(Dataset.from_tensor_slices({"x": np.arange(3), "t": [b"a", b"b", b"\xff"]}))
    assert frame["x"].tolist() == [0, 1, 2]
    assert frame["x"].dtype == np.int64
    assert frame["t"].tolist() == ["a", "b", b"\xff"]
    assert to_dataframe(Dataset.range(0)).columns.tolist() == ["0"]
    with pytest.raises(InvalidArgumentError, match="endless"):
        to_dataframe(Dataset.range(2).repeat())
