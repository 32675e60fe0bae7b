"""Batches of examples as arrays: shapes, defaults, examples that are alike or not, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.data import Dataset, TFRecordDataset
from workbench.errors import InvalidArgumentError
from workbench.io import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    encode_example,
    parse_example,
)

# tf.train.Example with a: [1, -2], f: [1.5], n: a feature without a kind
FROM_TENSORFLOW = bytes.fromhex(
    "0a2c0a0d0a0166120812060a040000c03f0a050a016e12000a140a0161120f1a0d0a0b01feffffffffffffffff01"
)


def test_an_example_of_tensorflow_is_parsed() -> None:
    for count in (1, 20):  # one by one, and as examples that are alike
        read = parse_example(
            [FROM_TENSORFLOW] * count,
            {
                "a": FixedLenFeature([2], np.int64),
                "f": FixedLenFeature([], np.float32),
                "n": FixedLenFeature([2], np.float32, [1.0, 2.0]),
            },
        )
        assert read["a"].tolist() == [[1, -2]] * count
        assert read["f"].tolist() == [1.5] * count
        assert read["n"].tolist() == [[1.0, 2.0]] * count


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 127), max_size=3),
            st.lists(st.floats(width=32, allow_nan=False), max_size=3),
            st.lists(st.binary(max_size=3), max_size=3),
        ),
        max_size=12,
    ),
    st.sampled_from([1, 3, 20]),
)
def test_batches_hold_what_single_examples_hold(rows: list[Any], repeats: int) -> None:
    rows = rows * repeats
    batch = [encode_example({"i": {"int64": a}, "f": {"float": b}, "s": {"bytes": c}}) for a, b, c in rows]
    wanted = {"i": np.int64, "f": np.float32, "s": "string"}
    read = parse_example(batch, {name: VarLenFeature(dtype) for name, dtype in wanted.items()})
    for number, name in enumerate(wanted):
        values, lengths = read[name]
        assert [row[:n].tolist() for row, n in zip(values, lengths, strict=True)] == [
            row[number] for row in rows
        ]
        rest = [item for row, n in zip(values, lengths, strict=True) for item in row[n:].tolist()]
        assert set(rest) <= {b"" if name == "s" else 0}


def test_a_batch_of_a_record_file_becomes_arrays(tmp_path: Path) -> None:
    images = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    examples = [encode_example({"x": image, "y": i * 30, "name": f"n{i}"}) for i, image in enumerate(images)]
    wb.data.experimental.TFRecordWriter(tmp_path / "a").write(Dataset.from_tensor_slices(examples))
    wanted = {
        "x": FixedLenFeature([2, 3], np.float32),
        "y": FixedLenFeature([], np.int64),
        "name": FixedLenFeature([], "string"),
    }
    dataset = TFRecordDataset(tmp_path / "a").batch(10).map(lambda batch: parse_example(batch, wanted))
    (read,) = list(dataset)
    np.testing.assert_array_equal(read["x"], images)
    assert read["y"].tolist() == list(range(0, 300, 30))
    assert read["name"].tolist() == [b"n%d" % i for i in range(10)]
    single = wb.io.parse_single_example(examples[3], {**wanted, "y": VarLenFeature(np.int64)})
    assert (single["x"].shape, single["y"].tolist(), single["name"]) == ((2, 3), [90], b"n3")


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize(
    ("feature", "told"),
    [
        (FixedLenFeature([3], np.int64), r"'a' of example 0 has 2 values, shape \(3,\) takes 3"),
        (FixedLenFeature([2], np.float32), "'a' of example 0 holds int64, not float32"),
        (VarLenFeature("string"), "holds int64, not string"),
    ],
)
def test_features_of_another_form_are_refused(count: int, feature: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        parse_example([FROM_TENSORFLOW] * count, {"a": feature})


def test_missing_features_need_a_default() -> None:
    batch = [encode_example({"a": 1}), encode_example({"b": "text"})]
    with pytest.raises(InvalidArgumentError, match="example 1 has no feature 'a'"):
        parse_example(batch, {"a": FixedLenFeature([], np.int64)})
    read = parse_example(
        batch, {"a": FixedLenFeature([], np.int64, 7), "b": FixedLenFeature([], "string", "none")}
    )
    assert (read["a"].tolist(), read["b"].tolist()) == ([1, 7], [b"none", b"text"])


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="not int32"):
        VarLenFeature(np.int32)
    with pytest.raises(ValueError, match="features is empty"):
        parse_example([b""], {})
    with pytest.raises(InvalidArgumentError, match="example 1 is int"):
        parse_example([b"", 3], {"a": VarLenFeature(np.int64)})
    read = parse_example([], {"a": FixedLenFeature([2], np.int64), "b": VarLenFeature("string")})
    assert read["a"].shape == (0, 2)
    assert read["b"].values.shape == (0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), min_size=1, max_size=4), st.integers(1, 8)
)
def test_damage_in_one_example_never_changes_the_others(changes: list[tuple[int, int]], row: int) -> None:
    good = [encode_example({"a": [row, 300], "b": f"text {row}"}) for row in range(30)]
    bad = bytearray(good[row])
    for position, value in changes:
        bad[position % len(bad)] = value
    wanted = {"a": VarLenFeature(np.int64), "b": VarLenFeature("string")}
    try:
        read = parse_example([*good[:row], bytes(bad), *good[row + 1 :]], wanted)
    except InvalidArgumentError as error:
        assert f"example {row}" in str(error)  # noqa: PT017 - either outcome is right
        return
    for other in set(range(30)) - {row}:
        assert read["a"].values[other].tolist()[:2] == [other, 300]
        assert read["b"].values[other, 0] == b"text %d" % other


@pytest.mark.parametrize("default", [7, [7], [[7]], np.int64(7)])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_default_of_as_many_values_takes_the_shape(default: Any, shape: tuple[int, ...]) -> None:
    found = parse_example([encode_example({})], {"a": FixedLenFeature(shape, np.int64, default)})["a"]
    assert (found.shape, found.dtype, found.ravel().tolist()) == ((1, *shape), np.int64, [7])


@pytest.mark.parametrize(
    ("shape", "dtype", "default", "told"),
    [
        ((), np.int64, 1.5, "holds no values of int64"),
        ((), np.int64, "1", "holds no values of int64"),
        ((), np.int64, True, "holds no values of int64"),
        ((), np.float32, "x", "holds no values of float32"),
        ((), "string", 1, "holds no values of string"),
        ((2,), "string", ["a", None], "holds no values of string"),
        ((2,), np.int64, [1, 2, 3], r"has shape \(3,\), the feature \(2,\)"),
        ((None,), np.int64, None, "must hold sizes"),
        ((-1, 2), np.int64, None, "must hold sizes"),
    ],
)
def test_a_default_or_shape_that_does_not_fit_is_refused_where_it_is_described(
    shape: Any, dtype: Any, default: Any, told: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        FixedLenFeature(shape, dtype, default)


def test_the_default_of_missing_steps_is_one_value_of_the_dtype() -> None:
    steps = FixedLenSequenceFeature([], np.int64, True, [9])
    batch = [encode_example({"a": [1, 2]}), encode_example({"a": [3]})]
    assert parse_example(batch, {"a": steps})["a"].tolist() == [[1, 2], [3, 9]]
    with pytest.raises(InvalidArgumentError, match="holds no values of int64"):
        FixedLenSequenceFeature([], np.int64, True, 1.5)
    with pytest.raises(InvalidArgumentError, match="must be one value"):
        FixedLenSequenceFeature([2], np.int64, True, [1, 2])


@pytest.mark.parametrize("given", [bytes, lambda data: np.array(data, object)])
def test_one_example_is_parsed_without_a_batch_dimension(given: Any) -> None:
    data = given(encode_example({"a": [1, 2], "b": ["x"]}))
    found = parse_example(data, {"a": FixedLenFeature([2], np.int64), "b": VarLenFeature("string")})
    assert (found["a"].tolist(), found["b"].tolist()) == ([1, 2], [b"x"])
