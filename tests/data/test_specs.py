"""Specs of elements, iterators, optionals and datasets, and what fits what."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import pickle
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import data
from workbench.data import Dataset, DatasetSpec, IteratorSpec, Optional, OptionalSpec, TensorSpec
from workbench.data.rebatch import UNKNOWN_BATCH_SIZE, compute_batch_size
from workbench.data.stages.computing import probe, trials
from workbench.errors import InvalidArgumentError, OutOfRangeError

INT = TensorSpec((), np.int64)


def test_a_name_is_a_label_and_no_difference() -> None:
    named = TensorSpec((2,), np.int32, name="x")
    assert named.name == "x"
    assert "name='x'" in repr(named)
    assert named == TensorSpec((2,), np.int32)
    assert hash(named) == hash(TensorSpec((2,), np.int32))
    assert pickle.loads(pickle.dumps(named)).name == "x"
    assert Dataset.from_generator(lambda: [[1, 2]], output_signature=named).element_spec == named


@pytest.mark.parametrize(
    ("spec", "other", "fits"),
    [
        (TensorSpec((None, 2), np.int32), TensorSpec((3, 2), np.int32), True),
        (TensorSpec((3, 2), np.int32), TensorSpec((None, 2), np.int32), True),
        (TensorSpec(None, np.int32), TensorSpec((3, 2), np.int32), True),
        (TensorSpec((3, 2), np.int32), TensorSpec(None, np.int32), True),
        (TensorSpec((3, 2), np.int32), TensorSpec((3, 1), np.int32), False),
        (TensorSpec((3,), np.int32), TensorSpec((3, 1), np.int32), False),
        (TensorSpec((), np.int32), TensorSpec((), np.int64), False),
        (TensorSpec((2,), np.int64), np.array([1, 2]), True),
        (TensorSpec((2,), np.int64), [1, 2], True),
        (TensorSpec((), "string"), "text", True),
        (TensorSpec((), "string"), object(), False),
        (INT, Dataset.range(2), False),
        (DatasetSpec(INT), Dataset.range(2), True),
        (DatasetSpec(TensorSpec((None,), np.int64)), Dataset.range(4).batch(2), True),
        (DatasetSpec(INT), Dataset.range(4).batch(2), False),
        (DatasetSpec(INT), iter(Dataset.range(2)), False),
        (IteratorSpec(INT), iter(Dataset.range(2)), True),
        (IteratorSpec(INT), Dataset.range(2), False),
        (IteratorSpec((INT, INT)), iter(Dataset.range(2)), False),
        (OptionalSpec(INT), Optional.from_value(np.int64(3)), True),
        (OptionalSpec(INT), Optional.empty(INT), True),
        (OptionalSpec(INT), Optional.empty(TensorSpec((), np.float32)), False),
        (OptionalSpec(INT), IteratorSpec(INT), False),
    ],
)
def test_what_is_compatible(spec: Any, other: Any, fits: bool) -> None:
    assert spec.is_compatible_with(other) is fits


@pytest.mark.parametrize("kind", [DatasetSpec, IteratorSpec, OptionalSpec])
def test_the_closest_spec_of_two(kind: Any) -> None:
    two, three = kind(TensorSpec((2, 1), np.int32)), kind(TensorSpec((3, 1), np.int32))
    assert two.most_specific_compatible_type(three) == kind(TensorSpec((None, 1), np.int32))
    for other in (kind(TensorSpec((2, 1), np.int64)), kind((INT, INT)), INT, "no spec"):
        with pytest.raises(InvalidArgumentError, match="no spec covers"):
            two.most_specific_compatible_type(other)


def test_the_closest_spec_of_two_arrays_keeps_a_name_that_both_have() -> None:
    a, b = TensorSpec((2,), np.int32, "x"), TensorSpec((3,), np.int32, "x")
    assert a.most_specific_compatible_type(b).shape == (None,)
    assert a.most_specific_compatible_type(b).name == "x"
    assert a.most_specific_compatible_type(TensorSpec((2,), np.int32, "y")).name is None
    with pytest.raises(ValueError, match="dtypes differ: int32 and int64"):
        a.most_specific_compatible_type(TensorSpec((2,), np.int64))


def test_specs_of_values() -> None:
    assert IteratorSpec.from_value(iter(Dataset.range(3))) == IteratorSpec(INT)
    assert IteratorSpec(INT) != IteratorSpec(TensorSpec((), np.int32))
    assert isinstance(iter(Dataset.range(3)), IteratorSpec(INT).value_type)
    assert IteratorSpec(INT).value_type is data.Iterator
    assert isinstance(Optional.empty(INT), OptionalSpec(INT).value_type)
    assert DatasetSpec.from_value(Dataset.range(3)) == DatasetSpec(INT)
    assert TensorSpec.from_value([[1.0], [2.0]]) == TensorSpec((2, 1), np.float64)
    for kind in (IteratorSpec, OptionalSpec, DatasetSpec, TensorSpec):
        with pytest.raises(TypeError, match="object is no"):
            kind.from_value(object())


def test_a_dataset_spec_has_a_shape_of_datasets() -> None:
    assert DatasetSpec(INT).dataset_shape == ()
    assert DatasetSpec(INT, (3,)) != DatasetSpec(INT)


def test_an_optional_knows_its_spec_with_and_without_a_value() -> None:
    there = Optional.from_value({"a": [1, 2], "b": (np.float32(1), b"x")})
    assert there.has_value()
    assert there.get_value()["a"].tolist() == [1, 2]
    expected = {"a": TensorSpec((2,), np.int32), "b": (TensorSpec((), np.float32), TensorSpec((), "string"))}
    assert there.element_spec == expected
    missing = Optional.empty(INT)
    assert not missing.has_value()
    assert missing.element_spec == INT
    with pytest.raises(InvalidArgumentError, match="no value"):
        missing.get_value()


def test_an_iterator_gives_optionals_with_its_spec() -> None:
    elements = iter(Dataset.range(1))
    assert elements.get_next_as_optional().element_spec == INT
    assert elements.get_next_as_optional().element_spec == INT


def _odd(x: Any) -> Any:
    if x % 2 == 0 and x != 6:
        raise InvalidArgumentError("even")
    return np.float32(x)


@pytest.mark.parametrize("drop", [False, True])
def test_what_a_function_gives_is_learnt_from_the_first_element_that_it_takes(drop: bool) -> None:
    made_up = Dataset.range(4, 12).map(lambda x: _odd(x) if x > 3 else _odd(0))  # refuses made-up values
    dataset = made_up.ignore_errors() if drop else made_up
    assert dataset.element_spec == TensorSpec((), np.float32)


def test_texts_are_made_up_in_several_lengths() -> None:
    texts = Dataset.from_tensor_slices([b"abc", b"d"])
    assert texts.map(lambda text: np.frombuffer(text, np.uint8)).element_spec == TensorSpec((None,), np.uint8)


@pytest.mark.parametrize("batch", [False, True])
def test_what_is_wanted_of_examples_tells_what_parsing_gives(batch: bool) -> None:
    fixed, text = wb.io.FixedLenFeature((2, 1), np.float32), wb.io.FixedLenFeature((), "string")
    steps, varying = wb.io.FixedLenSequenceFeature((2,), np.int64, True), wb.io.VarLenFeature("string")
    wanted = {"fixed": fixed, "text": text, "steps": steps, "varying": varying}
    damaged = Dataset.from_tensor_slices([b"damaged"])  # so that no element would show it
    rows: tuple[None, ...] = (None,) if batch else ()
    examples = damaged.batch(2) if batch else damaged
    lengths = TensorSpec(rows, np.int64)

    def padded(*shape: None) -> Any:
        texts = TensorSpec((*rows, *shape), "string")
        return wb.io.PaddedValues(texts, TensorSpec((*rows, *shape[1:]), np.int64))

    expected = {
        "fixed": TensorSpec((*rows, 2, 1), np.float32),
        "text": TensorSpec(rows, "string"),
        "steps": TensorSpec((*rows, None, 2), np.int64),
        "varying": padded(None) if batch else TensorSpec((None,), "string"),
    }
    assert examples.map(lambda x: wb.io.parse_example(x, wanted)).element_spec == expected
    context, sequences = {"fixed": fixed}, {"steps": steps, "varying": varying}
    parsed = examples.map(lambda x: wb.io.parse_sequence_example(x, context, sequences))
    assert parsed.element_spec == (
        {"fixed": expected["fixed"]},
        {"steps": expected["steps"], "varying": padded(None, None)},
        {"steps": lengths},
    )


def test_a_function_that_takes_no_element_tells_why() -> None:
    with pytest.raises(OutOfRangeError, match="even"):
        _ = Dataset.range(0, 6, 2).map(_odd).map(_odd).element_spec


def test_stages_may_follow_a_function_that_no_element_reaches() -> None:
    empty = Dataset.range(0).map(lambda x: _odd(x) if x > 3 else _odd(0))
    assert list(empty.unique()) == []
    assert list(empty.unbatch()) == []
    assert empty.concatenate(Dataset.range(2)).element_spec == TensorSpec((), np.int64)
    with pytest.raises(OutOfRangeError, match=r"what map\(<lambda>\) gives cannot be found out"):
        _ = empty.element_spec


_NESTED = Dataset.from_tensor_slices({"a": np.arange(4, dtype=np.int32), "b": np.ones((4, 2), np.float32)})


def test_windows_by_key_have_the_structure_and_dtypes_of_the_elements() -> None:
    expected = {"a": TensorSpec((None,), np.int32), "b": TensorSpec((None, 2), np.float32)}
    by_key = _NESTED.group_by_window(lambda x: np.int64(0), lambda key, window: window.batch(2), 3)
    by_length = _NESTED.bucket_by_sequence_length(lambda x: 1, [2], [2, 2])
    assert by_key.element_spec == by_length.element_spec == expected


def test_buckets_of_buckets_keep_dtypes() -> None:
    once = Dataset.range(8, output_type=np.int32).bucket_by_sequence_length(lambda x: 1, [2], [2, 2])
    twice = once.bucket_by_sequence_length(lambda x: 1, [2], [2, 2])
    assert [(batch.dtype, batch.tolist()) for batch in twice] == [
        (np.int32, [[0, 1], [2, 3]]),
        (np.int32, [[4, 5], [6, 7]]),
    ]


def test_an_inner_dataset_is_learnt_from_an_element_that_could_be_made() -> None:
    rows = Dataset.choose_from_datasets(
        [Dataset.from_tensors(np.arange(2)).repeat(), Dataset.range(4)],
        Dataset.from_tensor_slices(np.array([0, 1, 0, 0])),
    )
    batches = rows.batch(2)  # the first cannot be assembled, and the rank is unknown
    opened = batches.flat_map(lambda x: Dataset.from_tensors(np.swapaxes(x.reshape(1, 1, -1), 1, 2)))
    assert opened.element_spec == TensorSpec((1, None, 1), np.int64)
    assert batches.flat_map(_of_two).element_spec == TensorSpec((None, None), np.int64)


def _of_two(x: Any) -> Dataset:
    if x.ndim != 2 or x.shape[1] == 3:
        raise InvalidArgumentError("made up")
    return Dataset.from_tensors(x)


def test_shapes_learnt_from_one_element_are_not_taken_for_those_of_all() -> None:
    lists = Dataset.from_generator(lambda: iter([[1, 2], [3], []]), output_types="int64")  # of unknown rank
    assert lists.map(lambda x: x + 1).element_spec == TensorSpec(None, np.int64)
    assert lists.map(lambda x: len(x)).element_spec.shape == ()
    assert lists.flat_map(Dataset.from_tensors).element_spec == TensorSpec(None, np.int64)


def _of_any_rank() -> Dataset:
    rows = [np.zeros(2, np.float32), np.zeros((2, 3), np.float32)]
    return Dataset.from_generator(lambda: iter(rows), output_signature=TensorSpec(None, np.float32))


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda rows: rows.map(lambda x: x), None),
        (lambda rows: rows.map(lambda x: x + 1).map(lambda x: x * 2), None),
        (lambda rows: rows.map(lambda x: x[0]), None),
        (lambda rows: rows.map(lambda x: x.reshape(-1)), (None,)),
        (lambda rows: rows.map(lambda x: x.sum()), ()),
        (lambda rows: rows.map(lambda x: x + 1).batch(2), None),
        (lambda rows: rows.map(lambda x: x + 1).unbatch(), None),
        (lambda rows: rows.filter(lambda x: x > 0), None),
        (lambda rows: rows.flat_map(Dataset.from_tensor_slices), None),
        (lambda rows: rows.interleave(Dataset.from_tensors), None),
        (lambda rows: rows.window(2).flat_map(lambda window: window.batch(2)), None),
        (lambda rows: rows.scan(np.float32(0), lambda state, x: (state, x)), None),
    ],
)
def test_nothing_claims_a_rank_that_no_input_has(made: Any, shape: Any) -> None:
    assert made(_of_any_rank()).element_spec.shape == shape


def test_a_function_that_takes_no_made_up_rank_tells_no_rank() -> None:
    rows = Dataset.from_generator(lambda: iter([[[[1, 2]]], [[[[3]]]]]), output_types="int64")
    assert rows.map(lambda x: np.swapaxes(x, 1, 2)).element_spec == TensorSpec(None, np.int64)


@pytest.mark.parametrize("stage", ["map", "flat_map", "scan"])
def test_results_of_other_sizes_than_the_first_are_taken(stage: str) -> None:
    numbers = Dataset.range(3, 6)  # all of them have one shape
    made = {
        "map": lambda: numbers.map(_zeros_from_three),
        "flat_map": lambda: numbers.flat_map(lambda x: Dataset.from_tensors(_zeros_from_three(x))),
        "scan": lambda: numbers.scan(0, lambda state, x: (state, _zeros_from_three(x))),
    }[stage]()
    assert [len(row) for row in made] == [3, 4, 5]
    assert [rows.shape for rows in made.padded_batch(2)] == [(2, 4), (1, 5)]
    behind = made.concatenate(Dataset.from_tensors(np.zeros(7)))
    assert behind.element_spec == TensorSpec((None,), np.float64)


@pytest.mark.parametrize("stage", ["map", "flat_map", "scan", "window"])
def test_sizes_that_one_element_shows_are_none_of_the_others(stage: str) -> None:
    rows = {10: np.zeros(3), 11: np.zeros(3), 12: np.zeros(4)}  # a table refuses made-up values
    numbers = Dataset.range(10, 13)
    made = {
        "map": lambda: numbers.map(lambda x: rows[int(x)]),
        "flat_map": lambda: numbers.flat_map(lambda x: Dataset.from_tensors(rows[int(x)])),
        "scan": lambda: numbers.scan(0, lambda state, x: (state, rows[int(x)])),
        "window": lambda: numbers.map(lambda x: Dataset.from_tensors(rows[int(x)])).flat_map(
            lambda inner: inner
        ),
    }[stage]()
    assert made.element_spec == TensorSpec((None,), np.float64)
    assert made.batch(1, drop_remainder=True).element_spec == TensorSpec((1, None), np.float64)
    assert [len(row) for row in made] == [3, 3, 4]
    assert [rows.shape for rows in made.padded_batch(2)] == [(2, 3), (1, 4)]
    assert [len(row) for row in made.rebatch(5)] == [5, 5]
    assert compute_batch_size(made) == UNKNOWN_BATCH_SIZE
    assert [len(row) for row in made.concatenate(made)] == [3, 3, 4, 3, 3, 4]


def test_datasets_that_one_element_shows_have_elements_of_any_size() -> None:
    rows = {10: np.zeros(3), 11: np.zeros(4)}
    inner = Dataset.range(10, 12).map(lambda x: Dataset.from_tensors(rows[int(x)]))
    assert inner.element_spec == DatasetSpec(TensorSpec((None,), np.float64))
    pairs = Dataset.range(10, 12).map(lambda x: [Dataset.from_tensors(rows[int(x)])])
    assert pairs.element_spec == (DatasetSpec(TensorSpec((None,), np.float64)),)


class _Own:
    """An object of a class that no element may hold."""


_UNFIT = {"an object": lambda x: _Own(), "an iterator": lambda x: iter([x])}


@pytest.mark.parametrize("kind", _UNFIT)
@pytest.mark.parametrize(
    "behind",
    [
        lambda mapped: mapped.element_spec,
        lambda mapped: mapped.padded_batch(2),
        lambda mapped: mapped.unbatch(),
        lambda mapped: mapped.filter(lambda x: True),
        lambda mapped: mapped.concatenate(mapped),
    ],
)
def test_what_no_element_holds_is_told_where_the_function_is_called_to_learn_its_result(
    kind: str, behind: Any
) -> None:
    mapped = Dataset.range(3).map(_UNFIT[kind])
    with pytest.raises(TypeError, match="a dataset element cannot hold") as caught:
        behind(mapped)
    assert "returned by <lambda> at" in str(caught.value.__notes__)


def test_a_result_that_only_made_up_values_have_is_none_of_the_elements() -> None:
    table = {10: 1.5, 11: 2.5}
    mapped = Dataset.range(10, 12).map(lambda x: table.get(int(x), _Own()))
    assert mapped.element_spec == TensorSpec((), np.float32)


def test_a_generator_function_is_refused_by_map() -> None:
    def counts(x: Any) -> Any:
        yield x

    async def later(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=r"map: counts is a generator function.*flat_map"):
        Dataset.range(3).map(counts)
    with pytest.raises(TypeError, match="map: later is a coroutine function"):
        Dataset.range(3).map(later)


def test_who_waits_for_an_element_to_learn_a_spec_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_TELLING_SECONDS", 0.01)
    told = threading.Event()
    monkeypatch.setattr(probe, "warn", lambda message, category: (warned.append(message), told.set()))
    warned: list[str] = []

    def until_told() -> Iterator[Any]:
        assert told.wait(60)
        yield {"rows": 3}
        yield {"rows": 4}

    numbers = Dataset.from_generator(until_told, output_signature={"rows": TensorSpec((), np.int64)})
    late = numbers.map(lambda x: np.zeros({3: 3, 4: 4}[int(x["rows"])]))
    assert late.element_spec == TensorSpec((None,), np.float64)
    (message,) = warned
    assert "what map(<lambda>) gives is learnt from the first element of <Dataset: generator" in message


def test_nobody_is_told_of_an_element_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    timer = threading.Timer

    def kept(*args: Any) -> Any:
        started.append(timer(*args))
        return started[-1]

    monkeypatch.setattr(probe.threading, "Timer", kept)
    assert Dataset.range(10, 12).map({10: 1, 11: 2}.__getitem__).element_spec == TensorSpec((), np.int32)
    assert started
    for each in started:
        each.join(60)
        assert not each.is_alive()


def _zeros_from_three(x: Any) -> Any:
    if x < 3:
        raise InvalidArgumentError("made up")
    return np.zeros(int(x))


def test_arrays_of_datasets_of_several_sizes_are_covered() -> None:
    two, three = DatasetSpec(INT, (2,)), DatasetSpec(INT, (3,))
    assert two.most_specific_compatible_type(three) == DatasetSpec(INT, (None,))
    with pytest.raises(InvalidArgumentError, match="no spec covers"):
        two.most_specific_compatible_type(DatasetSpec(INT))
    windows = Dataset.range(6).window(1)
    pairs = windows.batch(2, drop_remainder=True).concatenate(windows.batch(3, drop_remainder=True))
    assert pairs.element_spec == DatasetSpec(INT, (None,))


@pytest.mark.parametrize("kind", [DatasetSpec, OptionalSpec, IteratorSpec])
def test_specs_of_nested_elements_can_be_keys(kind: Any) -> None:
    def spec() -> Any:
        return kind({"a": TensorSpec([], np.int64), "b": (DatasetSpec({"c": TensorSpec([2], "string")}),)})

    assert {spec(): 1} == {spec(): 1}
    assert spec() != kind({"a": TensorSpec([], np.int64)})


def test_arrays_of_datasets_fit_where_their_shapes_may_agree() -> None:
    numbers = TensorSpec([], np.int64)
    assert DatasetSpec(numbers, [None]).is_compatible_with(DatasetSpec(numbers, [2]))
    assert not DatasetSpec(numbers, [None]).is_compatible_with(DatasetSpec(numbers))
    assert not DatasetSpec(numbers, [3]).is_compatible_with(DatasetSpec(numbers, [2]))
    assert DatasetSpec(numbers, [3]) == DatasetSpec(numbers, (3,))


def test_optionals_and_iterators_have_their_own_specs_as_elements() -> None:
    five = Optional.from_value(np.int64(5))
    assert Optional.from_value(five).element_spec == OptionalSpec(INT)
    assert Optional.from_value((five, Dataset.range(2))).element_spec == (OptionalSpec(INT), DatasetSpec(INT))
    assert Dataset.from_tensors(iter(Dataset.range(2))).element_spec == IteratorSpec(INT)
    mapped = Dataset.range(3).map(lambda x: Optional.from_value(x))
    assert mapped.element_spec == OptionalSpec(INT)
    assert [int(x) for x in mapped.map(lambda optional: optional.get_value())] == [0, 1, 2]


class _WithSpec:
    element_spec = INT


@pytest.mark.parametrize("value", [DatasetSpec(INT), _WithSpec()])
def test_what_only_describes_elements_is_none(value: Any) -> None:
    with pytest.raises(TypeError, match=f"a dataset element cannot hold {type(value).__name__}"):
        Dataset.from_tensors(value)
    with pytest.raises(TypeError, match=f"a dataset element cannot hold {type(value).__name__}"):
        Dataset.from_tensors((1, value))


def test_the_result_of_a_map_is_checked_for_a_small_element(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []
    applied = probe._applied
    monkeypatch.setattr(
        probe, "_applied", lambda fn, element: (calls.append(element), applied(fn, element))[1]
    )
    mapped = Dataset.range(3).map(lambda x: x + 1)
    assert calls == [1]
    mapped.map(lambda x: x + 1)
    assert [int(np.asarray(call)) for call in calls] == [1, 1, 0, 1]  # two tell what the first map gives
    calls.clear()
    Dataset.from_tensors(np.zeros(8193)).map(lambda x: x + 1)
    Dataset.from_tensors(np.zeros(2731)).batch(2).map(lambda x: x + 1)
    Dataset.from_tensors(Dataset.from_tensors(np.zeros(8193))).map(lambda inner: inner)
    assert calls == []
    Dataset.from_tensors(np.zeros(8192)).map(lambda x: x + 1)
    Dataset.from_tensors(np.zeros(2730)).batch(2).map(lambda x: x + 1)
    assert len(calls) == 2


def test_an_optional_is_no_dataset_and_cannot_be_stacked() -> None:
    five = Optional.from_value(np.int64(5))
    with pytest.raises(TypeError, match="zip takes datasets in tuples or dicts, got Optional"):
        Dataset.zip((five, five))
    with pytest.raises(TypeError, match=r"hold OptionalSpec.* cannot be batched; map them to what it holds"):
        _ = Dataset.from_tensors(five).batch(2).element_spec
    with pytest.raises(TypeError, match="item 0 is Optional"):
        Dataset.from_tensor_slices([five, five])


def test_records_are_structure_in_specs_before_any_element_was_one() -> None:
    def record() -> Any:
        return dataclasses.make_dataclass("Record", ["x", "y"])

    kind = record()
    generated = Dataset.from_generator(lambda: [kind(1, 2)], output_signature=kind(INT, INT))
    (element,) = generated
    assert (type(element), int(element.x), int(element.y)) == (kind, 1, 2)
    kind = record()
    assert hash(OptionalSpec(kind(INT, INT))) == hash(OptionalSpec(kind(INT, INT)))
    kind = record()
    assert DatasetSpec(kind(INT, INT)).is_compatible_with(DatasetSpec(kind(INT, INT)))
    kind = record()
    (first, _) = Dataset.zip(kind(Dataset.range(2), Dataset.range(3)))
    assert (type(first), int(first.x), int(first.y)) == (kind, 0, 0)


def test_elements_of_windows_have_no_names() -> None:
    named = Dataset.from_generator(lambda: iter(()), output_signature=TensorSpec((), np.int64, "x"))
    assert named.element_spec.name == "x"
    assert named.window(2).element_spec.element_spec.name is None


def test_a_cardinality_is_an_int64_as_an_element() -> None:
    windows = Dataset.range(5).window(2).map(lambda window: window.cardinality())
    assert windows.element_spec == INT
    assert [int(x) for x in windows] == [2, 2, 1]
    assert repr(Dataset.range(5).cardinality()) == "5"


def test_what_a_function_opens_is_learnt_from_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "records"
    with wb.io.TFRecordWriter(path) as writer:
        writer.write(wb.io.encode_example({"a": [1, 2]}))
    features = {"a": wb.io.FixedLenFeature([2], "int64")}

    def records(name: Any) -> Dataset:  # parsing refuses made-up values
        return wb.data.TFRecordDataset(name).map(lambda text: wb.io.parse_single_example(text, features))

    names = Dataset.from_tensor_slices([str(path)])
    expected = {"a": TensorSpec((2,), np.int64)}
    assert names.flat_map(records).element_spec == expected
    assert names.interleave(records, 2).batch(3).element_spec == {"a": TensorSpec((None, 2), np.int64)}


_LIMIT = 50
_ROWS_BY_NUMBER = {0: np.zeros(3), 1: np.zeros(3), 2: np.zeros(3)}
_NUMBERS = Dataset.range(10)
_VECTORS = Dataset.from_tensors(np.zeros(4))
_IMAGES = Dataset.from_tensors(np.zeros((8, 8)))
_LENGTHS = Dataset.from_generator(lambda: [[0.0]], output_signature=TensorSpec((None,), np.float64))
_TEXTS = Dataset.from_tensor_slices([b"a", b"bb"])


def _down(x: Any) -> Any:
    while x != 0:  # it never ends for a made-up -1, nor if every answer is yes
        x = x - 1
    return np.zeros(3)


def _down_in_numbers(x: Any) -> Any:
    number = int(x)
    while number != 0:
        number -= 1
    return np.zeros(3)


def _down_behind_a_branch(x: Any) -> Any:
    number = int(x)
    if x > 6:
        while number != 7:
            number -= 1
    return np.zeros(3)


@pytest.mark.parametrize(
    ("dataset", "fn"),
    [
        (_NUMBERS, lambda x: np.zeros(3) if x < 3 else np.zeros(4)),
        (_NUMBERS, lambda x: np.zeros(3) if x * x < _LIMIT * 1000 else np.zeros(4)),
        (_NUMBERS, lambda x: np.zeros(3) if int(x) < 3000 else np.zeros(4)),
        (_NUMBERS, lambda x: np.zeros(3) if x.item() < 3000 else np.zeros(4)),
        (_NUMBERS, lambda x: np.zeros(3) if x in (7, 8) else np.zeros(4)),
        (_NUMBERS, lambda x: np.zeros(max(x, 3000))),
        (_NUMBERS, lambda x: np.zeros(x // 5)),
        (_NUMBERS, lambda x: _ROWS_BY_NUMBER[x % 3]),
        (_NUMBERS.map(lambda x: x / 4), lambda x: np.zeros(3) if x < 2.5 else np.zeros(4)),
        (_VECTORS, lambda x: np.zeros(3) if x.sum() < 3000 else np.zeros(4)),
        (_VECTORS, lambda x: np.zeros(3) if np.stack([x, x]).argmax() else np.zeros(4)),
        (_VECTORS, lambda x: np.zeros(3) if 3000 in x else np.zeros(4)),
        (_VECTORS, lambda x: np.zeros(3) if any(part > 3000 for part in x.tolist()) else np.zeros(4)),
        (_VECTORS, lambda x: x[x > 0]),
        (_VECTORS, lambda x: np.unique(x)),
        (_VECTORS, lambda x: np.nonzero(x)[0]),
        (_LENGTHS, lambda x: x[:2]),
        (_LENGTHS, lambda x: np.zeros(3) if len(x) < 5 else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text == b"cat" else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text.startswith(b"c") else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if b"," in text else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text < b"0" else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text[:1] == b"d" else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text.isalpha() else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text.count(b"x") > 1 else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text.split(b";")[0].strip() == b"x" else np.zeros(4)),
        (_TEXTS, lambda text: np.zeros(3) if text.decode().lower() in ("cat", "dog") else np.zeros(4)),
        (_VECTORS, lambda x: np.zeros(3) if len(np.unique(x)) > 2 and 9 in x else np.zeros(4)),
        (Dataset.from_tensors(np.zeros((4, 4))), lambda x: np.zeros(int(x.sum()) % 4)),
    ],
)
def test_sizes_that_the_values_of_elements_decide_are_unknown(dataset: Dataset, fn: Any) -> None:
    assert dataset.map(fn).element_spec.shape == (None,)
    opened = dataset.flat_map(lambda x: Dataset.from_tensors(fn(x)))
    assert opened.element_spec.shape == (None,)


@pytest.mark.parametrize(
    ("dataset", "fn", "shape"),
    [
        (_NUMBERS, lambda x: np.zeros(3) if x < 3 else np.ones(3), (3,)),
        (_NUMBERS, lambda x: np.eye(10)[x], (10,)),
        (_NUMBERS, lambda x: np.eye(10)[int(x)], (10,)),
        (_NUMBERS, lambda x: np.array([x, x]), (2,)),
        (_NUMBERS, lambda x: np.full(3, float(x)), (3,)),
        (_NUMBERS, _down, (3,)),
        (_IMAGES, lambda x: x / 255 if x.max() > 1 else x, (8, 8)),
        (_IMAGES, lambda x: x if np.isfinite(x).all() else 1 / 0, (8, 8)),
        (_IMAGES, lambda x: np.fliplr(x) if np.random.random() < 0.5 else x, (8, 8)),
        (_IMAGES, lambda x: np.clip(x[2:6], 0, 1).mean(axis=0), (8,)),
        (Dataset.zip((_IMAGES, _NUMBERS)), lambda x, y: x / 255 if y == 3 else x, (8, 8)),
        (_VECTORS, lambda x: np.array([a if a > 0 else 0 for a in x]), (4,)),
        (_VECTORS, lambda x: np.where(x > 0, x, 0), (4,)),
        (_VECTORS, lambda x: np.roll(x, int(x[0])), (4,)),
        (_LENGTHS, lambda x: np.pad(x[:8], (0, 8 - len(x[:8]))), (8,)),
        (_NUMBERS.batch(4), lambda x: x.sum(axis=0, keepdims=True), (1,)),
        (_TEXTS, lambda text: np.zeros(3) if text.endswith(b"c") else np.ones(3), (3,)),
        (_TEXTS, lambda text: np.eye(3)[text.decode().strip().count(",")], (3,)),
    ],
)
def test_sizes_that_are_the_same_on_every_way_through_a_function_are_known(
    dataset: Dataset, fn: Any, shape: Any
) -> None:
    assert dataset.map(fn).element_spec.shape == shape


def test_watching_what_a_function_decides_changes_no_element_and_no_rank_or_dtype() -> None:
    def by_kind(x: Any) -> Any:  # a watched number is an array
        return np.zeros((2, 2)) if isinstance(x, np.ndarray) else np.zeros(3, np.float32)

    mapped = Dataset.range(3).map(by_kind)
    assert mapped.element_spec == TensorSpec((3,), np.float32)
    assert [type(row) for row in mapped] == [np.ndarray] * 3
    mixed = Dataset.range(3).map(lambda x: np.zeros(3) if x < 3 else np.zeros(3, np.int32))
    assert mixed.element_spec == TensorSpec((3,), np.float64)


@pytest.mark.parametrize("fn", [_down, _down_in_numbers, _down_behind_a_branch])
@pytest.mark.timeout(60)
def test_a_loop_that_ends_for_no_made_up_value_ends_nevertheless(fn: Any) -> None:
    numbers = Dataset.range(1, 9)
    for made in (
        numbers.map(fn),
        numbers.flat_map(lambda x: Dataset.from_tensors(fn(x)).map(np.negative)),
    ):
        assert made.element_spec.shape in [(3,), (None,)]
        assert [row.shape for row in made] == [(3,)] * 8
    assert sys.gettrace() is None


def test_a_trial_ends_wherever_its_lines_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(count: int) -> int:
        for _ in range(count):
            pass
        return count

    ended = 0
    for most in range(30):
        monkeypatch.setattr(trials, "_MOST_LINES", most)
        try:
            assert trials.tried(lambda: lines(10)) == 10
        except trials.Unending:
            ended += 1
        assert sys.gettrace() is None
    assert 5 < ended < 25


def _handles_every_error(x: Any) -> None:
    while x is not None:
        try:
            x = x + 1
        except:  # noqa: E722
            pass


def _handles_every_error_twice(x: Any) -> None:
    while True:
        try:
            while x is not None:
                try:
                    x = abs(x)
                except BaseException as error:
                    x = len(error.args)
                finally:
                    x = x + 1
        except BaseException:
            continue


def _suppresses_every_error(x: Any) -> None:
    while x is not None:
        with contextlib.suppress(BaseException):
            int(str(x))


def _keeps_every_error(x: Any) -> None:
    kept = []
    while x is not None:
        try:
            x = abs(x) + 1
        except BaseException as error:
            kept.append(error)


def _keeps_the_last_error(x: Any) -> None:
    last = None
    while x is not last:
        try:
            x = x + 1
        except BaseException as error:
            last = error


def _keeps_every_error_twice(x: Any) -> None:
    kept = []
    while True:
        try:
            while x is not None:
                try:
                    x = abs(x) + 1
                except BaseException as error:
                    kept.append(error)
        except BaseException as error:
            kept.append(error)


@pytest.mark.parametrize(
    "endless",
    [
        _handles_every_error,
        _handles_every_error_twice,
        _suppresses_every_error,
        _keeps_every_error,
        _keeps_the_last_error,
    ],
)
def test_a_trial_ends_although_a_loop_handles_every_error(
    monkeypatch: pytest.MonkeyPatch, endless: Callable[[Any], Any]
) -> None:
    for most in range(30):  # also where the lines are spent inside of a `try`
        monkeypatch.setattr(trials, "_MOST_LINES", most)
        with pytest.raises(trials.Unending):
            trials.tried(lambda: endless(1))
        assert sys.gettrace() is None
    gc.collect()
    assert sys.gettrace() is None


def test_a_trial_ends_although_two_loops_keep_every_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sys.getswitchinterval(), sys.unraisablehook
    monkeypatch.setattr(trials, "_MOST_LINES", 7)
    with pytest.raises(trials.Unending):
        trials.tried(lambda: _keeps_every_error_twice(1))
    assert sys.gettrace() is None
    while any(thread.name == "wb-trial" for thread in threading.enumerate()):
        time.sleep(0.01)
    assert (sys.getswitchinterval(), sys.unraisablehook) == before
    assert capfd.readouterr().err == ""


def test_a_trial_ends_although_another_thread_deletes_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a collection of garbage may, which runs on any thread."""
    monkeypatch.setattr(trials, "_MOST_LINES", 7)
    caught: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ended = threading.Event()

    def delete() -> None:
        while not ended.is_set():
            with contextlib.suppress(queue.Empty):
                caught.get(timeout=0.01)

    def gives_every_error_away(x: Any) -> None:
        while True:
            try:
                while x is not None:
                    x = abs(x)
            except BaseException as error:
                caught.put(error.with_traceback(None))

    deleting = threading.Thread(target=delete)
    deleting.start()
    try:
        with pytest.raises(trials.Unending):
            trials.tried(lambda: gives_every_error_away(1))
    finally:
        ended.set()
        deleting.join()
    assert sys.gettrace() is None


@pytest.mark.parametrize("stage", ["map", "flat_map", "scan"])
def test_a_loop_that_ends_for_elements_but_not_for_ones_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setattr(trials, "_MOST_LINES", 1000)

    def down_to_five(x: Any) -> Any:
        while x != 5:
            x = x - 1
        return x

    numbers = Dataset.range(6, 9)
    dataset = {
        "map": lambda: numbers.map(down_to_five),
        "flat_map": lambda: numbers.flat_map(lambda x: Dataset.from_tensors(down_to_five(x))),
        "scan": lambda: numbers.scan(np.int64(6), lambda state, x: (down_to_five(state), down_to_five(x))),
    }[stage]()

    assert dataset.element_spec == TensorSpec((), np.int64)
    assert [int(x) for x in dataset] == [5, 5, 5]


def test_a_debugger_keeps_its_trace_while_functions_are_tried() -> None:
    def debugger(frame: Any, event: str, arg: Any) -> None:
        pass

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        spec = _NUMBERS.map(lambda x: np.zeros(3) if x < 3 else np.zeros(4)).element_spec
        during = sys.gettrace()
    finally:
        sys.settrace(before)
    assert spec.shape == (None,)
    assert during is debugger


def test_a_slow_function_is_called_with_two_made_up_elements_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_TRIAL_SECONDS", 0.0)
    calls = []

    def slow(x: Any) -> Any:
        calls.append(x)
        return np.zeros(3)

    assert Dataset.range(3).map(slow).element_spec == TensorSpec((3,), np.float64)
    assert calls == [1, 2]
