"""What TensorFlow 2.21 was seen to do where a plausible pipeline does otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, TensorSpec

SCALAR = TensorSpec((), np.int64)


def passes(*sizes: int) -> Dataset:
    """A dataset whose passes have so many elements each."""
    following = iter(sizes)

    def elements() -> Iterator[int]:
        yield from range(next(following))

    return Dataset.from_generator(elements, output_signature=SCALAR)


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def padded(padding_values: Any) -> list[list[int]]:
    pair = (np.array([1], np.int32), np.array([2], np.int32))
    dataset = Dataset.from_tensors(pair).padded_batch(1, ([2], [2]), padding_values)
    return [part.tolist() for part in dataset.first()]


@pytest.mark.parametrize(
    ("padding_values", "expected"),
    [
        ((-1, None), [[[1, -1]], [[2, 0]]]),
        ((None, -1), [[[1, 0]], [[2, -1]]]),
        ((None, None), [[[1, 0]], [[2, 0]]]),
        (-1, [[[1, -1]], [[2, -1]]]),
        (None, [[[1, 0]], [[2, 0]]]),
    ],
)
def test_a_component_without_a_padding_value_is_padded_with_its_default(
    padding_values: Any, expected: list[list[int]]
) -> None:
    assert padded(padding_values) == expected


@pytest.mark.parametrize("padding_values", [(-1,), (-1, None, 3), (None,)])
def test_padding_values_are_one_for_all_or_one_per_component(padding_values: Any) -> None:
    with pytest.raises(ValueError, match="padding values for 2 components"):
        padded(padding_values)


def test_text_is_padded_with_empty_text_by_default() -> None:
    dataset = Dataset.from_tensors((["a"], np.array([2]))).padded_batch(1, ([2], [2]), (None, 7))
    text, number = dataset.first()
    assert text.tolist() == [[b"a", b""]]
    assert number.tolist() == [[2, 7]]


def test_a_finite_repeat_goes_on_after_an_empty_pass() -> None:
    assert ints(passes(0, 0, 1, 0, 2, 0).repeat(6)) == [0, 0, 1]


def test_an_endless_repeat_ends_at_an_empty_pass() -> None:
    assert ints(passes(2, 1, 0, 3).repeat()) == [0, 1, 0]
    assert ints(passes(2, 1, 0, 3).shuffle(1).repeat()) == [0, 1, 0]


def test_a_cache_is_complete_with_its_last_element() -> None:
    dataset = Dataset.range(10).shuffle(10).cache()
    elements = iter(dataset)
    order = [int(next(elements)) for _ in range(10)]
    assert ints(dataset) == order


def test_a_cache_that_was_left_before_its_last_element_is_read_anew() -> None:
    dataset = Dataset.range(40).shuffle(40).map(lambda x: x).cache()
    first = [int(x) for _, x in zip(range(39), dataset, strict=False)]
    assert ints(dataset)[:39] != first


def test_files_of_caches_are_complete_under_zip(tmp_path: Path) -> None:
    caches = [Dataset.range(20).shuffle(20).cache(str(tmp_path / str(part))) for part in range(3)]
    dataset = Dataset.zip(*caches)
    first = list(dataset)
    assert first == list(dataset)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_cache_of_a_number_of_elements_that_is_not_known_is_complete_at_the_end(
    tmp_path: Path,
) -> None:
    dataset = passes(3, 5).cache(str(tmp_path / "c"))
    assert ints(dataset) == ints(dataset) == [0, 1, 2]
