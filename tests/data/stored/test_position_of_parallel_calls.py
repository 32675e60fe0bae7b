"""`save` and `restore` of iterators whose parallel calls may change the order: no element is lost or comes twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.data import overtaking
from workbench.data import Dataset, Options
from workbench.errors import DataLossError
from workbench.io.checksums import crc32c


@pytest.fixture(autouse=True)
def nothing_late() -> Iterator[None]:
    yield
    overtaking.no_longer_late()


def _numbers(count: int = 12) -> Dataset:
    return Dataset.range(count).map(
        lambda x: overtaking.late_if_even(x), num_parallel_calls=4, deterministic=False
    )


def _tens() -> Dataset:
    return Dataset.range(3).interleave(
        lambda x: Dataset.from_generator(overtaking.ten, np.int64, (), args=(x,)),
        cycle_length=3,
        block_length=3,
        num_parallel_calls=3,
        deterministic=False,
    )


def _sloppy(dataset: Dataset) -> Dataset:
    options = Options()
    options.deterministic = False
    return dataset.with_options(options)


PIPELINES: dict[str, Callable[[], Dataset]] = {
    "map": _numbers,
    "map by options": lambda: _sloppy(
        Dataset.range(12).map(lambda x: overtaking.late_if_even(x), num_parallel_calls=4)
    ),
    "map, batch": lambda: _numbers().batch(5),
    "map, parallel batch": lambda: _numbers().batch(5, num_parallel_calls=2, deterministic=False),
    "map, shuffle": lambda: _numbers().shuffle(4, seed=1),
    "map, map in order": lambda: _numbers().map(lambda x: x + 1, num_parallel_calls=2).prefetch(2),
    "repeat": lambda: _numbers(6).repeat(3),
    "repeat before": lambda: (
        Dataset.range(6)
        .repeat(2)
        .map(lambda x: overtaking.late_if_even(x), num_parallel_calls=4, deterministic=False)
    ),
    "interleave": _tens,
    "interleave, batch": lambda: _tens().batch(4),
    "zip": lambda: Dataset.zip((_numbers(), _numbers())),
    "concatenate": lambda: _numbers(4).concatenate(_numbers(8)),
    "flat_map": lambda: Dataset.range(3).flat_map(lambda x: _numbers(6).map(lambda y: y + 10 * x)),
    "interleave of map": lambda: Dataset.range(3).interleave(
        lambda x: _numbers(8).map(lambda y: y + 10 * x),
        cycle_length=2,
        num_parallel_calls=2,
        deterministic=False,
    ),
    "filter": lambda: _numbers().filter(lambda x: x % 3 != 0),
    "cache": lambda: _numbers(6).cache().repeat(2),
    "padded": lambda: (
        _numbers(10)
        .map(lambda x: np.full(int(x) + 1, x))
        .padded_batch(2, num_parallel_calls=2, deterministic=False)
        .map(lambda rows: rows[:, 0])
    ),
}


def plain(element: Any) -> Any:
    return [part.tolist() for part in element] if isinstance(element, tuple) else element.tolist()


@pytest.mark.parametrize("made", PIPELINES.values(), ids=PIPELINES.keys())
def test_no_element_is_lost_or_comes_twice(made: Callable[[], Dataset], tmp_path: Path) -> None:
    overtaking.no_longer_late()
    in_order = [plain(element) for element in made()]
    whole = len(in_order)
    for count in range(whole + 1):
        dataset = made()
        overtaking.late_again()
        first = iter(dataset)
        given = [plain(next(first)) for _ in range(count)]
        first.save(tmp_path / "place")
        overtaking.no_longer_late()
        second = iter(made())
        second.restore(tmp_path / "place")
        some = [plain(element) for _, element in zip(range(2), second, strict=False)]
        second.save(tmp_path / "place")
        third = iter(made())
        third.restore(tmp_path / "place")

        found = given + some + [plain(element) for element in third]
        assert len(found) == whole
        assert _numbers_in(found) == _numbers_in(in_order)


def test_processes_give_again_what_was_not_given(tmp_path: Path) -> None:
    folder = str(tmp_path)
    options = Options()
    options.threading.worker_kind = "PROCESSES"
    dataset = Dataset.range(9).with_options(options)
    dataset = dataset.map(
        lambda x: overtaking.late_in_process(x, folder), num_parallel_calls=2, deterministic=False
    )
    os.mkfifo(tmp_path / "made")
    late = tmp_path / "late"
    late.touch()
    first = iter(dataset)
    given = [plain(next(first))]
    late.unlink()
    first.save(tmp_path / "place")
    second = iter(dataset)
    second.restore(tmp_path / "place")

    assert sorted(given + [plain(element) for element in second]) == list(range(9))


@pytest.mark.parametrize("was_in_order", [True, False])
def test_the_option_may_change_in_between(was_in_order: bool, tmp_path: Path) -> None:
    def made(in_order: bool) -> Dataset:
        options = Options()
        options.deterministic = in_order
        return (
            Dataset.range(12)
            .map(lambda x: overtaking.late_if_even(x), num_parallel_calls=4)
            .with_options(options)
        )

    overtaking.late_again()
    first = iter(made(was_in_order))
    given = [plain(next(first)) for _ in range(3)]
    first.save(tmp_path / "place")
    overtaking.late_again()
    second = iter(made(not was_in_order))
    second.restore(tmp_path / "place")

    assert sorted(given + [plain(element) for element in second]) == list(range(12))


def test_a_checkpoint_of_an_iterator_loses_nothing_either(tmp_path: Path) -> None:
    dataset = _numbers()
    overtaking.late_again()
    first = iter(dataset)
    given = [plain(next(first)) for _ in range(3)]
    path = wb.Checkpoint(iterator=first).save(tmp_path / "kept")
    second = iter(_numbers())
    wb.Checkpoint(iterator=second).restore(path)

    assert sorted(given + [plain(element) for element in second]) == list(range(12))


def test_the_order_takes_less_than_half_a_byte_an_element(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(40_000).map(lambda x: x, num_parallel_calls=2, deterministic=False))
    for _ in range(40_000):
        next(iterator)
    iterator.save(tmp_path / "place")
    assert (tmp_path / "place").stat().st_size < 20_000


@pytest.mark.parametrize("turns", ["?", "AAAA", 7, None, [1]])
def test_a_damaged_order_is_refused(turns: Any, tmp_path: Path) -> None:
    iterator = iter(_numbers())
    next(iterator)
    iterator.save(tmp_path / "place")
    place = json.loads((tmp_path / "place").read_bytes().split(b"\n")[0])
    place["arrivals"] = dict.fromkeys(place["arrivals"], turns)
    body = json.dumps(place).encode()
    (tmp_path / "place").write_bytes(body + b"\n%08x\n" % crc32c(body))
    with pytest.raises(DataLossError, match="is not a position of an iterator"):
        iterator.restore(tmp_path / "place")


def _numbers_in(elements: list[Any]) -> list[int]:
    numbers: list[int] = np.concatenate([np.ravel(each) for each in elements]).tolist()
    return sorted(numbers)
