"""Replicas of one process, and other processes: all complete a collective or none, whoever reaches its deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.communicators.in_one_process import Together, connected
from tests.until import until
from workbench.communicators import CommunicationOptions, Member, Reduction, Topology
from workbench.communicators.core.position import Position
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.communicators.threads import rendezvous as rendezvous_module
from workbench.communicators.threads.rendezvous import Rendezvous
from workbench.errors import DeadlineExceededError

TOPOLOGY = Topology([Member(0, "a", "p"), Member(1, "a", "p"), Member(2, "a", "q")])
SOON = Reduction("sum", options=CommunicationOptions(timeout_seconds=0.05))
AT_ANY_TIME = Reduction("sum")
SECONDS = 60


@pytest.fixture
def three(together: Together, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ReplicaCommunicator]]:
    """Two replicas of one process, the second of which comes last, and one of another process."""
    monkeypatch.setattr(rendezvous_module, "_TICK_SECONDS", 0.01)
    made = connected(TOPOLOGY, together)
    yield made
    for each in made:
        each.close()
    made.clear()  # pytest keeps the list a little longer, and what is in it would keep the mapped memory


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def add(replica: ReplicaCommunicator, how: Reduction) -> int:
    return int(replica.all_reduce([np.array([replica.rank + 1])], how)[0][0])


def rendezvous_of(replica: ReplicaCommunicator) -> Any:
    return replica._link._rendezvous  # type: ignore[attr-defined]


def outcomes(*calls: Any) -> list[Any]:
    return [call.exception(SECONDS) or call.result() for call in calls]


class Looks:
    """Counts how often a replica that waits for its process has looked around, whatever it looks at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        spoken_for = Rendezvous._is_spoken_for

        def looked(rendezvous: Rendezvous) -> bool:
            self.count += 1
            return spoken_for(rendezvous)

        monkeypatch.setattr(Rendezvous, "_is_spoken_for", looked)

    def until_it_looks(self, rendezvous: Rendezvous) -> None:
        before = self.count
        until(lambda: self.count > before + 2 or rendezvous._failure is not None, "a look around")


def when_the_processes_are_through(
    replica: ReplicaCommunicator, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]
) -> None:
    """Has `then` called when the process of a replica has the result of all, before its replicas get it."""
    outer = rendezvous_of(replica).outer
    reduce = outer.reduce

    def reduces(position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        total: np.ndarray = reduce(position, flat, shared=shared)
        then()
        return total

    monkeypatch.setattr(outer, "reduce", reduces)


@pytest.mark.parametrize("reason", ["its deadline passes", "another process leaves"])
def test_a_replica_does_not_give_up_a_collective_that_its_process_has_completed(
    three: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    looks, rendezvous = Looks(monkeypatch), rendezvous_of(three[0])
    other = pool.submit(add, three[2], AT_ANY_TIME)

    def then() -> None:
        assert outcomes(other) == [6]
        if reason == "its deadline passes":
            three[0]._position.deadline_ns = 1
        else:
            three[2].close()
        looks.until_it_looks(rendezvous)

    when_the_processes_are_through(three[0], monkeypatch, then)
    waiting = pool.submit(add, three[0], AT_ANY_TIME)
    until(lambda: bool(rendezvous._arrived), "replica 0")
    last = pool.submit(add, three[1], AT_ANY_TIME)

    assert outcomes(waiting, last, other) == [6, 6, 6]


def test_a_replica_does_not_give_up_when_the_last_one_comes_as_it_asks_who_is_missing(
    three: list[ReplicaCommunicator], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendezvous, through = rendezvous_of(three[0]), threading.Event()
    overdue, calls = rendezvous._roll_call.overdue, []

    def asks(position: Position) -> Any:
        calls.extend(pool.submit(add, each, AT_ANY_TIME) for each in three[1:])
        assert through.wait(SECONDS)
        return overdue(position)

    def then() -> None:
        through.set()
        looks.until_it_looks(rendezvous)

    looks = Looks(monkeypatch)
    monkeypatch.setattr(rendezvous._roll_call, "overdue", asks)
    monkeypatch.setattr(
        Position, "hurry", lambda position, others: None
    )  # its own deadline has passed before
    when_the_processes_are_through(three[0], monkeypatch, then)
    leaving = pool.submit(add, three[0], SOON)

    assert outcomes(leaving) == [6]
    assert outcomes(*calls) == [6, 6]


@pytest.mark.parametrize("first", [0, 1])
def test_the_earliest_deadline_of_a_process_counts_whichever_of_its_replicas_comes_last(
    three: list[ReplicaCommunicator], pool: ThreadPoolExecutor, first: int
) -> None:
    hurried = pool.submit(add, three[first], SOON)
    until(lambda: bool(rendezvous_of(three[0])._arrived), "the first replica")
    patient = pool.submit(add, three[1 - first], AT_ANY_TIME)

    for error in outcomes(hurried, patient):
        assert isinstance(error, DeadlineExceededError)
        assert f"of replica {first} exceeded its timeout of 0.05 s" in str(error)
        assert "waiting for replica 2, which has not come to it" in str(error)
