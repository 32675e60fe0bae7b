"""The reservoir: permutations, position bound, repeatability; blocks of draws equal drawing one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.data import Dataset
from workbench.data.stages.ordering import shuffle
from workbench.data.stages.ordering.shuffle import draw_block
from workbench.errors import InvalidArgumentError


def ints(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


def one_by_one(reservoir: list[int], incoming: list[int], slots: list[int]) -> tuple[list[int], list[int]]:
    held, drawn = list(reservoir), []
    for slot, following in zip(slots, incoming, strict=True):
        drawn.append(held[slot])
        held[slot] = following
    return drawn, held


class Replayed:
    """A generator whose draws are given."""

    def __init__(self, slots: list[int]) -> None:
        self.slots = slots

    def integers(self, low: int, high: int, size: int) -> Any:
        return np.array(self.slots[:size], np.int64)


@pytest.mark.parametrize("sorted_slots", [0, 1 << 16])
@given(data=st.data())
def test_a_block_of_draws_equals_drawing_one_by_one(sorted_slots: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    slots = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=40))
    reservoir = list(range(100, 100 + size))
    incoming = list(range(1000, 1000 + len(slots)))
    block = np.array(reservoir)
    latest = np.empty_like(block)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shuffle, "_SORTED", sorted_slots)
        drawn = draw_block(block, np.array(incoming), Replayed(slots), latest=latest)  # type: ignore[arg-type]
    expected, held = one_by_one(reservoir, incoming, slots)
    assert drawn.tolist() == expected
    assert block.tolist() == held


@given(
    n=st.integers(0, 400),
    buffer=st.integers(1, 120),
    seed=st.integers(-(2**70), 2**70),
    in_memory=st.booleans(),
)
def test_epochs_are_permutations_within_the_reservoirs_reach(
    n: int, buffer: int, seed: int, in_memory: bool
) -> None:
    source = Dataset.range(n) if in_memory else Dataset.range(n).map(lambda x: x)
    dataset = source.shuffle(buffer, seed=seed)
    for _ in range(2):
        order = ints(dataset)
        assert sorted(order) == list(range(n))
        assert all(position >= element - buffer + 1 for position, element in enumerate(order))


def test_large_sources_keep_the_position_bound_over_many_blocks() -> None:
    order = np.concatenate(list(Dataset.range(100_000).shuffle(1000, seed=1).batch(512)))
    assert np.array_equal(np.sort(order), np.arange(100_000))
    assert (np.arange(100_000) >= order - 1000 + 1).all()


def test_the_order_is_well_mixed_inside_the_reservoir() -> None:
    order = np.concatenate(list(Dataset.range(20_000).shuffle(1000, seed=5).batch(512)))
    delay = np.arange(20_000) - order
    # Each draw hits a given slot with probability 1/1000, so an element waits 1000 draws on average.
    assert 800 < np.mean(delay[2000:15000] + 1000) < 1200
    assert delay.max() > 4000


def test_a_buffer_of_one_keeps_the_order() -> None:
    assert ints(Dataset.range(50).shuffle(1)) == list(range(50))


def test_without_reshuffling_all_epochs_and_repetitions_have_one_order() -> None:
    dataset = Dataset.range(20).shuffle(20, seed=4, reshuffle_each_iteration=False)
    assert ints(dataset) == ints(dataset)
    order = ints(dataset.repeat(2))
    assert order[:20] == order[20:]


def test_repetitions_have_orders_of_their_own() -> None:
    order = ints(Dataset.range(20).shuffle(20, seed=4).repeat(2))
    assert sorted(order[:20]) == sorted(order[20:]) == list(range(20))
    assert order[:20] != order[20:]


def test_elements_of_different_tables_are_mixed() -> None:
    both = Dataset.range(50).concatenate(Dataset.range(50, 100))
    order = ints(both.shuffle(100, seed=1))
    assert sorted(order) == list(range(100))
    assert min(order.index(x) for x in range(50, 100)) < 20
    assert ints(both.shuffle(30, seed=2)) != ints(both)


def test_batches_can_be_shuffled() -> None:
    batches = list(Dataset.range(20).batch(4).shuffle(5, seed=1))
    assert sorted(b[0] for b in batches) == [0, 4, 8, 12, 16]
    assert all((np.diff(b) == 1).all() for b in batches)


@pytest.mark.parametrize("size", [0, -3])
def test_an_empty_reservoir_is_refused(size: int) -> None:
    with pytest.raises(InvalidArgumentError, match="buffer_size"):
        Dataset.range(3).shuffle(size)


def test_parts_of_one_shuffled_dataset_fit_together_in_each_epoch() -> None:
    shuffled = Dataset.range(20).shuffle(20, seed=3)
    first, second = shuffled.take(8), shuffled.skip(8)
    epochs = [(ints(first), ints(second)) for _ in range(3)]
    assert all(sorted(one + other) == list(range(20)) for one, other in epochs)
    assert epochs[0] != epochs[1]
