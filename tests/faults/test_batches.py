"""Row 29: a lost worker costs no element of a distributed dataset, whenever it is lost."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.faults.conftest import ARMED, kill, until
from tests.faults.random_kills import LOSSES, patiently, run_rounds
from tests.two_replicas import strategy
from workbench.data import Dataset
from workbench.errors import ReplicaLost, StaleGeneration

__all__ = ["strategy"]

ROWS = 24


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    """Two replicas in processes of their own."""
    with wb.connect(replicas=2, environment=ARMED) as cluster:
        yield cluster


def _itself(rows: Any) -> Any:
    return rows


def _noting(folder: Path) -> Callable[[Any], Any]:
    """A stage's function that records each call."""

    def noted(x: Any) -> Any:
        with open(folder / "calls", "a") as file:
            file.write(f"{int(x)}\n")
        return x

    return noted


def _calls(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "calls").read_text().split()]


def _lose(strategy: Any, rank: int) -> None:
    link, _ = strategy.group.place(rank)
    if not link.lost:
        kill(link.pid)
    until(lambda: link.lost, "the notice of the loss")


def _rows(strategy: Any, batches: Any) -> list[list[int]]:
    return [strategy.gather(batch, 0).tolist() for batch in batches]


EXPECTED = np.arange(ROWS).reshape(-1, 4).tolist()


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
def test_row_29_batches_of_a_replica_that_was_replaced_can_be_used(
    strategy: Any, mapped: bool, rank: int
) -> None:
    data = Dataset.range(ROWS).batch(4)
    batches = list(strategy.distribute_dataset(data.map(lambda x: x) if mapped else data))
    _lose(strategy, rank)
    results = [strategy.run(_itself, args=(batch,)) for batch in batches]
    assert _rows(strategy, results) == EXPECTED
    assert _rows(strategy, batches) == EXPECTED


def test_row_29_large_batches_can_be_looked_at_before_the_next_step(strategy: Any) -> None:
    rows = np.arange(16 * 2000, dtype=np.float32).reshape(16, 2000)
    batches = list(strategy.distribute_dataset(Dataset.from_tensor_slices(rows).batch(4)))
    _lose(strategy, 1)
    np.testing.assert_array_equal(np.concatenate([strategy.gather(batch, 0) for batch in batches]), rows)


def test_row_29_a_loss_while_nothing_runs_is_not_told(strategy: Any) -> None:
    found: list[Any] = []
    for batch in strategy.distribute_dataset(Dataset.range(ROWS).batch(4)):
        _lose(strategy, len(found) % 2)
        found.append(strategy.run(_itself, args=(batch,)))
        if len(found) == 2:
            _lose(strategy, 0)  # and this one when the iterator asks for more
    assert _rows(strategy, found[-1:]) == EXPECTED[-1:]
    assert len(found) == len(EXPECTED)


def test_row_29_iterators_that_are_half_consumed_go_on(strategy: Any) -> None:
    shuffled = strategy.distribute_dataset(Dataset.range(ROWS).shuffle(ROWS).batch(4))
    numbers = strategy.distribute_dataset(Dataset.range(ROWS).map(lambda x: x).batch(4))
    first, second, third = iter(shuffled), iter(numbers), iter(numbers)
    before = [next(first), next(first)]
    also = [next(second)]
    _lose(strategy, 0)
    assert sorted(x for rows in _rows(strategy, [*before, *first]) for x in rows) == list(range(ROWS))
    assert _rows(strategy, [*also, *second]) == EXPECTED
    assert _rows(strategy, third) == EXPECTED


def test_row_29_a_batch_outlives_its_dataset(strategy: Any) -> None:
    batch = next(iter(strategy.distribute_dataset(Dataset.range(ROWS).map(lambda x: x).batch(4))))
    _lose(strategy, 1)
    assert strategy.gather(strategy.run(_itself, args=(batch,)), 0).tolist() == [0, 1, 2, 3]


def test_row_29_all_replicas_at_once(strategy: Any) -> None:
    batches = iter(strategy.distribute_dataset(Dataset.range(ROWS).map(lambda x: x).batch(4)))
    held = [next(batches), next(batches)]
    _lose(strategy, 0)
    _lose(strategy, 1)
    assert _rows(strategy, [strategy.run(_itself, args=(batch,)) for batch in [*held, *batches]]) == EXPECTED


def test_row_29_functions_run_again_only_where_their_process_was_lost(strategy: Any, tmp_path: Path) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(ROWS).map(_noting(tmp_path)).batch(4))
    (tmp_path / "calls").unlink()  # finding the element spec has called it in the notebook
    found = []
    for number, batch in enumerate(distributed):
        if number == 3:
            _lose(strategy, 1)  # replica 0 reads for both
        found.append(strategy.run(_itself, args=(batch,)))
    assert _calls(tmp_path) == list(range(ROWS))
    (tmp_path / "calls").unlink()
    for number, batch in enumerate(distributed):
        if number == 3:
            _lose(strategy, 0)
        found.append(strategy.run(_itself, args=(batch,)))
    again = _calls(tmp_path)
    assert set(again) == set(range(ROWS)), again
    assert again.count(0) == 2, again


def test_row_29_a_batch_that_ends_its_replica_each_time_is_told(strategy: Any) -> None:
    def step(rows: Any) -> Any:
        if 4 in rows:
            os.kill(os.getpid(), 9)
        return rows

    batches = iter(strategy.distribute_dataset(Dataset.range(ROWS).batch(4)))
    used, lost, told = [], 0, []
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            break
        except ReplicaLost as error:
            told.append(str(error))
            continue
        try:
            used.append(strategy.run(step, args=(batch,)))
        except LOSSES:
            lost += 1
    assert _rows(strategy, used) == [rows for rows in EXPECTED if 4 not in rows]
    assert lost == 4
    assert len(told) == 1
    assert "element 1 of a distributed dataset was given 4 times" in told[0]


@pytest.mark.parametrize("size", [4, 100_000])
@pytest.mark.parametrize("rank", [0, 1])
def test_row_29_values_of_the_notebook_are_sent_again(strategy: Any, rank: int, size: int) -> None:
    given = [np.full(size, float(number)) for number in range(2)]
    value = strategy.distribute_values_from_function(lambda context: given[context.replica_id_in_sync_group])
    expected = [0.0, size * 1.0]
    assert list(strategy.local_results(strategy.run(np.sum, args=(value,)))) == expected
    for array in given:
        array += 7.0  # a replica's successor gets what the other replicas have
    for _ in range(2):
        _lose(strategy, rank)
        assert list(strategy.local_results(strategy.run(np.sum, args=(value,)))) == expected
    _lose(strategy, 1 - rank)
    function = wb.function(np.sum)
    assert [list(strategy.local_results(strategy.run(function, args=(value,)))) for _ in range(2)] == [
        expected,
        expected,
    ]


def test_row_29_values_of_the_notebook_are_sent_again_to_steps_that_were_accepted(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda context: np.full(10_000, 1.0))
    with strategy.scope():
        total = wb.Variable(0.0, aggregation="MEAN")

    @wb.function
    def step(x: Any) -> None:
        total.assign_add(float(x.sum()))

    strategy.run(step, args=(value,))
    strategy.group.wait()
    link, _ = strategy.group.place(1)
    for _ in range(4):
        strategy.run(step, args=(value,))
    kill(link.pid)
    patiently(lambda: strategy.run(step, args=(value,)))
    assert patiently(lambda: float(total)) == 60_000.0


def test_row_29_values_that_nobody_holds_are_not_kept(strategy: Any) -> None:
    value = strategy.distribute_values_from_function(lambda context: np.zeros(10_000))
    strategy.run(_itself, args=(value,))
    sent = weakref.ref(value.handle.step.origin)
    assert sent() is not None
    del value
    gc.collect()
    assert sent() is None


def test_row_29_a_result_of_a_step_cannot_be_made_again(strategy: Any) -> None:
    result = strategy.run(lambda: np.zeros(10_000))
    _lose(strategy, 1)
    with pytest.raises(StaleGeneration, match=r"replica 1.*strategy\.run") as caught:
        strategy.run(lambda x, y: None, args=(1, result))
    assert caught.value.replica == 1


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_row_29_random_kills(hosts: int, tmp_path: Path) -> None:
    _random_kills(hosts, 12, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("hosts", [1, 2])
def test_row_29_two_hundred_random_kills(hosts: int, tmp_path: Path) -> None:
    _random_kills(hosts, 200, tmp_path)


def _random_kills(hosts: int, kills: int, folder: Path) -> None:
    with wb.connect(hosts=hosts, replicas_per_host=2, environment=ARMED):
        strategy = wb.MultiWorkerMirroredStrategy() if hosts > 1 else wb.MirroredStrategy()
        done = run_rounds(strategy, folder, kills, 1, lambda line: None)
    assert done.total >= kills
