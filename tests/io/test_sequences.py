"""Batches of sequence examples, and features of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.errors import InvalidArgumentError
from workbench.io import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    encode_example,
    encode_sequence_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)

FIRST = encode_sequence_example({"c": 1}, {"x": [[1.0, 2.0], [3.0, 4.0]], "v": [[1], [2, 3], {"int64": []}]})
SECOND = encode_sequence_example({"c": 2}, {"x": [[5.0, 6.0]], "v": []})
THIRD = encode_sequence_example({"c": 3})
PAIRS = FixedLenSequenceFeature([2], np.float32)
MAYBE = FixedLenSequenceFeature([2], np.float32, allow_missing=True)


def test_steps_that_an_example_does_not_have_are_filled_up() -> None:
    context, sequences, lengths = parse_sequence_example(
        [FIRST, SECOND], {"c": FixedLenFeature([], np.int64)}, {"x": PAIRS, "v": VarLenFeature(np.int64)}
    )
    assert context["c"].tolist() == [1, 2]
    assert sequences["x"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]  # as tf.io.parse_sequence_example
    assert sequences["v"].values.tolist() == [[[1, 0], [2, 3], [0, 0]], [[0, 0]] * 3]
    assert sequences["v"].lengths.tolist() == [[1, 2, 0], [0, 0, 0]]
    assert {name: each.tolist() for name, each in lengths.items()} == {"x": [2, 1]}


def test_texts_are_steps_too() -> None:
    batch = [encode_sequence_example({}, {"t": [["a"], ["b"]]}), encode_sequence_example({}, {"t": [["c"]]})]
    _, sequences, _ = parse_sequence_example(batch, None, {"t": FixedLenSequenceFeature([], "string")})
    assert sequences["t"].tolist() == [[b"a", b"b"], [b"c", b""]]
    _, sequences, _ = parse_sequence_example(batch, None, {"t": VarLenFeature("string")})
    assert sequences["t"].values.tolist() == [[[b"a"], [b"b"]], [[b"c"], [b""]]]


def test_one_sequence_example_has_no_batch_dimension() -> None:
    context, sequences = parse_single_sequence_example(
        FIRST, {"c": FixedLenFeature([], np.int64)}, {"x": PAIRS, "v": VarLenFeature(np.int64)}
    )
    assert context["c"] == 1
    assert sequences["x"].tolist() == [[1, 2], [3, 4]]
    assert sequences["v"].values.tolist() == [[1, 0], [2, 3], [0, 0]]
    assert sequences["v"].lengths.tolist() == [1, 2, 0]
    _, sequences = parse_single_sequence_example(np.array(THIRD, object), None, {"x": MAYBE})
    assert sequences["x"].shape == (0, 2)


def test_missing_sequences_must_be_allowed() -> None:
    with pytest.raises(InvalidArgumentError, match="example 1 has no sequence 'x'; set allow_missing"):
        parse_sequence_example([FIRST, THIRD], None, {"x": PAIRS})
    _, sequences, lengths = parse_sequence_example([FIRST, THIRD], None, {"x": MAYBE})
    assert sequences["x"].tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]]]
    assert lengths["x"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            FixedLenSequenceFeature([3], np.float32),
            r"'x' of example 0 has 2 values in step 0, shape \(3,\) takes 3",
        ),
        (FixedLenSequenceFeature([2], np.int64), "'x' of example 0 holds float32 in step 0, not int64"),
        (VarLenFeature("string"), "holds float32 in step 0, not string"),
    ],
)
def test_steps_of_another_form_are_refused(wanted: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        parse_sequence_example([FIRST], None, {"x": wanted})


def test_what_is_wanted_is_checked() -> None:
    with pytest.raises(ValueError, match="are empty"):
        parse_sequence_example([FIRST])
    with pytest.raises(ValueError, match="sequence feature 'x' is FixedLenFeature"):
        parse_sequence_example([FIRST], None, {"x": FixedLenFeature([2], np.float32)})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="context feature 'c' is FixedLenSequenceFeature"):
        parse_sequence_example([FIRST], {"c": MAYBE})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="has a default_value"):
        parse_sequence_example([FIRST], None, {"x": FixedLenSequenceFeature([2], np.float32, True, 7)})
    with pytest.raises(ValueError, match="feature 'a' is 3; use FixedLenFeature"):
        parse_example([FIRST], {"a": 3})  # type: ignore[dict-item]


def test_damaged_sequence_examples_are_named() -> None:
    for cut in range(1, len(FIRST)):
        try:
            parse_sequence_example([SECOND, FIRST[:cut]], None, {"x": MAYBE})
        except InvalidArgumentError as error:
            assert "example 1" in str(error)  # noqa: PT017 - a cut between two fields is none that can be seen


def test_examples_have_steps_too() -> None:
    batch = [encode_example({"a": [1, 2, 3, 4]}), encode_example({"a": [5, 6]}), encode_example({"b": 1})]
    steps = FixedLenSequenceFeature([2], np.int64, allow_missing=True)
    assert parse_example(batch, {"a": steps})["a"].tolist() == [
        [[1, 2], [3, 4]], [[5, 6], [0, 0]], [[0, 0], [0, 0]]
    ]  # fmt: skip
    nines = FixedLenSequenceFeature([2], np.int64, allow_missing=True, default_value=9)
    assert parse_example(batch, {"a": nines})["a"][1:].tolist() == [[[5, 6], [9, 9]], [[9, 9], [9, 9]]]
    assert parse_single_example(batch[0], {"a": steps})["a"].tolist() == [[1, 2], [3, 4]]
    assert parse_single_example(batch[2], {"a": steps})["a"].shape == (0, 2)
    with pytest.raises(ValueError, match="allow_missing=True"):
        parse_example(batch, {"a": FixedLenSequenceFeature([2], np.int64)})
    with pytest.raises(InvalidArgumentError, match="of example 0 has 4 values"):
        parse_example(batch, {"a": FixedLenSequenceFeature([3], np.int64, allow_missing=True)})


def test_one_example_cannot_ask_for_gigabytes() -> None:
    steps: list[Any] = [{"int64": []}] * 20_000 + [np.zeros(20_000, np.int64)]
    long = encode_sequence_example({}, {"v": steps})
    with pytest.raises(InvalidArgumentError, match="feature 'v': 20,000 values padded"):
        parse_sequence_example([long], None, {"v": VarLenFeature(np.int64)})
    batch = [encode_example({"a": np.zeros(200_000, np.int64)}), *[encode_example({"a": 1})] * 999]
    with pytest.raises(InvalidArgumentError, match="parse fewer examples at a time"):
        parse_example(batch, {"a": VarLenFeature(np.int64)})


def test_one_sequence_example_is_parsed_without_a_batch_dimension() -> None:
    _, sequences, lengths = parse_sequence_example(FIRST, None, {"x": PAIRS})
    assert sequences["x"].tolist() == [[1, 2], [3, 4]]
    assert (lengths["x"].shape, int(lengths["x"])) == ((), 2)
