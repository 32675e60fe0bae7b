"""Steps that follow each other quickly travel together, and none stays behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Run
from workbench import runtime
from workbench.errors import ReplicaLost
from workbench.runtime import Group
from workbench.runtime.comm.links import UnixLink
from workbench.runtime.comm.messages import RUN
from workbench.runtime.driver.gang import coalescing
from workbench.runtime.driver.gang.coalescing import MOST_HELD, QUICK_NS, Coalescing
from workbench.runtime.replica.env import ReplicaEnv


class Clock:
    """Stands for the module `time`: its time goes on when it is told to, and threads sleep for real."""

    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self.now_ns = 10**9

    def monotonic_ns(self) -> int:
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(coalescing, "time", clock)
    return clock


class Sending:
    """A sender as the gang is one: counts what leaves."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.flushes = 0
        self.coalescing = Coalescing(self.flush, self.lock)

    def flush(self) -> None:
        self.flushes += 1
        self.coalescing.held = 0

    def step(self, on_their_way: int) -> bool:
        """Submits one; whether it left, with all that were held."""
        with self.lock:
            if self.coalescing.holds(on_their_way):
                return False
            self.coalescing.held = 0
            return True


@pytest.fixture
def sending() -> Iterator[Sending]:
    sending = Sending()
    yield sending
    sending.coalescing.close()


def test_the_more_are_on_their_way_the_more_travel_together(clock: Clock, sending: Sending) -> None:
    left = [sending.step(on_their_way) for on_their_way in range(64)]
    sizes, size = [], 0  # of the messages
    for now in left:
        size += 1
        if now:
            sizes.append(size)
            size = 0
    assert sizes[:3] == [1, 1, 1]
    assert sizes == sorted(sizes)
    assert sizes[-1] == MOST_HELD + 1


def test_replicas_always_have_as_much_to_do_as_is_held(clock: Clock, sending: Sending) -> None:
    for on_their_way in range(64):
        sending.step(on_their_way)
        held = sending.coalescing.held
        assert held <= max(0, on_their_way - held)


def test_steps_that_come_slowly_are_not_held(clock: Clock, sending: Sending) -> None:
    for _ in range(50):
        clock.now_ns += QUICK_NS + 1
        assert sending.step(30)


def test_what_is_held_leaves_although_nothing_follows(sending: Sending) -> None:
    while not sending.coalescing.held and not sending.flushes:  # one that comes quickly after another
        sending.step(30)
    deadline = time.monotonic() + 30
    while sending.coalescing.held:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert sending.flushes


def test_the_thread_rests_and_wakes_again(sending: Sending) -> None:
    for _ in range(2):
        sending.flushes = 0
        while not sending.flushes:
            sending.step(30)
            sending.step(30)
            time.sleep(0.01)
        time.sleep(0.1)  # after which it waits without ticking
    assert sending.coalescing.held == 0


def test_closing_ends_the_thread(sending: Sending) -> None:
    before = threading.active_count()
    sending.step(30)
    sending.step(30)
    sending.coalescing.close()
    sending.coalescing.close()
    assert threading.active_count() == before
    assert not [thread for thread in threading.enumerate() if thread.name == "workbench-flush"]


# -- with replicas
# -----------------------------------------------------------------------------------------------------


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps were held back so far, in a list of one."""
    count, send = [0], UnixLink.send

    def counting(self: UnixLink, message: Any, body: bytes | None = None, *, later: bool = False) -> None:
        count[0] += later and message[0] == RUN
        send(self, message, body, later=later)

    monkeypatch.setattr(UnixLink, "send", counting)
    return count


def add(env: ReplicaEnv, number: int) -> int:
    """Adds to what the replica has, so that a step that is missing, or comes twice, shows."""
    env.store["sum"] = env.store["sum"] + number if "sum" in env.store else number
    return env.store["sum"]


def test_steps_that_nobody_waits_for_are_done_all_the_same(
    group: Group, together: list[int], tmp_path: Path
) -> None:
    def program(env: ReplicaEnv, number: int) -> int:
        (tmp_path / f"{number}.{env.rank}").touch()
        return number

    prepared = group.prepare(program, user_function=program)
    assert group.run(prepared, (-1,)).value(0) == -1  # the structure of its result is known from here on
    # What is dropped is released with a message that would take the others along.
    kept = [group.run(prepared, (number,), pipelined=True) for number in range(13)]
    assert together[0], "the steps came too slowly to travel together"

    deadline = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 28:  # without a word to the group
        assert time.monotonic() < deadline, sorted(path.name for path in tmp_path.iterdir())
        time.sleep(0.01)
    assert len(kept) == 13


def test_a_result_of_a_step_that_is_held_comes_at_once(group: Group, together: list[int]) -> None:
    prepared = group.prepare(add, user_function=add)
    group.run(prepared, (0,)).value(0)
    total = 0
    for number in range(200):
        handle = group.run(prepared, (number,), pipelined=True)
        total += number
        if number % 17 == 0:
            assert [handle.value(rank) for rank in range(2)] == [total, total]
    assert group.run(prepared, (0,)).value(1) == total
    assert together[0]


def test_an_error_among_steps_that_travel_together_names_its_step(
    group: Group, run: Run, together: list[int]
) -> None:
    def program(env: ReplicaEnv, number: int) -> int:
        if number == 20:
            raise ValueError("twenty")
        return add(env, number)

    prepared = group.prepare(program, user_function=program)
    group.run(prepared, (0,)).value(0)

    def loop() -> None:
        for number in range(1, 40):
            group.run(prepared, (number,), pipelined=True)
        group.wait()

    with pytest.raises(ValueError, match="twenty"):
        loop()
    assert run(lambda env: env.store["sum"]).value(0) == sum(
        range(20)
    )  # and what followed was undone, or skipped
    assert together[0]


def test_a_worker_that_is_killed_loses_none_of_them(together: list[int]) -> None:
    with runtime.connect(replicas=2) as cluster:
        group = cluster.group(cluster.devices, label="Test")
        prepared = group.prepare(add, user_function=add)
        group.run(prepared, (0,)).value(0)
        pid = group.place(1)[0].pid

        def loop() -> None:
            for number in range(10_000):
                group.run(prepared, (1,), pipelined=True)
                if number == 12:
                    os.kill(pid, signal.SIGKILL)

        with pytest.raises(ReplicaLost):
            loop()
        group.wait()
        survivor = group.run(prepared, (0,)).value(0)
        assert survivor == group.number - 2  # every step that was submitted, once
        assert together[0]
