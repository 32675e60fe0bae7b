"""Parallel `interleave`: the order of reading one after the other, from threads that read ahead."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.data import AUTOTUNE, Dataset, Options, TextLineDataset
from workbench.errors import InvalidArgumentError

WAIT_SECONDS = 30.0


def ints(dataset: Dataset) -> list[int]:
    return [int(element) for element in dataset]


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "wb-interleave"]


def spans(lengths: list[int]) -> Dataset:
    return Dataset.from_tensor_slices((list(range(len(lengths))), lengths))


def inner(index: Any, length: Any) -> Dataset:
    return Dataset.range(int(index) * 100, int(index) * 100 + int(length)).map(lambda x: x)


@given(
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    cycle=st.integers(1, 5),
    block=st.integers(1, 3),
    calls=st.sampled_from([1, 2, AUTOTUNE]),
)
def test_the_order_is_that_without_threads(lengths: list[int], cycle: int, block: int, calls: int) -> None:
    plain = spans(lengths).interleave(inner, cycle, block)
    parallel = spans(lengths).interleave(inner, cycle, block, num_parallel_calls=calls)
    assert ints(parallel) == ints(plain)
    unordered = spans(lengths).interleave(inner, cycle, block, calls, deterministic=False)
    assert sorted(ints(unordered)) == sorted(ints(plain))


def test_a_cycle_may_be_an_array_of_one_number() -> None:
    turns = Dataset.range(3).interleave(lambda x: Dataset.range(2), np.array(2), np.int64(1))
    assert [int(x) for x in turns] == [0, 0, 1, 1, 0, 1]
    with pytest.raises(TypeError, match=r"interleave: cycle_length must be a whole number, got float 1\.5"):
        Dataset.range(3).interleave(lambda x: Dataset.range(2), 1.5)  # type: ignore[arg-type]


def test_slots_are_refilled_as_in_the_reference() -> None:
    order = ints(spans([3, 1, 4, 1, 5]).interleave(inner, cycle_length=2, num_parallel_calls=2))
    assert order[:10] == [0, 100, 1, 2, 200, 201, 300, 202, 203, 400]


def test_all_of_a_cycle_are_read_at_once() -> None:
    together = threading.Barrier(4)

    def meet(x: Any) -> Any:
        together.wait(WAIT_SECONDS)
        return x

    dataset = Dataset.range(4).interleave(
        lambda i: Dataset.range(i * 10, i * 10 + 2).map(meet), 4, num_parallel_calls=AUTOTUNE
    )
    assert ints(dataset) == [0, 10, 20, 30, 1, 11, 21, 31]


@pytest.mark.parametrize("in_order", [True, False])
def test_a_cycle_of_any_length_reads_no_endless_dataset_to_its_end(
    in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.data.stages.computing.flat._MOST_AHEAD", 8)
    starts = Dataset.counter().take(300)  # a limit, so that the test fails if it is reached
    turns = iter(starts.interleave(lambda x: inner(x, 9), 2**60, 1, AUTOTUNE, in_order))
    found = [int(next(turns)) for _ in range(3)]
    assert found == [0, 100, 200] if in_order else len(set(found)) == 3
    assert len(threads()) < 100


def test_a_cycle_of_endless_datasets_does_not_take_a_thread_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.data.stages.computing.flat._MOST_AHEAD", 2)
    monkeypatch.setattr("workbench.data.stages.computing.flat._MOST_THREADS", 10)
    endless = Dataset.counter().interleave(lambda x: Dataset.from_tensors(x).repeat(), 100, 1, AUTOTUNE)
    turns = iter(endless)
    assert [int(next(turns)) for _ in range(202)] == [*range(100), *range(100), 0, 1]
    assert len(threads()) <= 10


def test_no_more_are_read_at_a_time_than_asked_for() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def count(x: Any) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        with lock:
            now -= 1
        return x

    dataset = Dataset.range(8).interleave(lambda i: Dataset.range(20).map(count), 8, num_parallel_calls=2)
    assert len(ints(dataset)) == 160
    assert most <= 2


def test_out_of_order_one_that_hangs_holds_up_no_other() -> None:
    others_are_done = threading.Event()

    def element(x: Any) -> Any:
        if x == 0:
            assert others_are_done.wait(WAIT_SECONDS)
        return x

    options = Options()
    options.deterministic = False
    dataset = Dataset.range(3).interleave(
        lambda i: Dataset.range(i * 10, i * 10 + 5).map(element), 3, num_parallel_calls=3
    )
    elements = iter(dataset.with_options(options))
    assert sorted(int(next(elements)) for _ in range(10)) == [*range(10, 15), *range(20, 25)]
    others_are_done.set()
    assert ints(elements) == [0, 1, 2, 3, 4]  # type: ignore[arg-type]


def test_an_argument_wins_over_the_option() -> None:
    options = Options()
    options.deterministic = False
    dataset = spans([5, 5, 5]).interleave(inner, 3, num_parallel_calls=3, deterministic=True)
    assert ints(dataset.with_options(options)) == ints(spans([5, 5, 5]).interleave(inner, 3))


@pytest.mark.parametrize("calls", [None, 2])
def test_errors_come_at_their_places(calls: int | None) -> None:
    def fails(x: Any) -> Any:
        if x in (1, 21):
            raise LookupError(f"bad {x}")
        return x

    def opened(i: Any) -> Dataset:
        return Dataset.range(int(i) * 10, int(i) * 10 + 2).map(fails)

    elements = iter(Dataset.range(4).map(fails).interleave(opened, 1, num_parallel_calls=calls))
    found: list[Any] = []
    while True:
        try:
            found.append(int(next(elements)))
        except LookupError as error:
            found.append(str(error))
        except StopIteration:
            break
    assert found == [0, "bad 1", "bad 1", 20, "bad 21", 30, 31]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_function_that_fails_names_stage_and_element(calls: int | None) -> None:
    def fails(i: Any) -> Dataset:
        if i == 1:
            raise LookupError("no such thing")
        return Dataset.range(2)

    elements = iter(Dataset.range(3).interleave(fails, 1, num_parallel_calls=calls, name="open"))
    assert [next(elements), next(elements)] == [0, 1]
    with pytest.raises(LookupError) as caught:
        next(elements)
    assert caught.value.__notes__ == ["in stage interleave(fails) 'open' of a dataset, at element 1"]
    assert ints(elements) == [0, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_threads_end_with_the_iterator(deterministic: bool) -> None:
    dataset = Dataset.range(100).interleave(
        lambda i: Dataset.range(1000).map(lambda x: x), 4, 2, AUTOTUNE, deterministic
    )
    elements = iter(dataset)
    next(elements)
    assert len(threads()) >= 4
    del elements
    assert threads() == []
    assert len(ints(dataset.take(5000))) == 5000
    assert threads() == []


def test_random_orders_do_not_depend_on_threads() -> None:
    def shuffled(i: Any) -> Dataset:
        return Dataset.range(i * 100, i * 100 + 50).shuffle(50, seed=3)

    plain = Dataset.range(6).shuffle(6, seed=3).interleave(shuffled, 3).repeat(2)
    parallel = Dataset.range(6).shuffle(6, seed=3).interleave(shuffled, 3, num_parallel_calls=3).repeat(2)
    assert ints(parallel) == ints(plain)


@pytest.mark.parametrize("calls", [0, -2])
def test_a_number_of_calls_that_is_none_is_refused(calls: int) -> None:
    with pytest.raises(InvalidArgumentError, match="interleave: num_parallel_calls"):
        Dataset.range(2).interleave(Dataset.range, num_parallel_calls=calls)


@pytest.mark.parametrize("reads", [2, 3, AUTOTUNE])
def test_readers_read_several_files_at_a_time(tmp_path: Path, reads: int) -> None:
    names = []
    for number in range(5):
        path = tmp_path / f"{number}.txt"
        path.write_text("".join(f"{number}-{line}\n" for line in range(number * 3)))
        names.append(str(path))
    lines = list(TextLineDataset(names, num_parallel_reads=reads))
    assert sorted(lines) == sorted(TextLineDataset(names))
    cycle = 4 if reads == AUTOTUNE else reads
    assert lines == list(Dataset.from_tensor_slices(names).interleave(TextLineDataset, cycle))
