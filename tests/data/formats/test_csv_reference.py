"""CSV files under the names of tf.data.experimental."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import TensorSpec
from workbench.data.experimental import CsvDataset, make_csv_dataset
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import InvalidArgumentError


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_rows_are_tuples_of_the_types_and_defaults_that_are_given(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "a,b,c\n1,2.5,x\n4,,\n7,NA,z\n")
    dataset = CsvDataset(path, [np.int32, 0.25, "none"], header=True, na_value="NA")
    assert dataset.element_spec == (
        TensorSpec((), np.int32),
        TensorSpec((), np.float32),
        TensorSpec((), "string"),
    )
    assert list(dataset) == [(1, 2.5, b"x"), (4, 0.25, b"none"), (7, 0.25, b"z")]


def test_a_missing_value_of_a_required_column_is_an_error_of_that_record(tmp_path: Path) -> None:
    path = written(tmp_path / "a", '1,a,2\n,b,2\n3,"",2\n4,d,\n5,e,2\n')
    iterator = iter(CsvDataset(path, ["int64", str, np.array([], np.float64)]))
    assert next(iterator) == (1, b"a", 2.0)
    for line, column in ((2, "f0"), (3, "f1"), (4, "f2")):
        with pytest.raises(InvalidArgumentError, match=rf"line {line}, column '{column}' has no value"):
            next(iterator)
    assert next(iterator) == (5, b"e", 2.0)


def test_columns_are_selected_or_left_out_by_number(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "0,1,2,3\n4,5,6,7\n")
    assert list(CsvDataset(path, [0, 0], select_cols=[1, 3])) == [(1, 3), (5, 7)]
    assert list(CsvDataset(path, [0, 0], exclude_cols=[0, 2])) == [(1, 3), (5, 7)]
    assert list(CsvDataset(path, [0], select_cols=[3])) == [(3,), (7,)]
    with pytest.raises(InvalidArgumentError, match="ascend"):
        CsvDataset(path, [0, 0], select_cols=[3, 1])
    with pytest.raises(InvalidArgumentError, match="not both"):
        CsvDataset(path, [0], select_cols=[0], exclude_cols=[1])
    with pytest.raises(InvalidArgumentError, match="one default for each"):
        CsvDataset(path, [0], select_cols=[0, 1])
    with pytest.raises(InvalidArgumentError, match="has 4 field"):
        list(CsvDataset(path, [0, 0]))
    with pytest.raises(InvalidArgumentError, match="no column 'f4'"):
        list(CsvDataset(path, [0], select_cols=[4]))


def test_types_that_csv_has_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="column 1 cannot be read as int8"):
        CsvDataset("a", [0, np.int8])
    with pytest.raises(InvalidArgumentError, match="the default of column 0 has 2 values"):
        CsvDataset("a", [[1, 2]])
    with pytest.raises(InvalidArgumentError, match="record_defaults is empty"):
        CsvDataset("a", [])


def test_delimiters_quotes_compression_and_buffers_are_as_asked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b'1;"x;y"\n2;z\n'))
    dataset = CsvDataset(tmp_path / "a", [0, ""], "GZIP", 3, field_delim=";")
    assert list(dataset) == [(1, b"x;y"), (2, b"z")]
    path = written(tmp_path / "b", '1,"x\n')
    assert list(CsvDataset(path, [0, ""], use_quote_delim=False)) == [(1, b'"x')]


def test_batches_of_named_columns_and_labels(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", "x,name,y\n1,a,0\n2,b,1\n3,,0\n")
    written(tmp_path / "b.csv", "x,name,y\n4,d,1\n5,e,\n")
    dataset = make_csv_dataset(str(tmp_path / "*.csv"), 2, label_name="y", num_epochs=1, shuffle=False)
    batches = list(dataset)
    assert [features["x"].tolist() for features, _ in batches] == [[1, 2], [3, 4], [5]]
    assert [features["name"].tolist() for features, _ in batches] == [[b"a", b"b"], [b"", b"d"], [b"e"]]
    assert [labels.tolist() for _, labels in batches] == [[0, 1], [0, 1], [0]]
    assert {name: spec.dtype.name for name, spec in dataset.element_spec[0].items()} == {
        "x": "int32",
        "name": "object",
    }
    (features,) = make_csv_dataset(
        str(tmp_path / "*.csv"), 5, select_columns=["y", 0], num_epochs=1, shuffle=False
    )
    assert list(features) == ["x", "y"]


def test_shuffled_epochs_differ_and_repeat_with_a_seed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "x\n" + "".join(f"{i}\n" for i in range(40)))

    def epochs(**options: Any) -> list[list[int]]:
        dataset = make_csv_dataset(path, 40, shuffle_seed=5, **options).take(2)
        return [batch["x"].tolist() for batch in dataset]

    first, second = epochs()
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second
    assert epochs() == [first, second]
    assert make_csv_dataset(path, 16).element_spec["x"].shape == (16,)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1", "-2", ""], "int32"),
        (["1", "3000000000"], "int64"),
        (["1", "0.5"], "float32"),
        (["1e300", "1"], "float64"),
        (["1", "a"], "object"),
        (["1_0"], "object"),
        (["", ""], "object"),
    ],
)
def test_types_are_looked_up_as_the_reference_does(tmp_path: Path, values: list[str], dtype: str) -> None:
    path = written(tmp_path / "a.csv", "x,z\n" + "".join(f"{value},1\n" for value in values))
    assert make_csv_dataset(path, 1, num_epochs=1).element_spec["x"].dtype.name == dtype


def test_types_are_looked_up_in_as_many_rows_as_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "x\n1\n0.5\n")
    assert make_csv_dataset(path, 1, num_rows_for_inference=1).element_spec["x"].dtype == np.int32
    assert make_csv_dataset(path, 1, num_rows_for_inference=None).element_spec["x"].dtype == np.float32


def test_records_that_cannot_be_read_are_left_out_if_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "x\n1\nb\n3\n")

    def batches(ignore: bool) -> list[Any]:
        dataset = make_csv_dataset(
            path, 3, column_defaults=["int32"], num_epochs=1, shuffle=False, ignore_errors=ignore
        )
        return [batch["x"].tolist() for batch in dataset]

    assert batches(True) == [[1, 3]]
    with pytest.raises(InvalidArgumentError, match="line 3, column 'x': 'b' cannot be read as int32"):
        batches(False)


@pytest.mark.parametrize(
    ("text", "whole", "floating"),
    [
        ("+5", 5, 5.0),
        ("-007", -7, -7.0),
        ("+2147483647", 2147483647, 2147483648.0),
        ("\v5\f", 5, 5.0),
        ('" +5 "', 5, 5.0),
        ("0x1F", None, 31.0),
        ("-0X1p3", None, -8.0),
        ("0x1p9999", None, np.inf),
        ("+1e+3", None, 1000.0),
        ("+inf", None, np.inf),
        ("0x", None, None),
        ("++5", None, None),
        ("+ 5", None, None),
        ("1_000", None, None),
        ("+2147483648", None, 2147483648.0),
    ],
)
def test_numbers_are_those_of_the_reference(
    tmp_path: Path, text: str, whole: int | None, floating: float | None
) -> None:
    path = written(tmp_path / "a", f"1\n{text}\n3\n")
    for dtype, wanted in ((np.int32, whole), (np.float32, floating)):
        dataset = CsvDataset(path, [dtype])
        if wanted is None:
            with pytest.raises(InvalidArgumentError, match="line 2, column 'f0'"):
                list(dataset)
        rows = [row[0].item() for row in dataset.ignore_errors()]
        assert rows == ([1, 3] if wanted is None else [1, wanted, 3])


def test_what_cannot_be_is_refused_when_the_dataset_is_made(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "x,y\n1,2\n")
    other = written(tmp_path / "b.csv", "x,z\n1,2\n")
    empty = written(tmp_path / "c.csv", "")
    for files, options, message in [
        ([path, other], {}, r"b.csv' has columns x, z, the first file x, y"),
        ([path, empty], {}, r"c.csv' is empty: it has no header"),
        (path, {"header": False}, "give column_names"),
        (path, {"label_name": "z"}, "'z' is none of the columns x, y"),
        (path, {"column_names": ["a", "a"]}, "twice"),
        (path, {"column_defaults": [0]}, r"1 column_defaults for 2 column\(s\)"),
        (path, {"select_columns": ["q"]}, "select_columns has 'q'"),
        (path, {"select_columns": ["x", 0]}, "a column twice"),
        (path, {"column_names": ["a"]}, r"has 2 field\(s\), 1 are expected"),
        (str(tmp_path / "*.none"), {}, "no file matches"),
        (path, {"compression_type": "SNAPPY"}, "unknown compression_type"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            make_csv_dataset(files, 1, **options)  # type: ignore[arg-type]


def test_files_are_read_in_turn_and_dealt_to_hosts(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 10)):
        written(tmp_path / f"{name}.csv", "x\n" + "".join(f"{first + i}\n" for i in range(4)))
    dataset = make_csv_dataset(str(tmp_path / "*.csv"), 2, num_epochs=1, shuffle=False, num_parallel_reads=2)
    assert [batch["x"].tolist() for batch in dataset] == [[0, 10], [1, 11], [2, 12], [3, 13]]
    parts = [[batch["x"].tolist() for batch in auto_shard(dataset, 2, host).dataset] for host in (0, 1)]
    assert parts == [[[0, 1], [2, 3]], [[10, 11], [12, 13]]]
    model = wb.explain_sharding(dataset, wb.data.Shape(hosts=2))
    assert (model.policy, model.elements, model.duplicates) == ("AUTO→FILE", 8, 0)


def test_no_column_is_left_out_that_is_not_excluded(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    path.write_text("1,2,3\n4,5,6\n")
    assert list(CsvDataset(str(path), [0, 0], exclude_cols=[2])) == [(1, 2), (4, 5)]
    assert list(CsvDataset(str(path), [0], exclude_cols=[1, 2])) == [(1,), (4,)]
    assert list(CsvDataset(str(path), [0, 0, 0], exclude_cols=[3])) == [(1, 2, 3), (4, 5, 6)]
    for defaults, excluded in (([0], [0]), ([0], [2]), ([0, 0], [3]), ([0], [1])):
        with pytest.raises(InvalidArgumentError, match=r"has 3 columns, \d are expected"):
            list(CsvDataset(str(path), defaults, exclude_cols=excluded))


@pytest.mark.parametrize("form", [iter, tuple, np.array])
def test_numbers_of_columns_may_come_in_any_form(tmp_path: Path, form: Callable[[list[int]], Any]) -> None:
    path = written(tmp_path / "a", "1,2,3\n4,5,6\n")
    assert list(CsvDataset(path, [0], exclude_cols=form([1, 2]))) == [(1,), (4,)]
    assert list(CsvDataset(path, [0, 0], select_cols=form([0, 2]))) == [(1, 3), (4, 6)]
    for cols in ({"exclude_cols": [1.5]}, {"select_cols": ["1"]}):
        with pytest.raises(TypeError, match=r"each of (ex|se)\w+_cols must be a whole number"):
            CsvDataset(path, [0], **cols)  # type: ignore[arg-type]
