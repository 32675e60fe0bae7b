"""Names of tf.data.experimental for lists, padding and examples, compared with what TensorFlow 2.21 gave."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import tree
from workbench.data import Dataset, TensorSpec, TFRecordDataset
from workbench.data.experimental import (
    TFRecordWriter,
    from_list,
    make_batched_features_dataset,
    pad_to_cardinality,
    parse_example_dataset,
)
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import InvalidArgumentError
from workbench.io import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, encode_example

INT, TEXT, BOOL = (TensorSpec((), dtype) for dtype in (np.int32, "string", np.bool_))


def _values(dataset: Any) -> list[Any]:
    return [tree.map(lambda part: np.asarray(part).tolist(), element) for element in dataset]


@pytest.mark.parametrize(
    ("elements", "spec", "expected"),
    [
        ([(1, "a"), (2, "b"), (3, "c")], (INT, TEXT), [(1, b"a"), (2, b"b"), (3, b"c")]),
        ([[1], [2, 3]], TensorSpec((None,), np.int32), [[1], [2, 3]]),
        ([[1, 2], [3, 4]], TensorSpec((2,), np.int32), [[1, 2], [3, 4]]),
        (
            [{"a": 1, "b": [1.0]}, {"a": 2, "b": [1.0, 2.0]}],
            {"a": INT, "b": TensorSpec((None,), np.float32)},
            [{"a": 1, "b": [1.0]}, {"a": 2, "b": [1.0, 2.0]}],
        ),
        (
            [np.zeros(2), np.zeros((2, 3))],
            TensorSpec(None, np.float64),
            [[0.0, 0.0], [[0.0] * 3] * 2],
        ),
    ],
)
def test_a_list_has_elements_of_any_shape(elements: list[Any], spec: Any, expected: list[Any]) -> None:
    dataset = from_list(elements)
    assert (dataset.element_spec, len(dataset)) == (spec, len(elements))
    assert _values(dataset) == expected
    assert _values(pickle.loads(pickle.dumps(dataset)).repeat(2)) == expected * 2


@pytest.mark.parametrize("elements", [[], (1, 2), 5, np.arange(3), [(1, 2), 3], [{"a": 1}, {"b": 1}]])
def test_a_list_is_one_and_has_elements_of_one_structure(elements: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="from_list"):
        from_list(elements)


def test_elements_of_a_list_have_one_dtype() -> None:
    with pytest.raises(TypeError, match=r"from_list: all elements have one dtype, but .*int32 and float32"):
        from_list([1, 2.5])


def test_a_list_is_divided_among_hosts_as_other_elements_in_memory() -> None:
    shares = [auto_shard(from_list([[0], [1, 1], [2]]), 2, host).dataset for host in range(2)]
    assert [_values(share) for share in shares] == [[[0], [2]], [[1, 1]]]


ROWS = Dataset.from_tensor_slices(
    {"a": np.array([1, 2], np.int32), "b": np.ones((2, 2), np.float32), "s": ["x", "y"]}
)


def test_padding_adds_zeros_and_empty_texts() -> None:
    dataset = ROWS.apply(pad_to_cardinality(4))
    filler = {"a": 0, "b": [0.0, 0.0], "s": b"", "valid": False}
    assert dataset.element_spec == {**ROWS.element_spec, "valid": BOOL}
    assert len(dataset) == 4
    assert _values(dataset) == [
        {"a": 1, "b": [1.0, 1.0], "s": b"x", "valid": True},
        {"a": 2, "b": [1.0, 1.0], "s": b"y", "valid": True},
        filler,
        filler,
    ]
    assert [element["m"] for element in _values(ROWS.apply(pad_to_cardinality(2, "m")))] == [True, True]
    assert [element["a"] for element in _values(ROWS.apply(pad_to_cardinality(3, "a")))] == [
        True,
        True,
        False,
    ]
    nested = Dataset.from_tensor_slices({"a": {"c": np.array([5])}}).apply(pad_to_cardinality(2))
    assert _values(nested) == [{"a": {"c": 5}, "valid": True}, {"a": {"c": 0}, "valid": False}]
    assert len(_values(ROWS.take(0).apply(pad_to_cardinality(2)))) == 2


@pytest.mark.parametrize(
    ("dataset", "why"),
    [
        (ROWS.repeat(2), "at most 3 elements"),
        (ROWS.repeat(), "endless"),
        (ROWS.filter(lambda row: True), "whose number is known"),
        (Dataset.range(2), "elements must be dicts"),
        (Dataset.from_tensor_slices({"a": np.arange(3)}).batch(2), "the shape of elements to add is unknown"),
    ],
)
def test_what_cannot_be_padded_is_refused(dataset: Dataset, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        dataset.apply(pad_to_cardinality(3))


FEATURES = {"i": FixedLenFeature((), np.int64), "f": FixedLenFeature((2,), np.float32)}
TEXTS = [
    encode_example({"i": [i], "f": np.array([i / 2, i], np.float32), "v": np.arange(i)}) for i in range(5)
]
EXAMPLES = Dataset.from_tensor_slices(TEXTS)
BATCHES = [
    {"i": [0, 1], "f": [[0.0, 0.0], [0.5, 1.0]]},
    {"i": [2, 3], "f": [[1.0, 2.0], [1.5, 3.0]]},
    {"i": [4], "f": [[2.0, 4.0]]},
]


@pytest.mark.parametrize("calls", [1, 2])
def test_batches_of_examples_are_parsed(calls: int) -> None:
    dataset = EXAMPLES.batch(2).apply(parse_example_dataset(FEATURES, calls, True))
    assert dataset.element_spec == {
        "i": TensorSpec((None,), np.int64),
        "f": TensorSpec((None, 2), np.float32),
    }
    # The features alone show this, without calling a user function.
    assert dataset.known_element_spec == dataset.element_spec
    assert (len(dataset), _values(dataset)) == (3, BATCHES)


def test_how_long_lists_are_is_not_learnt_from_the_first_batch() -> None:
    parse = parse_example_dataset({"v": VarLenFeature(np.int64)})
    dataset = EXAMPLES.skip(1).batch(2, drop_remainder=True).apply(parse)
    spec = dataset.element_spec["v"]
    assert (spec.values, spec.lengths) == (TensorSpec((2, None), np.int64), TensorSpec((2,), np.int64))
    assert [element["v"].values.shape for element in dataset] == [(2, 2), (2, 4)]


def test_only_batches_of_text_are_parsed() -> None:
    for dataset in (EXAMPLES, Dataset.range(3).batch(2), EXAMPLES.batch(2).batch(2)):
        with pytest.raises(TypeError, match="takes batches of serialized examples"):
            dataset.apply(parse_example_dataset(FEATURES))
    for features in ({}, None):
        with pytest.raises(InvalidArgumentError, match="features is empty"):
            parse_example_dataset(features)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="num_parallel_calls"):
        parse_example_dataset(FEATURES, 0)
    with pytest.raises(
        InvalidArgumentError, match=r"parse_example: example 0 of the batch is damaged: byte 0"
    ):
        list(Dataset.from_tensor_slices(["junk"]).batch(2).apply(parse_example_dataset(FEATURES)))


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for number, part in enumerate((TEXTS[:3], TEXTS[3:])):
        TFRecordWriter(str(tmp_path / f"{number}.tfrecord")).write(Dataset.from_tensor_slices(part))
    return str(tmp_path / "*.tfrecord")


def _numbers(pattern: Any, **options: Any) -> list[list[int]]:
    given = {"num_epochs": 1, "shuffle": False, **options}
    return [batch["i"] for batch in _values(make_batched_features_dataset(pattern, 2, FEATURES, **given))]


def test_files_of_examples_become_batches(pattern: str) -> None:
    dataset = make_batched_features_dataset(pattern, 2, FEATURES, num_epochs=1, shuffle=False)
    assert dataset.element_spec["f"] == TensorSpec((None, 2), np.float32)
    assert _values(dataset) == BATCHES
    labelled = make_batched_features_dataset(pattern, 2, FEATURES, label_key="i", num_epochs=1, shuffle=False)
    assert _values(labelled) == [({"f": batch["f"]}, batch["i"]) for batch in BATCHES]
    endless = make_batched_features_dataset(pattern, 2, FEATURES)
    assert endless.element_spec["f"] == TensorSpec((2, 2), np.float32)
    assert endless.cardinality() == -1


def test_which_examples_come_when_is_as_asked(pattern: str) -> None:
    assert _numbers(pattern, num_epochs=2, drop_final_batch=True) == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    assert _numbers(pattern, reader_num_threads=2) == [[0, 3], [1, 4], [2]]
    names = [pattern.replace("*", number) for number in "10"]
    assert _numbers(names) == [[0, 1], [2, 3], [4]]
    shuffled = _numbers(pattern, shuffle=True)
    assert sorted(number for batch in shuffled for number in batch) == [0, 1, 2, 3, 4]
    assert _numbers(pattern, reader=TFRecordDataset, reader_args=[""]) == [[0, 1], [2, 3], [4]]


def test_a_reader_may_give_keys_as_well(pattern: str) -> None:
    def keyed(name: Any) -> Dataset:
        return Dataset.zip(Dataset.from_tensors("key").repeat(), TFRecordDataset(name))

    assert _numbers(pattern, reader=keyed) == [[0, 1], [2, 3], [4]]


def test_what_no_batches_can_be_made_of_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="label_key 'x' is none of the features i, f"):
        make_batched_features_dataset(pattern, 2, FEATURES, label_key="x")
    with pytest.raises(InvalidArgumentError, match="no file matches"):
        make_batched_features_dataset(pattern.replace("*", "nothing*"), 2, FEATURES)
    with pytest.raises(InvalidArgumentError, match="features is empty"):
        make_batched_features_dataset(pattern, 2, {})


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ({"x": 5}, ValueError, "feature 'x' is 5; use FixedLenFeature"),
        (["x"], TypeError, "features is list .*; give a dict"),
        (None, InvalidArgumentError, "features is empty"),
        ({"x": FixedLenSequenceFeature((), np.int64)}, ValueError, "set allow_missing=True"),
        ({"x": FixedLenFeature((), memoryview)}, InvalidArgumentError, "'x' is wanted as views.*hold bytes"),
        ({"x": VarLenFeature(memoryview)}, InvalidArgumentError, "'x' is wanted as views.*hold bytes"),
    ],
)
def test_features_are_checked_at_once(features: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_example_dataset(features)
    with pytest.raises(error, match=message):
        make_batched_features_dataset("nowhere", 1, features, label_key="y")


@pytest.mark.parametrize("argument", ["reader_num_threads", "parser_num_threads"])
def test_a_number_of_threads_is_named_that_is_none(argument: str) -> None:
    options: dict[str, Any] = {argument: 0}
    with pytest.raises(InvalidArgumentError, match=f"make_batched_features_dataset: {argument} is 0; give"):
        make_batched_features_dataset("nowhere", 1, {"x": FixedLenFeature((), np.int64)}, **options)


def test_more_elements_than_padding_shall_give_are_to_be_taken_first() -> None:
    with pytest.raises(InvalidArgumentError, match="; take as many first"):
        ROWS.apply(pad_to_cardinality(1))
    with pytest.raises(InvalidArgumentError, match="; state it with assert_cardinality"):
        ROWS.filter(lambda row: True).apply(pad_to_cardinality(3))
