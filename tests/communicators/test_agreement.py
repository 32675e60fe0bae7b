"""A collective is completed by all of its replicas or by none, also if one leaves while the last one comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.communicators.in_one_process import Together, connected
from workbench.communicators import CommunicationOptions, Member, Reduction, Topology
from workbench.communicators.core.control_page import ARRIVED, SLEEPING
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.errors import CollectiveAborted, DeadlineExceededError, WorkbenchError

HOST = Topology([Member(0, "a", "p"), Member(1, "a", "q"), Member(2, "a", "r")])
PROCESS = Topology([Member(0, "a", "p"), Member(1, "a", "p"), Member(2, "a", "p")])
SOON = Reduction("sum", options=CommunicationOptions(timeout_seconds=0.05))
AT_ANY_TIME = Reduction("sum")
SECONDS = 60


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.fixture(params=[HOST, PROCESS], ids=["processes", "threads"])
def three(request: pytest.FixtureRequest, together: Together) -> Iterator[list[ReplicaCommunicator]]:
    yield from _three(request.param, together)


@pytest.fixture
def processes(together: Together) -> Iterator[list[ReplicaCommunicator]]:
    yield from _three(HOST, together)


def _three(topology: Topology, together: Together) -> Iterator[list[ReplicaCommunicator]]:
    made = connected(topology, together)
    yield made
    for each in made:
        each.close()
    made.clear()  # pytest keeps the list a little longer, and its content would keep the mapped memory


def add(replica: ReplicaCommunicator, how: Reduction) -> int:
    return int(replica.all_reduce([np.array([replica.rank + 1])], how)[0][0])


def barrier_of(replica: ReplicaCommunicator) -> Any:
    return replica._link._barrier  # type: ignore[attr-defined]


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not condition():
        pause.wait(0.001)


class LateOne:
    """The last replica, which comes when it is told to."""

    def __init__(self, replica: ReplicaCommunicator, pool: ThreadPoolExecutor) -> None:
        self._replica, self._pool = replica, pool
        self._coming: Future[Future[int]] = Future()

    def come(self) -> Future[int]:
        if not self._coming.done():
            self._coming.set_result(self._pool.submit(add, self._replica, AT_ANY_TIME))
        return self.call()

    def come_and_settle(self) -> None:
        """Until it is through, or waits itself."""
        call, own = self.come(), barrier_of(self._replica)._own
        until(lambda: call.done() or (own[ARRIVED] > 0 and own[SLEEPING] != 0))

    def call(self) -> Future[int]:
        return self._coming.result(SECONDS)


def outcomes(*calls: Future[int]) -> list[Any]:
    return [call.exception(SECONDS) or call.result() for call in calls]


def test_the_last_one_comes_while_another_asks_who_is_missing(
    three: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    link: Any = three[0]._link
    roll_call = getattr(link, "_rendezvous", link)._roll_call
    overdue, late = roll_call.overdue, LateOne(three[2], pool)

    def asks(position: Any) -> Any:
        late.come().exception(SECONDS)
        return overdue(position)

    monkeypatch.setattr(roll_call, "overdue", asks)
    waiting = pool.submit(add, three[1], AT_ANY_TIME)
    leaving = pool.submit(add, three[0], SOON)

    assert outcomes(leaving, waiting, late.call()) == [6, 6, 6]
    assert outcomes(*(pool.submit(add, each, AT_ANY_TIME) for each in three)) == [6, 6, 6]


@pytest.mark.parametrize("seen", [True, False])
def test_the_last_one_comes_while_another_is_leaving(
    processes: list[ReplicaCommunicator],
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    seen: bool,
) -> None:
    barrier, late = barrier_of(processes[0]), LateOne(processes[2], pool)
    arrived = barrier._arrived

    def looks(target: int) -> bool:
        leaving = barrier._own[SLEEPING] < 0
        if leaving and seen:
            late.come_and_settle()
        found = arrived(target)
        if leaving:
            late.come_and_settle()
        return bool(found)

    monkeypatch.setattr(barrier, "_arrived", looks)
    waiting = pool.submit(add, processes[1], AT_ANY_TIME)
    leaving = pool.submit(add, processes[0], SOON)
    found = outcomes(leaving, waiting, late.call())

    if seen:
        assert found == [6, 6, 6]
    else:
        assert [type(each) for each in found] == [DeadlineExceededError] * 3


def test_two_are_leaving_while_the_last_one_comes(
    processes: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, late = threading.Barrier(2), LateOne(processes[2], pool)

    def hold(barrier: Any) -> None:
        arrived, met = barrier._arrived, threading.Event()

        def looks(target: int) -> bool:
            if barrier._own[SLEEPING] < 0 and not met.is_set():
                met.set()
                if both.wait(SECONDS) == 0:
                    late.come_and_settle()
                both.wait(SECONDS)
            return bool(arrived(target))

        monkeypatch.setattr(barrier, "_arrived", looks)

    for each in processes[:2]:
        hold(barrier_of(each))
    leaving = [pool.submit(add, each, SOON) for each in processes[:2]]

    assert outcomes(*leaving, late.call()) == [6, 6, 6]


def test_the_last_one_comes_as_another_publishes_that_it_gave_up(
    processes: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, late = barrier_of(processes[0]), LateOne(processes[2], pool)
    fail = barrier.fail

    def publishes(failure: Any) -> None:
        late.come_and_settle()
        fail(failure)

    monkeypatch.setattr(barrier, "fail", publishes)
    waiting = pool.submit(add, processes[1], AT_ANY_TIME)
    leaving = pool.submit(add, processes[0], SOON)

    found = outcomes(leaving, waiting, late.call())
    assert [type(each) for each in found] == [DeadlineExceededError] * 3


def test_a_replica_that_came_and_then_ended_has_come(
    processes: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, late = barrier_of(processes[0]), LateOne(processes[2], pool)
    sleep = barrier._sleep

    def sleeps(position: Any) -> None:
        late.come().result(SECONDS)
        processes[2].close()  # as if its process had ended: its connection has
        sleep(position)

    monkeypatch.setattr(barrier, "_sleep", sleeps)
    waiting = pool.submit(add, processes[1], AT_ANY_TIME)
    first = pool.submit(add, processes[0], AT_ANY_TIME)

    assert outcomes(first, waiting, late.call()) == [6, 6, 6]


def test_every_call_after_a_failure_raises_it(
    three: list[ReplicaCommunicator], pool: ThreadPoolExecutor
) -> None:
    three[0].abort(WorkbenchError("gave up"))

    for each in three:
        for _ in range(3):
            (outcome,) = outcomes(pool.submit(add, each, AT_ANY_TIME))
            assert isinstance(outcome, CollectiveAborted)
