"""Closing a communicator while its replica, on another thread, is in the midst of a collective.

Descriptors that are closed too early are worst: their numbers soon belong to other files. So these tests take the
numbers at once, for files of their own, and look whether anything has happened to those.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.communicators.in_one_process import Together, connected
from workbench import faults
from workbench.communicators import Member, Reduction, Topology
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.errors import ReplicaLost, StaleGeneration

TOPOLOGIES = {
    "threads": Topology([Member(0, "a", "p"), Member(1, "a", "p")]),
    "one host": Topology([Member(0, "a", "p"), Member(1, "a", "q")]),
    "two hosts": Topology([Member(0, "a", "p"), Member(1, "b", "q")]),
    "two hosts of two": Topology([Member(rank, "aabb"[rank], "pqrs"[rank]) for rank in range(4)]),
}
FILES = 24  # more than the descriptors of any of these links
FILE_BYTES = 16 << 20  # sparse, and larger than what a link would map


class Squatters:
    """Files that take the numbers of descriptors as soon as those are closed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: list[int] = []

    def move_in(self) -> None:
        for _ in range(FILES):
            descriptor = os.open(self._directory / str(len(self._open)), os.O_CREAT | os.O_RDWR)
            os.ftruncate(descriptor, FILE_BYTES)
            self._open.append(descriptor)

    def check(self) -> None:
        """Nobody has moved in them, written to them, or closed them."""
        for descriptor in self._open:
            found = os.fstat(descriptor)
            assert (found.st_size, found.st_blocks) == (FILE_BYTES, 0)
            assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)


@pytest.fixture
def squatters(tmp_path: Path) -> Iterator[Squatters]:
    squatters = Squatters(tmp_path)
    yield squatters
    squatters.close()


@pytest.fixture(params=list(TOPOLOGIES))
def communicators(request: pytest.FixtureRequest, together: Together) -> Iterator[list[ReplicaCommunicator]]:
    communicators = connected(TOPOLOGIES[request.param], together)
    yield communicators
    for communicator in communicators:
        communicator.close()
    # Pytest keeps the list a little longer, and its content would keep the mapped memory.
    communicators.clear()


class Running:
    """A function on a thread of its own; `outcome` is what it returns or raises."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.outcome: Any = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._function()
        except BaseException as error:
            self.outcome = error

    def ended(self, within_seconds: float = 30.0) -> Any:
        """What has become of it."""
        self._thread.join(within_seconds)
        assert not self._thread.is_alive(), "hang"
        return self.outcome

    def give_time(self) -> None:
        """Lets it end if it can."""
        self._thread.join(0.3)


def all_reduce_in_place(communicator: ReplicaCommunicator) -> Any:
    """Of an array that peers map, for which they need a descriptor in the midst of it."""
    array = communicator.empty(300_000, np.float64)
    array[...] = communicator.rank + 1
    return communicator.all_reduce([array], Reduction("sum", shared=True))[0]


def test_descriptors_stay_until_the_replica_has_left_its_collective(
    communicators: list[ReplicaCommunicator],
    squatters: Squatters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, there = tmp_path / "gate", tmp_path / "there"
    point = {"point": "all_reduce.after_send", "replica": 0}
    rules = [{**point, "action": f"touch:{there}"}, {**point, "action": f"block:{gate}"}]
    monkeypatch.setattr(faults, "_RULES", rules)
    monkeypatch.setattr(faults, "_counts", {})
    replicas = [Running(lambda c=c: all_reduce_in_place(c)) for c in communicators]
    faults.act(f"block:{there}", "the test")

    def close() -> None:
        communicators[0].close()
        squatters.move_in()

    closing = Running(close)
    closing.give_time()
    gate.touch()
    assert closing.ended() is None
    for replica in replicas:
        outcome = replica.ended()
        if isinstance(outcome, np.ndarray):
            assert (outcome == sum(range(1, len(communicators) + 1))).all()
        else:
            assert isinstance(outcome, StaleGeneration), repr(outcome)
    squatters.check()


def test_who_waits_for_a_peer_is_told_that_its_own_communicator_was_closed(
    communicators: list[ReplicaCommunicator], squatters: Squatters
) -> None:
    waiting = Running(communicators[0].barrier)
    for _ in range(100):
        if communicators[0].status().op == "barrier":
            break
        waiting.give_time()
    communicators[0].close()
    squatters.move_in()
    assert type(waiting.ended()) is StaleGeneration
    later = [Running(communicator.barrier) for communicator in communicators]
    assert all(type(replica.ended()) is StaleGeneration for replica in later)
    squatters.check()


def test_a_closed_communicator_gives_no_memory(together: Together) -> None:
    communicators = connected(TOPOLOGIES["one host"], together)
    for communicator in communicators:
        communicator.close()
        with pytest.raises(StaleGeneration):
            communicator.empty(3_000_000, np.float32)


@pytest.mark.parametrize("seed", range(6))
def test_closing_at_any_moment_ends_all_replicas_and_touches_nothing_else(
    communicators: list[ReplicaCommunicator], squatters: Squatters, seed: int
) -> None:
    chance = random.Random(seed)
    collectives = chance.randrange(1, 60)
    far_enough = threading.Event()

    def train(communicator: ReplicaCommunicator) -> None:
        sizes = random.Random(seed)
        for step in range(10_000):  # it never gets that far
            communicator.begin(step)
            count = sizes.choice([1, 1000, 20_000, 150_000, 400_000])
            array = communicator.empty(count, np.float64) if sizes.random() < 0.5 else np.empty(count)
            array[...] = communicator.rank + 1
            (total,) = communicator.all_reduce([array], Reduction("sum", shared=sizes.random() < 0.5))
            assert (total == sum(range(1, communicator.size + 1))).all()
            assert communicator.all_gather(np.array([communicator.rank]), 0).tolist() == [
                *range(communicator.size)
            ]
            communicator.finish()
            if step == collectives and communicator.rank == 0:
                far_enough.set()

    replicas = [Running(lambda c=c: train(c)) for c in communicators]
    assert far_enough.wait(30)
    for communicator in chance.sample(communicators, len(communicators)):
        communicator.close()
        squatters.move_in()
    for replica in replicas:
        outcome = replica.ended()
        # Between hosts, the connection may end in the middle of a payload, where there is no room for a reason.
        assert type(outcome) in (StaleGeneration, ReplicaLost), repr(outcome)
    squatters.check()
