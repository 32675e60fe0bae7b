"""Random numbers of stages depend on where in a pass they are opened, never on when."""

from __future__ import annotations

from typing import Any

from workbench.data import Dataset


def ints(dataset: Dataset) -> list[int]:
    return [int(element) for element in dataset]


def shuffled(seed: int = 7) -> Dataset:
    return Dataset.range(50).shuffle(50, seed=seed)


def test_reading_ahead_changes_no_order() -> None:
    plain = shuffled().shuffle(50, seed=7).repeat(3).shuffle(50, seed=7)
    ahead = shuffled().prefetch(5).shuffle(50, seed=7).prefetch(5).repeat(3).prefetch(5).shuffle(50, seed=7)
    for _ in range(3):
        assert ints(ahead) == ints(plain)


def test_stages_with_one_seed_draw_different_numbers() -> None:
    once, (first, second) = ints(shuffled()), (ints(shuffled()), ints(shuffled().shuffle(50, seed=7)))
    assert first == once
    assert second != [once[row] for row in once]


def test_each_of_nested_repetitions_has_an_order_of_its_own() -> None:
    order = ints(shuffled().repeat(2).repeat(3))
    assert len({tuple(order[start : start + 50]) for start in range(0, 300, 50)}) == 6


def test_the_order_of_a_repetition_does_not_depend_on_how_much_of_another_was_read() -> None:
    def inner(x: Any) -> Dataset:
        return Dataset.range(x * 100, x * 100 + 20).shuffle(20, seed=3)

    whole = ints(Dataset.range(4).interleave(inner, cycle_length=2, block_length=20).repeat(2))[80:]
    part = ints(Dataset.range(4).interleave(inner, cycle_length=2, block_length=20).take(30).repeat(2))[30:]
    assert part == whole[:30]


def test_two_datasets_that_were_given_a_seed_are_shuffled_alike() -> None:
    """As in tf.data: inputs and labels shuffled by themselves stay together."""
    names = Dataset.range(100, 150).map(lambda x: x).shuffle(50, seed=7)
    assert all(int(name) == int(number) + 100 for number, name in Dataset.zip((shuffled(), names)))


def test_one_dataset_that_is_read_twice_has_two_orders() -> None:
    for dataset in (shuffled(), Dataset.range(50).shuffle(50)):
        both = ints(dataset.concatenate(dataset))
        assert both[:50] != both[50:]
        assert any(
            int(left) != int(right) for left, right in Dataset.zip((dataset, dataset.map(lambda x: x)))
        )


def test_inner_datasets_have_orders_of_their_own() -> None:
    order = ints(Dataset.range(3).flat_map(lambda x: shuffled()))
    assert len({tuple(order[start : start + 50]) for start in (0, 50, 100)}) == 3
