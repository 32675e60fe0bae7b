"""Finding out who has not come: what a host answers, and what becomes of it if one does not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.communicators.core.call import Call
from workbench.communicators.core.position import Position
from workbench.communicators.core.remote_roll_call import Host, OtherHosts
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.core.tcp import TcpListener, connect, read_line
from workbench.errors import StaleGeneration

BARRIER = Call("barrier", "", "", "train.py:3", "", "", 0, 0, "", "")


def waiting(rank: int) -> Position:
    """A replica in the first collective of step 2, which it has been in for longer than it wanted to."""
    position = Position(rank)
    position.step = position.order = 2
    position.seq = 0
    position.call = BARRIER
    position.entered_ns = time.monotonic_ns()
    position.deadline_ns = position.entered_ns + 1_000_000
    return position


@pytest.fixture
def listener() -> Iterator[TcpListener]:
    listener = TcpListener("127.0.0.1", None)
    yield listener
    listener.close()


def others(listener: TcpListener) -> OtherHosts:
    """Replicas 1 and 2 on another host, as replica 0 sees it."""
    host = Host((1, 2), listener.address, "theirs")
    return OtherHosts([host], group="g", own_token="ours", listener=None, tls=None)


def test_a_host_answers_for_its_replicas(listener: TcpListener) -> None:
    there = OtherHosts([], group="g", own_token="theirs", listener=listener, tls=None)
    theirs = RollCall(3, generation=0)
    theirs.watch(waiting(1))
    theirs.watch(Position(2))
    theirs.ask(there)
    here = RollCall(3, generation=0)
    here.ask(others(listener))
    failure = here.overdue(waiting(0))
    assert "waiting for replica 2, which has not come to it" in failure.text
    assert (failure.kind, failure.replica, failure.step, failure.collective) == (
        "deadline",
        2,
        2,
        "barrier #1",
    )
    for roll_call in (here, theirs):
        roll_call.close()


def test_who_has_given_up_had_come() -> None:
    roll_call = RollCall(3, generation=0)
    gone = waiting(1)
    gone.given_up = gone.fingerprint()
    gone.call = Position(1).call
    roll_call.watch(gone)
    assert "waiting for replica 2, which" in roll_call.overdue(waiting(0)).text


def test_if_all_have_come_nobody_is_named() -> None:
    roll_call = RollCall(2, generation=0)
    roll_call.watch(waiting(1))
    failure = roll_call.overdue(waiting(0))
    assert "every replica had come to it, but it had not ended" in failure.text
    assert failure.replica == -1


@pytest.mark.parametrize("what", ["says nothing", "is gone"])
def test_a_host_that_gives_no_answer_is_named_as_such(listener: TcpListener, what: str) -> None:
    if what == "is gone":
        listener.close()
    roll_call = RollCall(4, generation=0)
    roll_call.ask(others(listener))
    failure = roll_call.overdue(waiting(0))
    assert (
        "waiting for replica 3, which has not come to it and waiting for replicas 1 and 2, whose host does not"
        in (failure.text)
    )
    assert failure.replica == 3
    roll_call.close()


def test_whoever_asks_is_not_taken_for_a_neighbour_in_the_ring(listener: TcpListener) -> None:
    """A host may still wait for its neighbour when another one has run out of time already."""
    deadline = time.monotonic() + 20
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, "g", "theirs", deadline)
        assert others(listener).present(7, deadline) == (set(), {1, 2})
        neighbour = connect(listener.address, "g", "theirs", None, deadline)
        with neighbour, accepting.result() as accepted:
            neighbour.sendall(b'{"it": "is me"}\n')
            assert read_line(accepted) == {"it": "is me"}


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"\xff\xfe\n",
        b"{}\n",
        b"[1]\n",
        b'{"token": "\xc3\xa9"}\n',
        b'{"token": "theirs", "group": "g roll call"}\nx\n',
    ],
)
def test_strangers_get_no_answer_and_others_still_do(listener: TcpListener, noise: bytes) -> None:
    there = OtherHosts([], group="g", own_token="theirs", listener=listener, tls=None)
    there.answer_with(lambda fingerprint: {1} if fingerprint == 7 else set())
    with socket.create_connection(listener.address, 20) as stranger:
        stranger.sendall(noise)
        stranger.shutdown(socket.SHUT_WR)
        answers = b"".join(iter(lambda: stranger.recv(4096), b""))
    assert b"here" not in answers
    assert others(listener).present(7, time.monotonic() + 20) == ({1}, set())
    with pytest.raises(StaleGeneration):
        connect(listener.address, "g", "theirs", None, time.monotonic() + 20)
    there.close()
    assert not any(thread.name == "workbench-roll-call" for thread in threading.enumerate())
