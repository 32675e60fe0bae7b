"""`save` and `restore` of iterators: the same elements follow, whatever the pipeline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data import Dataset
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError


def plain(element: Any) -> Any:
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    return element.tolist() if hasattr(element, "tolist") else element


def rest(iterator: Any) -> list[Any]:
    return [plain(element) for element in iterator]


def _fails_at_three(x: Any) -> Any:
    if x == 3:
        raise ZeroDivisionError
    return x


PIPELINES: dict[str, Callable[[], Dataset]] = {
    "range": lambda: Dataset.range(12),
    "slices": lambda: Dataset.from_tensor_slices(
        (np.arange(24).reshape(12, 2), [b"%d" % n for n in range(12)])
    ),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(9)), np.int64, ()),
    "shuffle": lambda: Dataset.range(20).shuffle(7, seed=3),
    "shuffle of made": lambda: Dataset.range(20).map(lambda x: x * x).shuffle(7, seed=3),
    "shuffle, repeat": lambda: Dataset.range(5).shuffle(5, seed=3).repeat(3).batch(2),
    "batch": lambda: Dataset.range(11).batch(3),
    "batch of batch, map": lambda: Dataset.range(22).batch(2).map(lambda x: x + 1).batch(3).prefetch(1),
    "drop": lambda: Dataset.range(11).batch(3, drop_remainder=True),
    "map in threads": lambda: Dataset.range(9).map(lambda x: x * 2, num_parallel_calls=3),
    "interleave": lambda: Dataset.range(4).interleave(lambda n: Dataset.range(n), cycle_length=2),
    "flat_map": lambda: Dataset.range(5).flat_map(lambda n: Dataset.range(n)),
    "cache": lambda: Dataset.range(8).map(lambda x: x - 1).cache().repeat(2),
    "zip": lambda: Dataset.zip((Dataset.range(6).shuffle(6, seed=1), Dataset.range(8).map(lambda x: -x))),
    "concatenate": lambda: Dataset.range(4).concatenate(Dataset.range(3)).skip(1),
    "filter": lambda: Dataset.range(20).filter(lambda x: x % 3 == 0).enumerate(),
    "padded": lambda: Dataset.range(7).map(lambda x: np.full(int(x), 1)).padded_batch(2),
    "unbatch": lambda: Dataset.range(9).batch(4).unbatch().take(7),
}


@pytest.mark.parametrize("made", PIPELINES.values(), ids=PIPELINES.keys())
def test_the_same_elements_follow_wherever_it_stopped(made: Callable[[], Dataset], tmp_path: Path) -> None:
    for count in range(len(list(made())) + 1):
        first = iter(made())
        for _ in range(count):
            next(first)
        first.save(tmp_path / "place")
        other = iter(made())
        other.restore(tmp_path / "place")

        assert rest(other) == rest(first)


def test_in_a_later_pass_the_order_is_that_of_the_pass_and_the_next_one_follows(tmp_path: Path) -> None:
    def made() -> Dataset:
        return Dataset.range(10).shuffle(10, seed=5)

    dataset = made()
    list(dataset)
    list(dataset)
    iterator = iter(dataset)
    next(iterator)
    iterator.save(tmp_path / "place")
    again = made()
    other = iter(again)
    other.restore(tmp_path / "place")

    assert rest(other) == rest(iterator)
    assert rest(again) == rest(dataset)


def test_an_iterator_can_go_back_and_be_saved_again(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(6))
    next(iterator)
    iterator.save(tmp_path / "place")
    assert rest(iterator) == [1, 2, 3, 4, 5]
    iterator.restore(tmp_path / "place")
    assert iterator.get_next() == 1
    iterator.save(tmp_path / "place")
    assert iterator.get_next_as_optional().get_value() == 2
    iterator.restore(tmp_path / "place")
    assert rest(iterator) == [2, 3, 4, 5]


@pytest.mark.parametrize("tail", [lambda d: d, lambda d: d.batch(2), lambda d: d.batch(2).map(lambda x: x)])
def test_elements_that_failed_are_left_out_as_well(
    tail: Callable[[Dataset], Dataset], tmp_path: Path
) -> None:
    def made() -> Dataset:
        return tail(Dataset.range(9).map(_fails_at_three))

    def attempts(iterator: Any, count: int) -> list[Any]:
        seen: list[Any] = []
        while len(seen) < count:
            try:
                seen.append(plain(next(iterator)))
            except ZeroDivisionError:
                seen.append("failed")
            except StopIteration:
                break
        return seen

    for count in range(10):
        first = iter(made())
        attempts(first, count)
        first.save(tmp_path / "place")
        other = iter(made())
        other.restore(tmp_path / "place")
        assert attempts(other, 99) == attempts(first, 99)


def test_what_was_given_is_not_computed_again(tmp_path: Path) -> None:
    tracks = tmp_path / "calls"

    def noted(x: Any) -> Any:
        with tracks.open("a") as file:
            file.write(f"{int(x)} ")
        return x

    dataset = Dataset.range(8).map(noted).batch(2)
    iterator = iter(dataset)
    next(iterator)
    next(iterator)
    iterator.save(tmp_path / "place")
    other = iter(dataset)
    other.restore(tmp_path / "place")
    tracks.unlink()

    assert rest(other) == [[4, 5], [6, 7]]
    assert tracks.read_text() == "4 5 6 7 "


def test_another_process_goes_on(tmp_path: Path) -> None:
    code = (
        "import os, sys; from workbench.data import Dataset\n"
        "it = iter(Dataset.range(30).map(lambda x: x * 2).shuffle(9, seed=1).batch(4))\n"
        "if os.path.exists(sys.argv[1]): it.restore(sys.argv[1]); print([b.tolist() for b in it])\n"
        "else: next(it); next(it); it.save(sys.argv[1]); print([b.tolist() for b in it])"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "place")],
            timeout=120,
            check=True,
            capture_output=True,
        ).stdout
        for _ in range(2)
    )
    assert first == second != b""


def test_the_place_in_another_dataset_is_refused(tmp_path: Path) -> None:
    iter(Dataset.range(5).shuffle(5)).save(tmp_path / "place")
    for other in (Dataset.range(5), Dataset.range(5).shuffle(5)):
        iterator = iter(other)
        with pytest.raises(InvalidArgumentError, match="belongs to a dataset other than"):
            iterator.restore(tmp_path / "place")
        assert len(rest(iterator)) == 5


def test_damage_and_missing_files_are_told(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(5))
    with pytest.raises(NotFoundError, match=r"iterator\.save"):
        iterator.restore(tmp_path / "place")
    with pytest.raises(NotFoundError, match="folder is missing"):
        iterator.save(tmp_path / "no" / "place")
    iterator.save(tmp_path / "place")
    good = (tmp_path / "place").read_bytes()
    for place in range(len(good)):
        for bad in (good[:place], good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]):
            (tmp_path / "place").write_bytes(bad)
            with pytest.raises(DataLossError, match="place"):
                iterator.restore(tmp_path / "place")
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
