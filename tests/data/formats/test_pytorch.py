"""Map-style and iterable-style datasets as sources, by their interface: PyTorch need not be there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import TensorSpec, from_torch
from workbench.errors import InvalidArgumentError, OutOfRangeError


class Pairs:
    """Map-style; remembers what was asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.asked.append(index)
        if index == 13:
            raise ValueError("unlucky")
        return [np.full(3, index, np.float32), index]


class Batched(Pairs):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(np.full(3, index, np.float32), index) for index in indices]


class Stream:
    """Iterable-style."""

    def __init__(self, count: int = 5) -> None:
        self.count = count

    def __iter__(self) -> Iterator[dict[str, int]]:
        for index in range(self.count):
            yield {"x": index}


def labels(dataset: Any) -> list[int]:
    return [int(element[1]) for element in dataset]


def test_elements_of_a_map_style_dataset_are_arrays_in_a_tuple() -> None:
    dataset = from_torch(Pairs(4))
    assert dataset.element_spec == (TensorSpec((3,), np.float32), TensorSpec((), np.int32))
    assert len(dataset) == 4
    assert labels(dataset) == [0, 1, 2, 3]
    assert [batch[1].tolist() for batch in dataset.batch(3)] == [[0, 1, 2], [3]]
    assert not dataset.first()[0].flags.writeable


def test_shuffling_and_sharding_read_only_the_elements_that_are_kept() -> None:
    source = Pairs(1000)
    dataset = from_torch(source).shuffle(1000, seed=1).shard(10, 3).skip(2).take(3)
    source.asked.clear()
    found = labels(dataset)
    assert source.asked == found
    assert len(set(found)) == 3


def test_several_elements_are_asked_for_at_once_where_the_dataset_can() -> None:
    source = Batched(8)
    dataset = from_torch(source)
    source.asked.clear()
    assert [batch[1].tolist() for batch in dataset.shuffle(8, seed=2).batch(8).map(lambda x, y: (x, y))] != []
    assert source.asked == []


def test_an_element_that_fails_is_named_and_the_next_ones_follow() -> None:
    elements = iter(from_torch(Pairs(15)).skip(12))
    assert int(next(elements)[1]) == 12
    with pytest.raises(ValueError, match="unlucky") as caught:
        next(elements)
    assert "from_torch(Pairs) of a dataset, at element 13" in caught.value.__notes__[0]
    assert int(next(elements)[1]) == 14


def test_dimensions_in_which_the_first_and_the_last_element_differ_are_unknown() -> None:
    class Sentences(Pairs):
        def __getitem__(self, index: int) -> Any:
            return np.arange(index + 1)

    dataset = from_torch(Sentences(3))
    assert dataset.element_spec == TensorSpec((None,), np.int64)
    assert dataset.padded_batch(3).first().tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 2]]


def test_an_element_of_another_kind_is_told_with_its_number() -> None:
    class Odd(Pairs):
        def __getitem__(self, index: int) -> Any:
            return np.zeros(2 if index == 1 else 3)

    with pytest.raises(
        InvalidArgumentError, match=r"element 1 is TensorSpec\(shape=\(2,\).*give element_spec"
    ):
        list(from_torch(Odd(3)))
    assert [x.shape for x in from_torch(Odd(3), TensorSpec((None,), np.float64))] == [(3,), (2,), (3,)]


def test_an_empty_map_style_dataset_needs_a_spec() -> None:
    with pytest.raises(InvalidArgumentError, match="give element_spec"):
        from_torch(Pairs(0))
    assert list(from_torch(Pairs(0), TensorSpec((), np.int64))) == []


def test_an_iterable_dataset_is_read_anew_by_each_pass() -> None:
    dataset = from_torch(Stream())
    assert dataset.element_spec == {"x": TensorSpec((), np.int32)}
    assert dataset.cardinality() == wb.data.UNKNOWN_CARDINALITY
    assert [int(x["x"]) for x in dataset] == [int(x["x"]) for x in dataset] == [0, 1, 2, 3, 4]
    assert [int(x["x"]) for x in dataset.shard(2, 1)] == [1, 3]
    with pytest.raises(InvalidArgumentError, match="empty"):
        from_torch(Stream(0)).element_spec


@pytest.mark.parametrize("value", [3, object(), None])
def test_what_has_neither_interface_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="__len__ and __getitem__, or with __iter__"):
        from_torch(value)


def test_an_iterator_is_refused() -> None:
    with pytest.raises(TypeError, match="can be read once"):
        from_torch(iter([1, 2]))


def test_a_list_is_a_map_style_dataset() -> None:
    assert [int(x) for x in from_torch([3, 1, 2]).shard(2, 0)] == [3, 2]


@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize("source", [Pairs(13), Stream(13)], ids=["map-style", "iterable-style"])
def test_the_explanation_names_the_source_and_every_element_has_one_reader(source: Any, hosts: int) -> None:
    model = wb.explain_sharding(from_torch(source).batch(4), wb.data.Shape(hosts=hosts))
    assert (model.elements, model.duplicates, model.dropped) == (13, 0, 0)
    assert model.policy == "AUTO→DATA"
    assert model.reason.startswith(
        f"source is {'map' if isinstance(source, Pairs) else 'iterable'}-style dataset"
    )


def test_a_source_travels() -> None:
    assert labels(pickle.loads(pickle.dumps(from_torch(Pairs(3))))) == [0, 1, 2]


def test_an_element_is_reached_by_its_position_alone() -> None:
    source = Batched(1000)
    calls: list[int] = []

    def label(x: Any, y: Any) -> Any:
        calls.append(int(y))
        return y

    dataset = from_torch(source).shard(7, 2).map(label).skip(3).batch(4).take(30)
    count = len(dataset)
    for position in (0, 5, count - 1):
        expected = dataset.skip(position).first().tolist()
        source.asked.clear()
        calls.clear()
        assert wb.data.experimental.at(dataset, position).tolist() == expected
        assert source.asked == calls == expected
    with pytest.raises(OutOfRangeError):
        wb.data.experimental.at(dataset, count)
