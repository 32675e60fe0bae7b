"""`prefetch`: a thread reads ahead, within bounds, and ends with its iterator."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from workbench.data import AUTOTUNE, Dataset, Options, distribute_for_host
from workbench.data.meter import Meter
from workbench.data.passes import Pass
from workbench.data.tables import ListTable
from workbench.errors import FailedPreconditionError, InvalidArgumentError

WAIT_SECONDS = 30.0
Threads = Callable[[], list[threading.Thread]]


class Calls:
    """Counts calls of a function; others wait until there were enough."""

    def __init__(self) -> None:
        self.count = 0
        self.threads: set[threading.Thread] = set()
        self._changed = threading.Condition()

    def __call__(self, element: Any) -> Any:
        with self._changed:
            self.count += 1
            self.threads.add(threading.current_thread())
            self._changed.notify_all()
        return element

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, WAIT_SECONDS), self.count


@pytest.fixture
def hanging() -> Iterator[Callable[[Any], Any]]:
    """A function that returns when the test is over."""
    over = threading.Event()

    def hang(element: Any) -> Any:
        assert over.wait(WAIT_SECONDS)
        return element

    yield hang
    over.set()


@pytest.fixture(autouse=True)
def threads() -> Threads:
    """The threads of prefetches that started in this test; an error kept from another may keep some of its."""
    before = set(threading.enumerate())
    return lambda: [
        thread for thread in threading.enumerate() if thread.name == "wb-prefetch" and thread not in before
    ]


def ints(dataset: Dataset) -> list[int]:
    return [int(element) for element in dataset]


def test_elements_are_made_ahead_on_another_thread_but_no_more_than_asked_for(threads: Threads) -> None:
    calls = Calls()
    elements = iter(Dataset.range(100).map(calls).prefetch(3))
    assert next(elements) == 0
    calls.wait_for(5)  # 1 returned, 3 waiting, and 1 without room
    for given in range(1, 100):
        assert next(elements) == given
        assert calls.count <= given + 5
    assert calls.threads.isdisjoint({threading.current_thread()})
    assert next(elements, None) is None
    assert threads() == []


@pytest.mark.parametrize("size", [0, 1, 2, 1000, None, AUTOTUNE])
def test_elements_and_their_order_stay_the_same(size: int | None) -> None:
    dataset = Dataset.range(300).map(lambda x: x * 2).prefetch(size)
    assert ints(dataset) == list(range(0, 600, 2))
    assert ints(dataset.repeat(2).batch(7).unbatch()) == 2 * list(range(0, 600, 2))


def test_a_buffer_of_none_is_no_thread() -> None:
    calls = Calls()
    assert ints(Dataset.range(3).map(calls).prefetch(0)) == [0, 1, 2]
    assert calls.threads == {threading.current_thread()}


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="prefetch: buffer_size is -2"):
        Dataset.range(3).prefetch(-2)


def test_what_waits_is_bounded_in_bytes() -> None:
    options = Options()
    options.autotune.ram_budget = 3_000_000
    calls = Calls()
    dataset = Dataset.range(40).map(calls).map(lambda x: np.full(1_000_000, x, np.uint8)).prefetch(30)
    elements = iter(dataset.with_options(options))
    for given in range(40):
        assert next(elements)[0] == given
        assert calls.count <= given + 1 + 3 + 1


def test_one_element_that_is_larger_than_the_bound_still_comes() -> None:
    options = Options()
    options.autotune.ram_budget = 10
    dataset = Dataset.range(5).map(lambda x: np.full(1000, x)).prefetch(4).with_options(options)
    assert [int(element[0]) for element in dataset] == list(range(5))


def test_batches_are_put_together_by_the_thread() -> None:
    dataset = Dataset.range(8).map(lambda x: x).batch(4).prefetch(2)
    runs = list(dataset.open(dataset.next_pass()))
    assert [type(run.table) for run in runs] == [ListTable, ListTable]


def test_autotune_lets_more_wait_when_the_reader_takes_in_bursts() -> None:
    calls = Calls()
    elements = iter(Dataset.range(4000).map(calls).prefetch(AUTOTUNE))
    next(elements)
    given, ahead = 1, 0
    while ahead < 20:
        calls.wait_for(min(4000, given + 3))
        ahead = max(ahead, calls.count - given)
        for _ in range(calls.count - given + 1):  # one more than there are
            assert next(elements) == given
            given += 1
    assert given < 4000


def test_rows_of_arrays_stay_rows() -> None:
    plain = Dataset.range(100_000).shuffle(1000, seed=3).batch(32)
    ahead = Dataset.range(100_000).prefetch(1).shuffle(1000, seed=3).prefetch(4).batch(32).prefetch(2)
    wanted, found = (list(each.open(each.next_pass())) for each in (plain, ahead))
    assert [len(run) for run in found] == [len(run) for run in wanted]
    np.testing.assert_array_equal(np.concatenate(list(ahead)), np.concatenate(list(plain)))


@pytest.mark.parametrize(
    "end", [lambda elements: elements.clear(), lambda elements: elements.append(list(elements.pop()))]
)
def test_the_thread_ends_with_the_iterator(end: Callable[[list[Any]], None], threads: Threads) -> None:
    elements: list[Any] = [
        iter(Dataset.range(1000).map(lambda x: x).prefetch(2).map(lambda x: x).prefetch(5))
    ]
    next(elements[0])
    assert len(threads()) == 2
    end(elements)
    assert threads() == []


def test_an_iterator_in_a_cycle_is_closed_by_the_collector(threads: Threads) -> None:
    cycle: list[Any] = [iter(Dataset.range(1000).map(lambda x: x).prefetch(2))]
    cycle.append(cycle)
    next(cycle[0])
    del cycle
    gc.collect()
    assert threads() == []


def test_closing_does_not_wait_for_a_function_that_hangs(
    hanging: Callable[[Any], Any], threads: Threads
) -> None:
    calls = Calls()

    def second(x: Any) -> Any:
        return hanging(calls(x)) if x else x

    elements = iter(Dataset.range(9).map(second).prefetch(1).map(lambda x: x).prefetch(1))
    next(elements)
    calls.wait_for(1)
    del elements
    assert len(threads()) == 1  # the thread in the function; the one of a later stage has ended


def test_an_interrupt_reaches_a_reader_that_waits(hanging: Callable[[Any], Any], threads: Threads) -> None:
    def interrupt(element: Any) -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return hanging(element)

    outer = Dataset.range(9).map(interrupt).prefetch(1).map(lambda x: x).prefetch(1)
    with pytest.raises(KeyboardInterrupt):
        next(iter(outer))
    assert len(threads()) <= 1  # the thread in the function


def test_errors_come_at_their_places() -> None:
    def odd(x: Any) -> Any:
        if x % 2:
            raise LookupError(f"odd {x}")
        return x

    elements = iter(Dataset.range(5).map(odd).prefetch(10))
    found: list[Any] = []
    while len(found) < 5:
        try:
            found.append(int(next(elements)))
        except LookupError as error:
            found.append(str(error))
    assert found == [0, "odd 1", 2, "odd 3", 4]
    assert next(elements, None) is None


def test_what_ends_a_program_ends_the_one_that_reads(threads: Threads) -> None:
    def stop(x: Any) -> Any:
        if x == 2:
            raise SystemExit(3)
        return x

    elements = iter(Dataset.range(5).map(stop).prefetch(4))
    assert [next(elements), next(elements)] == [0, 1]
    with pytest.raises(SystemExit):
        next(elements)
    assert threads() == []


@pytest.mark.parametrize("read", [1, 3])
def test_an_iterator_that_is_dropped_after_an_error_leaves_no_thread(threads: Threads, read: int) -> None:
    def fails(x: Any) -> Any:
        raise LookupError

    elements = iter(Dataset.range(9).map(fails).take(5).prefetch(2))
    gc.collect()
    gc.disable()  # nothing may have to wait for it
    try:
        for _ in range(read):
            with contextlib.suppress(LookupError):
                next(elements)
        del elements
        assert threads() == []
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
# The test needs threads in the process. Python warns when such a process forks, and so does JAX once it has devices.
@pytest.mark.filterwarnings("ignore:.*multi-?threaded.*")
def test_a_forked_child_is_told_instead_of_waiting() -> None:
    elements = iter(Dataset.range(10_000).map(lambda x: x).prefetch(2))
    next(elements)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            list(elements)
            answer = b"went on"
        except FailedPreconditionError:
            answer = b"told"
        except BaseException as error:
            answer = repr(error).encode()
        os.write(writing, answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        assert answers.read() == b"told"
    os.waitpid(child, 0)
    assert int(next(elements)) == 1


def test_the_process_that_feeds_replicas_reads_ahead_itself(threads: Threads) -> None:
    dataset = Dataset.range(64).map(lambda x: x).batch(8).prefetch(3)
    pipeline = distribute_for_host(dataset, replicas_per_host=2)
    assert pipeline.read_ahead == 3
    steps = pipeline.values_for([0])
    next(steps)
    assert threads() == []


def test_a_meter_sees_the_queue() -> None:
    dataset = Dataset.range(50).map(lambda x: x).prefetch(7)
    meter = Meter(dataset)
    for _ in dataset.open(Pass(Dataset, meter=meter)):
        pass
    prefetch = meter.pipelines()[0].stages[-1]
    assert prefetch.queue is not None
    assert (prefetch.queue.capacity, prefetch.queue.chosen, prefetch.queue.looks) == (7, False, 100)
