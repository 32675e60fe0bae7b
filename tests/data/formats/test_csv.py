"""CSV files: rows, types, missing values, records that cannot be read, damage."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import pickle
import zlib
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.data import CsvDataset, Dataset, TensorSpec
from workbench.data.formats.csv.records import record_ends, whole_records
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import DataCorruption, DataLossError, InvalidArgumentError, NotFoundError

PEOPLE = 'id,score,name\n1,0.5,ann\n2,,"bob\nby"\n\n3,1.5,"say ""hi"""\n'


def written(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def read(dataset: Dataset) -> list[Any]:
    """The elements, with the texts of errors at their places."""
    found: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except InvalidArgumentError as error:
            found.append(str(error))


def test_rows_are_dicts_of_columns_with_types_that_are_looked_up(tmp_path: Path) -> None:
    path = written(tmp_path / "a", PEOPLE)
    dataset = CsvDataset(path)
    assert dataset.element_spec == {
        "id": TensorSpec((), np.int64),
        "score": TensorSpec((), np.float64),
        "name": TensorSpec((), "string"),
    }
    rows = list(dataset)
    assert [(row["id"], row["name"]) for row in rows] == [(1, b"ann"), (2, b"bob\nby"), (3, b'say "hi"')]
    assert [row["score"] for row in rows] == [0.5, pytest.approx(np.nan, nan_ok=True), 1.5]
    assert [list(row) for row in CsvDataset(Path(path), columns=["score", "id"]).take(1)] == [["score", "id"]]


def test_types_and_defaults_that_are_given_count(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "x,y,z\n1,?,?\n?,2,b\n")
    dataset = CsvDataset(
        path,
        dtypes={"x": np.float32, "y": "int8", "z": str},
        defaults={"x": 9, "y": -1, "z": "none"},
        null_values=["?"],
    )
    assert [tuple(row.values()) for row in dataset] == [(1.0, -1, b"none"), (9.0, 2, b"b")]
    assert dataset.element_spec["x"] == TensorSpec((), np.float32)


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("1,2\n", {"header": False}, ["f0", "f1"]),
        ("1,2\n", {"header": False, "column_names": ["a", "b"]}, ["a", "b"]),
        ("x,y\n1,2\n", {"column_names": ["a", "b"]}, ["a", "b"]),
        ("\ufeffx,y\r\n1,2\r\n", {}, ["x", "y"]),
        ("\n\nx;y\n1;2", {"delimiter": ";"}, ["x", "y"]),
        ("'x',y\n'1',2", {"quote": "'"}, ["x", "y"]),
    ],
)
def test_names_come_from_header_argument_or_number(
    tmp_path: Path, text: str, options: dict[str, Any], names: list[str]
) -> None:
    (row,) = CsvDataset(written(tmp_path / "a", text), **options)
    assert list(row) == names
    assert [int(value) for value in row.values()] == [1, 2]


def test_a_record_that_cannot_be_read_costs_that_record_only(tmp_path: Path) -> None:
    text = 'id,name\n1,a\nx,b\n\n3\n4,"c\nd"\n5,e,f\n99999999999,g\n7,h\n'
    found = read(CsvDataset(written(tmp_path / "a", text), dtypes={"id": np.int32}))
    assert [item if isinstance(item, str) else int(item["id"]) for item in found] == [
        1,
        f"{str(tmp_path / 'a')!r}, line 3, column 'id': 'x' cannot be read as int32",
        f"{str(tmp_path / 'a')!r}, line 5 has 1 field(s), 2 are expected: b'3\\n'",
        4,
        f"{str(tmp_path / 'a')!r}, line 8 has 3 field(s), 2 are expected: b'5,e,f\\n'",
        f"{str(tmp_path / 'a')!r}, line 9, column 'id': '99999999999' cannot be read as int32",
        7,
    ]
    kept = CsvDataset(tmp_path / "a", dtypes={"id": np.int32}).ignore_errors()
    assert [int(row["id"]) for row in kept] == [1, 4, 7]


def test_a_missing_number_needs_a_default_and_names_line_and_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "x,y\n1,2\n,3\n4,5\n")
    found = read(CsvDataset(path, columns=["x"]))
    assert [item if isinstance(item, str) else int(item["x"]) for item in found] == [
        1,
        f"{path!r}, line 3, column 'x' has no value; say what stands for it: a default for 'x'",
        4,
    ]


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_blocks_and_compression_change_nothing(tmp_path: Path, block_bytes: int, compression: str) -> None:
    text = "id,name\n" + "".join(f'{i},"n""{i}\r\n,{i}"\r\n' for i in range(50)) + "50,last"
    pack = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression]
    (tmp_path / "a").write_bytes(pack(text.encode()))
    dataset = CsvDataset(tmp_path / "a", compression_type=compression)
    reader: Any = dataset.source
    rows = list(Dataset(dataclasses.replace(reader, block_bytes=block_bytes)))
    assert [int(row["id"]) for row in rows] == list(range(51))
    assert rows[49]["name"] == b'n"49\r\n,49'
    current = dataset.next_pass(provenance=True)
    assert [int(i) for run in dataset.open(current) for i in run.ids()] == list(range(51))


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.lists(st.text(alphabet='ab",;\n\r é', max_size=5), min_size=2, max_size=2), max_size=8),
    size=st.integers(1, 20),
)
def test_pieces_end_where_records_end(rows: list[list[str]], size: int) -> None:
    quoted = [",".join('"' + field.replace('"', '""') + '"' for field in row) for row in rows]
    text = "".join(record + "\n" for record in quoted).encode()
    blocks = [text[start : start + size] for start in range(0, len(text), size)]
    pieces = list(whole_records(iter(blocks), '"', "file"))
    assert b"".join(pieces) == text
    records = []
    for piece in pieces:
        ends = [0, *record_ends(piece, '"').tolist()]
        records += [piece[start:end] for start, end in itertools.pairwise(ends)]
    assert records == [record.encode() + b"\n" for record in quoted]


def test_files_have_the_columns_of_the_first_and_the_next_file_follows(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, text)
        for name, text in (("a", "x,y\n1,2\n"), ("b", "x,z\n3,4\n"), ("c", "y,x\n5,6\n"), ("d", ""))
    ]
    iterator = iter(CsvDataset(paths, columns=["x", "y"]))
    assert int(next(iterator)["x"]) == 1
    with pytest.raises(InvalidArgumentError, match=r"b' has no column 'y'; its columns are x, z"):
        next(iterator)
    assert {name: int(value) for name, value in next(iterator).items()} == {"x": 6, "y": 5}
    with pytest.raises(DataLossError, match=r"d' is empty: it has no header"):
        next(iterator)
    with pytest.raises(
        InvalidArgumentError, match=r"e' has columns x, y, z, in the first file they are x, y;"
    ):
        list(CsvDataset([paths[0], written(tmp_path / "e", "x,y,z\n1,2,3\n")]))


def test_what_cannot_be_is_refused_when_the_dataset_is_made(tmp_path: Path) -> None:
    for options, message in [
        ({"delimiter": ""}, "delimiter is ''"),
        ({"delimiter": "ab"}, "one character"),
        ({"delimiter": "\n"}, "no line end"),
        ({"quote": ","}, "both ','"),
        ({"column_names": ["a", "a"]}, "twice"),
        ({"compression_type": "LZ4"}, "unknown compression_type"),
        ({"dtypes": {"x": np.complex64}}, "as complex64"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            CsvDataset(tmp_path / "a", **options)  # type: ignore[arg-type]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file .*missing"):
        list(CsvDataset(tmp_path / "missing"))
    with pytest.raises(NotFoundError, match="is a folder; name its files"):
        list(CsvDataset(tmp_path))
    (tmp_path / "empty").touch()
    with pytest.raises(
        InvalidArgumentError, match=r"empty' is empty, so the types of its columns are unknown"
    ):
        list(CsvDataset(tmp_path / "empty"))
    with pytest.raises(DataCorruption, match=r"empty' is empty: it has no header"):
        list(CsvDataset(tmp_path / "empty", columns=["x"], dtypes={"x": int}))
    assert list(CsvDataset(tmp_path / "empty", column_names=["x"], dtypes={"x": int}, header=False)) == []
    with pytest.raises(
        InvalidArgumentError, match=r"column 'y' has no value in the first rows.*dtypes=\{'y'"
    ):
        CsvDataset(written(tmp_path / "a", "x,y\n1,\n")).element_spec
    (tmp_path / "b").write_bytes(b"\x1f\x8bno gzip")
    with pytest.raises(DataCorruption, match=r"b' is not a valid GZIP file"):
        list(CsvDataset(tmp_path / "b", compression_type="GZIP"))


def test_a_file_that_is_cut_inside_quotation_marks_is_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "a", 'x,y\n1,"a"\n2,"b')
    iterator = iter(CsvDataset(path, dtypes={"x": int, "y": str}, columns=["x", "y"]))
    assert next(iterator)["y"] == b"a"
    with pytest.raises(DataLossError, match=r"the record at line 3 ends inside quotation marks.*quote=''"):
        next(iterator)
    assert [row["y"] for row in CsvDataset(path, quote="")] == [b'"a"', b'"b']


def test_a_record_without_end_is_refused_before_it_fills_the_memory() -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        yield b'x\n"'
        while True:
            taken += 1
            yield b"a" * (1 << 20)

    pieces = whole_records(endless(), '"', "file")
    assert next(pieces) == b"x\n"
    with pytest.raises(DataLossError, match="'file': the record at line 2 has no end within 64 MiB"):
        next(pieces)
    assert taken <= 65


def test_a_cut_or_flipped_byte_is_told_or_is_another_value(tmp_path: Path) -> None:
    text = ("x,y\n" + "".join(f'{i},"t{i}"\n' for i in range(12))).encode()
    told: list[str] = []
    for place in range(len(text)):
        for changed in (text[:place], text[:place] + bytes([text[place] ^ 0x15]) + text[place + 1 :]):
            (tmp_path / "a").write_bytes(changed)
            dataset = CsvDataset(tmp_path / "a", ["x", "y"], {"x": np.int32, "y": str})
            iterator = iter(dataset)
            count = 0
            while count < 30:
                count += 1
                try:
                    row = next(iterator)
                except StopIteration:
                    break
                except (DataLossError, InvalidArgumentError) as error:
                    told.append(str(error))
                else:
                    assert row["x"].dtype == np.int32
            assert count < 30
    assert len(told) > len(text) // 4
    assert all(str(tmp_path / "a") in text for text in told)


@pytest.mark.parametrize("policy", ["FILE", "AUTO", "DATA"])
def test_each_row_reaches_one_host_by_every_policy(tmp_path: Path, policy: str) -> None:
    paths = [
        written(tmp_path / f"f{number}.csv", "x\n" + "".join(f"{number * 10 + i}\n" for i in range(10)))
        for number in range(3)
    ]
    for parallel in (None, 2):
        options = wb.data.Options()
        options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
        dataset = CsvDataset(paths, num_parallel_reads=parallel).with_options(options)
        parts = [[int(row["x"]) for row in auto_shard(dataset, 2, host).dataset] for host in range(2)]
        assert sorted(x for part in parts for x in part) == list(range(30))
        assert all(parts)


def test_the_explanation_names_file_and_row(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.csv", "x\n" + "1\n" * 20) for name in "ab"]
    model = wb.explain_sharding(CsvDataset(paths).batch(10), wb.data.Shape(hosts=2))
    assert (model.policy, model.elements, model.duplicates) == ("AUTO→FILE", 40, 0)
    assert model.labels[(1 << 32) + 7] == "b.csv:7"
    with pytest.raises(InvalidArgumentError, match=r"2 files of 2 file\(s\) cannot be divided among 3 hosts"):
        list(auto_shard(CsvDataset(paths), 3, 0).dataset)


def test_types_are_looked_up_in_the_records_that_fit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x,y\n1,\xff\n\xff\n\xfe,\xfd,\xfc\n2,b\n")
    found = read(CsvDataset(tmp_path / "a"))
    assert [item if isinstance(item, str) else item["y"] for item in found] == [
        b"\xff",
        f"{str(tmp_path / 'a')!r}, line 3: CSV parse error: Row #1: Expected 2 columns, got 1: \ufffd",
        f"{str(tmp_path / 'a')!r}, line 4: CSV parse error: Row #1: Expected 2 columns, got 3: \ufffd,\ufffd,\ufffd",
        b"b",
    ]
    (tmp_path / "b").write_bytes(b"x,y\n1\n2,3,4\n")
    with pytest.raises(InvalidArgumentError, match="no value in the first rows"):
        list(CsvDataset(tmp_path / "b"))


def test_a_pipeline_of_csv_travels(tmp_path: Path) -> None:
    dataset = CsvDataset(written(tmp_path / "a", "x\n1\n2\n")).map(lambda row: row["x"])
    assert list(pickle.loads(cloudpickle.dumps(dataset))) == [1, 2]


def test_hexadecimal_columns_are_text_and_a_plus_is_a_sign(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("address,change,factor,name\n0x1F,+5,1e+3,\u00e9\n0x20,-3,+0.5,0x1\n,,,\n")
    dataset = CsvDataset(path, defaults={"change": 0})
    assert {name: spec.dtype_name for name, spec in dataset.element_spec.items()} == {
        "address": "string", "change": "int64", "factor": "float64", "name": "string",
    }  # fmt: skip
    rows = [tuple(row.values()) for row in dataset]
    assert rows[:2] == [(b"0x1F", 5, 1000.0, "\u00e9".encode()), (b"0x20", -3, 0.5, b"0x1")]
    assert (rows[2][0], rows[2][1], bool(np.isnan(rows[2][2])), rows[2][3]) == (b"", 0, True, b"")


def test_only_the_records_that_do_not_fit_are_lost_beside_numbers_with_a_plus(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"+{row},{'?' if row % 100 == 7 else row}\n" for row in range(1000)))
    dataset = CsvDataset(path, dtypes={"x": np.int64, "y": np.float32})
    assert [int(row["x"]) for row in dataset.ignore_errors()] == [n for n in range(1000) if n % 100 != 7]
    with pytest.raises(InvalidArgumentError, match="line 9, column 'y': '\\?' cannot be read as float"):
        list(dataset)
