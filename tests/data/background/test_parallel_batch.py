"""Parallel `batch` and `padded_batch`: the same batches, put together by threads, bounded, ended with the iterator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from workbench.data import AUTOTUNE, Dataset, Options, from_torch
from workbench.data.background.crew import Crew
from workbench.data.experimental import at
from workbench.data.passes import Pass
from workbench.data.sharding.distributed import distribute_for_host
from workbench.data.spec import TensorSpec
from workbench.data.stage import Source
from workbench.data.structure import LEAF, Array, Structure
from workbench.data.tables import ArrayTable, Leaves, Rows, Run, Segment, single
from workbench.errors import InvalidArgumentError

WAIT_SECONDS = 30.0


def plain(element: Any) -> Any:
    if isinstance(element, dict):
        return {name: plain(part) for name, part in element.items()}
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    return (str(element.dtype), element.tolist())


def outcomes(dataset: Dataset) -> list[Any]:
    found: list[Any] = []
    elements = iter(dataset)
    while True:
        try:
            found.append(plain(next(elements)))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error).__name__, str(error), getattr(error, "__notes__", [])))


def fails_at_5(x: Any) -> Any:
    if x == 5:
        raise LookupError("nothing at five")
    return {"x": x, "text": b"%d" % x}


def ragged_at_5(x: Any) -> Any:
    return np.zeros(2 if x == 5 else 3, np.float32)


RANGE = Dataset.range(23)
BATCHED = {
    "rows of arrays": lambda **calls: RANGE.shuffle(23, seed=1).batch(4, **calls),
    "remainder dropped": lambda **calls: RANGE.batch(4, True, **calls),
    "an element fails": lambda **calls: RANGE.map(fails_at_5).batch(4, **calls),
    "a batch does not fit": lambda **calls: RANGE.map(ragged_at_5).batch(4, **calls),
    "batches of batches": lambda **calls: RANGE.batch(2, True, **calls).batch(3, **calls),
    "unbatch": lambda **calls: RANGE.batch(4, **calls).unbatch().batch(5),
    "nothing": lambda **calls: RANGE.take(0).batch(4, **calls),
    "padded": lambda **calls: RANGE.map(lambda n: np.arange(int(n))).padded_batch(4, **calls),
    "padded, one does not fit": lambda **calls: RANGE.map(lambda n: np.arange(int(n))).padded_batch(4, (9,), **calls),
}  # fmt: skip


@pytest.mark.parametrize("calls", [1, 3, AUTOTUNE])
@pytest.mark.parametrize("made", BATCHED.values(), ids=BATCHED.keys())
def test_parallel_calls_give_the_same_batches_and_errors_at_their_places(made: Any, calls: int) -> None:
    assert outcomes(made(num_parallel_calls=calls)) == outcomes(made())


@dataclass(slots=True)
class Meeting:
    """Rows whose batches are put together only once `parties` threads do so at a time."""

    at_rest: ClassVar[bool] = True
    barrier: threading.Barrier
    structure: Structure = LEAF

    def row(self, index: int) -> Leaves:
        return [np.int64(index)]

    def take(self, rows: Rows) -> Leaves:
        self.barrier.wait(WAIT_SECONDS)
        return [np.array(rows)]

    def ids(self, rows: Rows) -> Array:
        return np.array(rows)

    def segment(self, index: int) -> Segment:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Rows8(Source):
    name: ClassVar[str] = "rows"
    table: Any

    def open(self, current: Pass) -> Iterator[Run]:
        yield Run(self.table, range(8))

    def element_spec(self) -> Any:
        return TensorSpec((), np.int64)

    def cardinality(self) -> int:
        return 8


def test_several_batches_are_put_together_at_a_time() -> None:
    dataset = Dataset(Rows8(Meeting(threading.Barrier(4)))).batch(2, num_parallel_calls=4)
    assert [batch.tolist() for batch in dataset] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@dataclass(slots=True)
class Overtaken(Meeting):
    """Rows whose first batch is there only after the second."""

    second: threading.Event = field(default_factory=threading.Event)

    def take(self, rows: Rows) -> Leaves:
        if rows[0] == 2:
            self.second.set()
        elif rows[0] == 0:
            assert self.second.wait(WAIT_SECONDS)
        return [np.array(rows)]


@pytest.mark.parametrize("by_options", [False, True])
def test_batches_overtake_each_other_where_order_does_not_matter(by_options: bool) -> None:
    taken = threading.Event()

    @dataclass(slots=True)
    class FirstIsLast(Overtaken):
        def take(self, rows: Rows) -> Leaves:
            if rows[0] == 0:
                assert taken.wait(WAIT_SECONDS)
            return [np.array(rows)]

    dataset = Dataset(Rows8(FirstIsLast(threading.Barrier(1))))
    batches = dataset.batch(2, num_parallel_calls=2, deterministic=None if by_options else False)
    if by_options:
        options = Options()
        options.deterministic = False
        batches = batches.with_options(options)
    elements = iter(batches)
    assert next(elements).tolist() == [2, 3]
    taken.set()
    assert sorted(int(batch[0]) for batch in elements) == [0, 4, 6]


def test_order_is_kept_although_a_later_batch_is_there_first() -> None:
    dataset = Dataset(Rows8(Overtaken(threading.Barrier(1)))).batch(2, num_parallel_calls=2)
    assert [int(batch[0]) for batch in dataset] == [0, 2, 4, 6]


def test_positions_are_not_told_from_numbers_where_batches_overtake_each_other() -> None:
    dataset = Dataset.range(8).batch(2, num_parallel_calls=2)
    assert at(dataset, 3).tolist() == [6, 7]
    options = Options()
    options.deterministic = False
    assert len(at(dataset.with_options(options), 3)) == 2


def test_results_that_wait_are_bounded_in_bytes() -> None:
    one_given, too_far = threading.Event(), threading.Event()

    def call(number: int) -> Run:
        if number == 0:
            too_far.wait(0.2)  # the other thread works on number 1, which is more than may wait
        elif number == 2 and not one_given.is_set():
            too_far.set()
        return single([np.zeros(100)], LEAF)

    crew = Crew(call, 2, name="wb-test", arrival=None, most_bytes=500)
    runs = crew.run(iter(range(6)))
    next(runs)
    held = too_far.is_set()
    one_given.set()
    assert len(list(runs)) == 5
    assert not held


@pytest.mark.parametrize("calls", [2, AUTOTUNE])
def test_explain_tells_who_puts_batches_together(calls: int) -> None:
    rows = Dataset(Rows8(ArrayTable([np.zeros((8, 3))], LEAF)))
    text = repr(rows.batch(2, num_parallel_calls=calls).explain())
    assert ("2 threads" if calls == 2 else "1 thread (AUTOTUNE)") in text
    if calls == AUTOTUNE:
        assert "less than handing it over" in text or "two threads" in text or "waits for" in text


def test_batches_for_replicas_are_put_together_by_who_reads_for_them() -> None:
    dataset = Dataset.range(16).batch(8, num_parallel_calls=2)
    pipeline = distribute_for_host(dataset, replicas_per_host=2)
    steps = pipeline.values_for([1])
    assert [value.tolist() for value in next(steps)] == [[4, 5, 6, 7]]  # type: ignore[union-attr]
    assert not [thread for thread in threading.enumerate() if thread.name == "wb-batch"]


def test_a_map_style_dataset_is_called_by_one_thread_at_a_time() -> None:
    class Counted:
        calls = 0

        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            self.calls += 1
            assert self.calls == 1
            value = np.full(1000, index)
            self.calls -= 1
            return value

    batches = list(from_torch(Counted()).batch(4, num_parallel_calls=3))
    assert [int(batch[0, 0]) for batch in batches] == list(range(0, 64, 4))


def test_numbers_of_calls_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="batch: num_parallel_calls is 0"):
        RANGE.batch(2, num_parallel_calls=0)
    with pytest.raises(InvalidArgumentError, match="padded_batch: num_parallel_calls is -2"):
        RANGE.padded_batch(2, num_parallel_calls=-2)
