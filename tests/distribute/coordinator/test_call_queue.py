"""Calls wait, run, come back and fail in the order that the queue promises."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from workbench.distribute.coordinator import call_queue
from workbench.distribute.coordinator.call_queue import Call, CallQueue
from workbench.distribute.coordinator.remote_value import RemoteValue
from workbench.errors import CancelledError, ClusterClosed, UnavailableError
from workbench.runtime.shipping.function_registry import Prepared


def _add(queue: CallQueue, *needs: RemoteValue) -> RemoteValue:
    result = RemoteValue(queue.changed, "step")
    queue.put(Call(queue.next_number(), Prepared(_add, "step", counts=True), b"", result), needs)
    return result


def test_results_come_to_their_values() -> None:
    queue = CallQueue(10)
    values = [_add(queue) for _ in range(3)]

    calls = queue.take(9, 1)
    queue.ended((call, pickle.dumps(call.number)) for call in calls)

    assert [value.fetch() for value in values] == [0, 1, 2]
    assert queue.done()
    assert queue.first_open == 3


def test_a_result_of_another_queue_wakes_the_worker_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_queue, "_CHECK_SECONDS", 60.0)
    one, other = CallQueue(10), CallQueue(10)
    needed = _add(one)
    _add(other, needed)
    taken: list[Call] = []
    worker = threading.Thread(target=lambda: taken.extend(other.take(9, 1)), daemon=True)
    worker.start()

    one.ended((call, pickle.dumps(1)) for call in one.take(9, 1))
    worker.join(20.0)

    assert [call.number for call in taken] == [0]


def test_who_waits_for_the_end_of_all_calls_is_not_told_of_errors() -> None:
    queue = CallQueue(10)
    values = [_add(queue) for _ in range(2)]
    (call,) = queue.take(1, 1)
    open_calls: list[int] = []
    settling = threading.Thread(target=lambda: open_calls.append(queue.settle(60.0)), daemon=True)
    settling.start()
    assert settling.is_alive()

    queue.ended([(call, ValueError("bad"))])
    settling.join(20.0)

    assert open_calls == [0]
    with pytest.raises(ValueError, match="bad"):
        queue.join()
    assert all(value.failed for value in values)


def test_who_waits_no_longer_for_the_end_of_calls_gets_the_number_of_open_ones() -> None:
    queue = CallQueue(10)
    for _ in range(4):
        _add(queue)
    _, second = queue.take(2, 1)
    assert queue.settle(0.0) == 4
    queue.ended([(second, pickle.dumps(1))])  # one running and two waiting calls remain
    assert queue.settle(0.0) == 3
    assert queue.settle(-1.0) == 3

    queue.close()
    assert queue.settle(0.0) == 0


class _Rebuilt:
    def __init__(self, rebuild: Any) -> None:
        self._rebuild = rebuild

    def __reduce__(self) -> Any:
        return self._rebuild, ()


def _another_queue_answers() -> bool:
    """Whether another thread can use another queue at this moment."""
    asking = threading.Thread(target=CallQueue(10).now, daemon=True)
    asking.start()
    asking.join(5.0)
    return not asking.is_alive()


def test_a_result_is_rebuilt_while_other_queues_go_on() -> None:
    queue = CallQueue(10)
    value = _add(queue)
    queue.ended((call, pickle.dumps(_Rebuilt(_another_queue_answers))) for call in queue.take(9, 1))

    assert value.fetch() is True


def test_threads_that_fetch_a_result_at_once_get_the_same_object() -> None:
    queue = CallQueue(10)
    value = _add(queue)
    queue.ended((call, pickle.dumps(_Rebuilt(_together))) for call in queue.take(9, 1))
    fetched: list[Any] = []
    threads = [threading.Thread(target=lambda: fetched.append(value.fetch())) for _ in range(2)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetched[0] is fetched[1] is value.fetch()


_both = threading.Barrier(2)


def _together() -> list[Any]:
    """Called to unpickle an object; returns once two threads have called it."""
    _both.wait(20.0)
    return []


def test_queues_that_wait_for_each_others_results_never_hold_each_other_up() -> None:
    one, other = CallQueue(10_000), CallQueue(10_000)
    done = []

    def feed(queue: CallQueue, into: CallQueue) -> None:
        for _ in range(500):
            _add(into, _add(queue))
            calls = queue.take(64, 1)
            queue.ended((call, pickle.dumps(1)) for call in calls)
        done.append(queue)

    threads = [threading.Thread(target=feed, args=pair, daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)

    assert len(done) == 2


def test_a_worker_takes_its_fair_share() -> None:
    queue = CallQueue(10)
    for _ in range(5):
        _add(queue)

    assert [len(queue.take(9, 2)) for _ in range(3)] == [3, 1, 1]


def test_calls_of_a_lost_worker_run_again_before_others_in_their_order() -> None:
    queue = CallQueue(10)
    for _ in range(4):
        _add(queue)
    lost = queue.take(2, 1)

    queue.give_back(lost, "it was killed")

    assert [call.number for call in queue.take(9, 1)] == [0, 1, 2, 3]
    assert queue.first_open == 0


def test_a_call_that_ends_every_worker_is_given_up() -> None:
    queue = CallQueue(10)
    value = _add(queue)
    for _ in range(4):
        queue.give_back(queue.take(1, 1), "it was killed by SIGKILL")

    with pytest.raises(UnavailableError, match=r"4 times and never ended: it was killed by SIGKILL"):
        queue.join()
    with pytest.raises(UnavailableError):
        value.fetch()


def test_an_error_cancels_what_waits_and_is_raised_once() -> None:
    queue = CallQueue(10)
    failing, waiting = _add(queue), _add(queue)

    queue.ended([(queue.take(1, 1)[0], KeyError("x"))])

    with pytest.raises(KeyError):
        queue.join()
    assert queue.done()
    with pytest.raises(CancelledError, match="KeyError: 'x'"):
        waiting.fetch()
    with pytest.raises(KeyError):
        failing.fetch()


def test_scheduling_after_an_error_raises_it_and_adds_nothing() -> None:
    queue = CallQueue(10)
    _add(queue)
    queue.ended([(queue.take(1, 1)[0], KeyError("x"))])

    with pytest.raises(KeyError):
        _add(queue)

    assert len(queue) == 0
    assert queue.first_open == 2


def test_an_error_is_raised_only_when_nothing_runs_any_more() -> None:
    queue = CallQueue(10)
    _add(queue), _add(queue)
    failing, running = queue.take(2, 1)
    queue.ended([(failing, KeyError("x"))])
    told = threading.Event()

    def join() -> None:
        with pytest.raises(KeyError):
            queue.join()
        told.set()

    thread = threading.Thread(target=join)
    thread.start()
    assert not told.is_set()
    queue.give_back([running], "its worker was lost")  # it is cancelled by now
    thread.join(30)

    assert told.is_set()
    with pytest.raises(CancelledError):
        running.result.fetch()


def test_a_call_waits_for_results_that_it_needs() -> None:
    queue = CallQueue(10)
    needed = _add(queue)
    (first,) = queue.take(9, 1)
    _add(queue, needed, needed)
    assert len(queue) == 1

    queue.ended([(first, pickle.dumps(1))])

    assert [call.number for call in queue.take(9, 1)] == [1]


def test_a_full_queue_makes_room_for_who_waits() -> None:
    queue = CallQueue(1)
    _add(queue)
    thread = threading.Thread(target=_add, args=(queue,))
    thread.start()

    taken = [queue.take(1, 1)[0], queue.take(1, 1)[0]]
    thread.join(30)

    assert [call.number for call in taken] == [0, 1]


def test_closing_tells_everybody() -> None:
    queue = CallQueue(10)
    waiting = _add(queue)

    queue.close()

    assert queue.take(1, 1) == []
    with pytest.raises(CancelledError, match="closed"):
        waiting.fetch()
    with pytest.raises(ClusterClosed):
        queue.join()


def test_without_any_worker_calls_fail() -> None:
    queue = CallQueue(10)
    value = _add(queue)

    queue.lane_down(0, 2, UnavailableError("worker 0"))
    assert not value.ready
    queue.lane_down(1, 2, UnavailableError("worker 1"))

    with pytest.raises(UnavailableError, match="worker 1"):
        queue.join()


def test_a_value_says_what_it_is() -> None:
    queue = CallQueue(10)
    value: Any = _add(queue)

    assert repr(value) == "<RemoteValue of step: pending>"
    queue.ended([(queue.take(1, 1)[0], pickle.dumps(1))])
    assert repr(value) == "<RemoteValue of step: ready>"


def test_the_queue_tells_what_has_become_of_calls() -> None:
    queue = CallQueue(10)
    first = _add(queue)
    _add(queue, first)
    for _ in range(3):
        _add(queue)
    one, two, three = queue.take(3, 1)
    queue.give_back([three], "it was killed")
    queue.ended([(one, pickle.dumps(1))])

    now = queue.now()
    assert (now.waiting, now.blocked, now.running, now.done, now.run_again) == (3, 0, 1, 1, 1)

    queue.ended([(two, ValueError("first line\nsecond"))])
    now = queue.now()
    assert (now.waiting, now.running, now.failed, now.cancelled) == (0, 0, 1, 3)
    assert (now.error, now.capacity) == ("ValueError: first line", 10)
    with pytest.raises(ValueError, match="first line"):
        queue.join()
    assert queue.now().error == ""
    queue.close()
