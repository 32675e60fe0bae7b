"""Stages that look at elements when they are made: errors of these come in the iteration, at their places.

The expected elements are those of TensorFlow 2.21, whose error is its InvalidArgumentError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import tree
from workbench.data import Dataset, TensorSpec, TextLineDataset
from workbench.distribute import get_strategy
from workbench.errors import InvalidArgumentError, OutOfRangeError

_TWO = Dataset.range(10, 12)
_E = LookupError


def _fails(x: Any) -> Any:
    raise LookupError(f"element {x}")


def _fails_first(x: Any) -> Any:
    return _fails(x) if x == 0 else x


def _events(elements: Any) -> list[Any]:
    iterator = iter(elements)
    found: list[Any] = []
    while len(found) < 50:
        try:
            element = next(iterator)
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error))
        else:
            found.append(tree.map(lambda part: np.asarray(part).tolist(), element))
    raise AssertionError(f"no end: {found}")


def _chosen(dataset: Dataset) -> Dataset:
    numbers = Dataset.from_tensor_slices(np.array([0, 1, 0, 1, 0, 1, 0]))
    return Dataset.choose_from_datasets([dataset, _TWO], numbers, stop_on_empty_dataset=False)


def _as_row(x: Any) -> Any:
    return np.stack([x])


_Expected = tuple[list[Any], list[Any], list[Any], list[Any]]
_FAILS = [_E, _E, _E, _E]
_CASES: dict[str, tuple[Callable[[Dataset], Dataset], _Expected]] = {
    "padded_batch": (
        lambda dataset: dataset.map(_as_row).padded_batch(2, [2]),
        (_FAILS, [], [_E, [[1, 0], [2, 0]], [[3, 0]]], [[[1, 0], [2, 0]], [[3, 0]]]),
    ),
    "bucket_by_sequence_length": (
        lambda dataset: dataset.map(_as_row).bucket_by_sequence_length(lambda x: 1, [2], [2, 2]),
        (_FAILS, [], [_E, [[1], [2]], [[3]]], [[[1], [2]], [[3]]]),
    ),
    "unbatch": (lambda dataset: dataset.batch(1).unbatch(), (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3])),
    "unique": (lambda dataset: dataset.unique(), (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3])),
    "concatenate": (
        lambda dataset: dataset.concatenate(_TWO),
        ([*_FAILS, 10, 11], [10, 11], [_E, 1, 2, 3, 10, 11], [1, 2, 3, 10, 11]),
    ),
    "concatenate, behind": (
        _TWO.concatenate,
        ([10, 11, *_FAILS], [10, 11], [10, 11, _E, 1, 2, 3], [10, 11, 1, 2, 3]),
    ),
    "concatenate, both": (
        lambda dataset: dataset.concatenate(dataset),
        (_FAILS * 2, [], [_E, 1, 2, 3] * 2, [1, 2, 3] * 2),
    ),
    "choose_from_datasets": (
        _chosen,
        ([_E, 10, _E, 11, _E, _E], [10, 11], [_E, 10, 1, 11, 2, 3], [1, 10, 2, 11, 3]),
    ),
    "sample_from_datasets": (
        lambda dataset: Dataset.sample_from_datasets([dataset], weights=[1.0]),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
    "zip": (
        lambda dataset: Dataset.zip(dataset, Dataset.range(10)),
        (_FAILS, [], [_E, (1, 1), (2, 2), (3, 3)], [(1, 0), (2, 1), (3, 2)]),
    ),
    "map_batches": (
        lambda dataset: dataset.batch(1).unbatch().map_batches(lambda x: x, 1),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
    "flat_map": (
        lambda dataset: dataset.flat_map(Dataset.from_tensors).unique(),
        (_FAILS, [], [_E, 1, 2, 3], [1, 2, 3]),
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_stage_is_made_whatever_elements_fail(name: str) -> None:
    stage, (failing, ignored, first, rest) = _CASES[name]
    assert _events(stage(Dataset.range(4).map(_fails))) == failing
    assert _events(stage(Dataset.range(4).map(_fails).ignore_errors())) == ignored
    assert _events(stage(Dataset.range(4).map(_fails_first))) == first
    assert _events(stage(Dataset.range(4).map(_fails_first).ignore_errors())) == rest


def _row_of(number: Any) -> Any:
    return _fails(number) if number < 200 else np.full(int(number) - 200, number, np.int32)


_LATE = Dataset.range(204).map(_row_of).ignore_errors()
"""Nobody looks as far as the first element."""


def test_a_padded_batch_takes_from_its_first_element_what_elements_are() -> None:
    assert _events(_LATE.padded_batch(4, padding_values=-1)) == [
        [[-1, -1, -1], [201, -1, -1], [202, 202, -1], [203, 203, 203]]
    ]
    in_threads = _LATE.padded_batch(2, [4], drop_remainder=True, num_parallel_calls=2)
    assert _events(in_threads) == [
        [[0, 0, 0, 0], [201, 0, 0, 0]],
        [[202, 202, 0, 0], [203, 203, 203, 0]],
    ]
    assert next(iter(in_threads)).dtype == np.int32
    assert _events(_LATE.padded_batch(2, [4, 4])) == [InvalidArgumentError]


def test_a_bucket_is_as_long_as_its_boundary_although_it_was_made_without_an_element() -> None:
    bucketed = _LATE.skip(1).bucket_by_sequence_length(len, [2, 5], [1, 2, 1], pad_to_bucket_boundary=True)
    assert _events(bucketed) == [[[201]], [[202, 202, 0, 0], [203, 203, 203, 0]]]


def test_an_inner_dataset_is_learnt_from_the_first_element_that_has_one() -> None:
    def opens(x: Any) -> Dataset:
        return Dataset.from_tensors(_fails_first(x)) if 0 <= x < 4 and x != 1 and x != 2 else _fails(x)

    dataset = Dataset.range(4).flat_map(opens)
    assert dataset.element_spec == TensorSpec((), np.int64)
    assert _events(dataset.unique()) == [_E, _E, _E, 3]


def test_what_a_spec_could_not_be_learnt_from_is_its_cause() -> None:
    with pytest.raises(OutOfRangeError, match="the first because of LookupError: element 0") as caught:
        _ = Dataset.range(4).map(_fails).element_spec
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_dataset_is_distributed_whatever_elements_fail() -> None:
    rows = Dataset.range(4).map(_fails).map(_as_row)
    assert _events(get_strategy().distribute_dataset(rows.unbatch().batch(2))) == _FAILS


@pytest.mark.parametrize("name", ["cache", "snapshot"])
def test_nothing_is_stored_of_elements_that_nobody_knows(name: str, tmp_path: Path) -> None:
    failing = Dataset.range(4).map(_fails)
    for dataset, expected in ((failing, _FAILS), (failing.ignore_errors(), [])):
        stored = getattr(dataset, name)(str(tmp_path / "stored"))
        assert [_events(stored) for _ in range(2)] == [expected, expected]


def test_a_reader_is_made_whatever_its_dataset_of_names_holds() -> None:
    names = Dataset.range(2).map(_fails)
    assert _events(TextLineDataset(names.ignore_errors())) == []
    assert _events(TextLineDataset(names)) == [_E]
