"""Elements that cannot be made: each raises once, at its place, and the ones after it follow."""

from __future__ import annotations

import gc
import gzip
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset, TextLineDataset
from workbench.distribute import get_strategy
from workbench.errors import InvalidArgumentError


def _fails_at(*bad: int) -> Callable[[Any], Any]:
    def picky(x: Any) -> Any:
        if int(x) in bad:
            raise LookupError(f"element {x}")
        return x

    return picky


def _events(elements: Any) -> list[Any]:
    """What an iterator yields, with each error's type at its place; at most a hundred entries."""
    iterator = iter(elements)
    found: list[Any] = []
    while len(found) < 100:
        try:
            element = next(iterator)
        except StopIteration:
            assert next(iterator, "end") == "end"  # and it stays ended
            return found
        except Exception as error:
            found.append(type(error))
        else:
            found.append(np.asarray(element).tolist())
    raise AssertionError(f"no end: {found}")


def _pairs(x: Any) -> Dataset:
    return Dataset.from_tensors(_fails_at(2)(x)).repeat(2)


def _uneven(num_parallel_calls: int | None = None) -> Dataset:
    """0, error, 2 and 10, error, 12 and 30, error, 32; an error in place of 20."""

    def opens(x: Any) -> Dataset:
        start = 10 * int(_fails_at(2)(x))
        return Dataset.range(start, start + 3).map(_fails_at(1, 11, 31))

    return _FOUR.interleave(opens, 3, num_parallel_calls=num_parallel_calls)


def _of_wrong_shape() -> Iterator[Any]:
    yield from (np.zeros(1), np.zeros(1), np.zeros(2), np.zeros(1))


def _keyed(dataset: Dataset) -> Dataset:
    return dataset.group_by_window(_fails_at(2), lambda key, window: window, window_size=1)


_FOUR = Dataset.range(4)
_MAPPED = _FOUR.map(_fails_at(2))
_CASES: dict[str, tuple[Any, list[Any]]] = {
    "map": (_MAPPED, [0, 1, LookupError, 3]),
    "map, twice": (Dataset.range(5).map(_fails_at(0, 4)), [LookupError, 1, 2, 3, LookupError]),
    "shuffle(1)": (_MAPPED.shuffle(1), [0, 1, LookupError, 3]),
    "parallel map": (_FOUR.map(_fails_at(2), num_parallel_calls=2), [0, 1, LookupError, 3]),
    "filter": (_FOUR.filter(lambda x: _fails_at(2)(x) >= 0), [0, 1, LookupError, 3]),
    "take_while": (_FOUR.take_while(lambda x: _fails_at(1)(x) < 3), [0, LookupError, 2]),
    "interleave": (_FOUR.interleave(_pairs, cycle_length=1), [0, 0, 1, 1, LookupError, 3, 3]),
    "interleave, inner datasets": (
        _uneven(),
        [0, 10, LookupError, 30, LookupError, 2, LookupError, 12, LookupError, 32],
    ),
    "parallel interleave": (  # here a failure takes the turn of an element
        _uneven(2),
        [0, 10, LookupError, LookupError, LookupError, 2, 12, 30, LookupError, 32],
    ),
    "flat_map": (_FOUR.flat_map(_pairs), [0, 0, 1, 1, LookupError, 3, 3]),
    "an inner dataset": (
        Dataset.range(2).flat_map(lambda x: Dataset.range(3).map(_fails_at(1))),
        [0, LookupError, 2] * 2,
    ),
    "generator": (
        Dataset.from_generator(_of_wrong_shape, output_types=float, output_shapes=(1,)),
        [[0], [0], InvalidArgumentError, [0]],
    ),
    "group_by_window": (_keyed(_FOUR), [0, 1, LookupError, 3]),
    "batch": (Dataset.range(8).map(_fails_at(5)).batch(2), [[0, 1], [2, 3], LookupError, [6, 7]]),
    "padded_batch": (
        Dataset.range(8).map(_fails_at(5)).padded_batch(2, []),
        [[0, 1], [2, 3], LookupError, [6, 7]],
    ),
    "a batch that cannot be put together": (
        Dataset.range(6).map(lambda x: np.zeros(2 if x == 3 else 1, int)).batch(2).map(lambda x: x.size),
        [2, InvalidArgumentError, 2],
    ),
    "the last batch": (Dataset.range(3).map(_fails_at(2)).batch(2), [[0, 1], LookupError]),
    "take": (_MAPPED.take(3), [0, 1, LookupError, 3]),
    "skip": (_MAPPED.skip(1), [1, LookupError, 3]),
    "shard": (Dataset.range(6).map(_fails_at(2)).shard(2, 0), [0, LookupError, 3, 5]),
    "enumerate": (_MAPPED.enumerate().map(lambda number, x: number), [0, 1, LookupError, 3]),  # as zip does
    "repeat": (_MAPPED.repeat(2), [0, 1, LookupError, 3] * 2),
    "concatenate": (_MAPPED.concatenate(_FOUR), [0, 1, LookupError, 3, 0, 1, 2, 3]),
    "zip": (Dataset.zip((_MAPPED, _FOUR)).map(lambda x, y: [x, y]), [[0, 0], [1, 1], LookupError, [3, 3]]),
    "choose": (
        Dataset.choose_from_datasets([_MAPPED], Dataset.range(5).map(lambda x: x * 0)),
        [0, 1, LookupError, 3],
    ),
    "window": (
        _MAPPED.window(2).flat_map(lambda window: window.batch(2)),
        [[0, 1], LookupError],  # together with 3, which is in the window of the failing element
    ),
    "unbatch": (_MAPPED.batch(1).unbatch(), [0, 1, LookupError, 3]),
    "unique": (_MAPPED.unique(), [0, 1, LookupError, 3]),
    "prefetch": (_MAPPED.prefetch(2), [0, 1, LookupError, 3]),
    "StopIteration": (Dataset.range(2).map(lambda x: next(iter(()))), [RuntimeError, RuntimeError]),
}


@pytest.mark.parametrize("name", _CASES)
def test_an_element_that_fails_raises_once_and_the_next_follow(name: str) -> None:
    dataset, expected = _CASES[name]
    assert _events(dataset) == expected
    assert _events(dataset) == expected  # nothing of it was kept


def test_what_a_shuffle_holds_back_survives_an_error() -> None:
    found = _events(Dataset.range(20).map(_fails_at(7, 8)).shuffle(5, seed=1))
    assert found.count(LookupError) == 2
    assert sorted(x for x in found if x is not LookupError) == [x for x in range(20) if x not in (7, 8)]


def test_a_cache_of_a_pass_with_an_error_is_not_complete() -> None:
    calls: list[int] = []

    def fails_at_first(x: Any) -> Any:
        calls.append(int(x))
        if calls.count(2) == 1 and x == 2:
            raise LookupError
        return x

    dataset = Dataset.range(4).map(fails_at_first).cache()
    assert [_events(dataset) for _ in range(3)] == [[0, 1, LookupError, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert calls.count(3) == 2


def test_the_file_after_a_damaged_one_is_read(tmp_path: Path) -> None:
    names = [tmp_path / f"{number}.gz" for number in range(3)]
    for number, name in enumerate(names):
        name.write_bytes(gzip.compress(f"{number}\n".encode()))
    names[1].write_bytes(b"no gzip")
    first, error, last = _events(TextLineDataset([str(name) for name in names], compression_type="GZIP"))
    assert (first, last) == (b"0", b"2")
    assert isinstance(error, type)


def test_a_pipeline_that_only_fails_gives_up() -> None:
    endless = Dataset.range(1).repeat().map(_fails_at(0)).shuffle(4)
    iterator = iter(endless)
    for _ in range(1024):
        with pytest.raises(LookupError):
            next(iterator)


def test_the_default_strategy_goes_on_too() -> None:
    steps = iter(get_strategy().distribute_dataset(Dataset.range(8).map(_fails_at(5)).batch(2)))
    assert [next(steps).values[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(LookupError):
        next(steps)
    assert [step.values[0].tolist() for step in steps] == [[6, 7]]


def test_rows_follow_an_element_that_has_none() -> None:
    mixed = Dataset.choose_from_datasets(
        [Dataset.range(1), Dataset.from_tensors(np.arange(2)).repeat(2)],
        Dataset.from_tensor_slices(np.array([1, 0, 1])),
    )
    assert _events(mixed.unbatch()) == [0, 1, InvalidArgumentError, 0, 1]


def test_a_pipeline_that_failed_is_collected_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    iterator = iter(
        _FOUR.map(_fails_at(0, 1, 2, 3)).scan(0, lambda state, x: (state, x)).window(2).batch(3).enumerate()
    )
    with pytest.raises(LookupError):
        next(iterator)
    del iterator
    gc.collect()
    assert said == []
