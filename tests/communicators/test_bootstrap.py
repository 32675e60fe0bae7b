"""Connecting: who is let in, who is told apart, what happens to those who wait."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Security

from tests.communicators.in_one_process import connected
from workbench.communicators import Bootstrap, Member, Reduction, Topology
from workbench.communicators.core import shared_memory, wake
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.communicators.core.tcp import TcpListener, Tls
from workbench.errors import DeadlineExceededError, StaleGeneration, UnavailableError, UnsafeBind

ONE_HOST = Topology([Member(0, "a", "p"), Member(1, "a", "q")])
TWO_HOSTS = Topology([Member(0, "a", "p"), Member(1, "b", "q")])


def summed(communicators: list[ReplicaCommunicator], run: Any, count: int = 3) -> None:
    """Checks that a group works, and closes it."""
    results = run(
        *(lambda c=c: c.all_reduce([np.ones(count, np.float32)], Reduction("sum"))[0] for c in communicators)
    )
    for communicator in communicators:
        communicator.close()
    for result in results:
        assert (result == len(communicators)).all()


@pytest.mark.parametrize("topology", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_whoever_does_not_come_is_named(topology: Topology) -> None:
    bootstrap = Bootstrap(topology, "p")
    other = Bootstrap(topology, "q")
    addresses = {"p": bootstrap.address, "q": other.address}
    other.close()
    with pytest.raises((DeadlineExceededError, OSError)) as caught:
        bootstrap.connect(addresses, 0.2)
    if topology is ONE_HOST:
        assert "process q did not connect" in str(caught.value)


@pytest.mark.parametrize("topology", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_another_generation_is_refused(topology: Topology, together: Any) -> None:
    old, new = Bootstrap(topology, "p", generation=1), Bootstrap(topology, "q", generation=2)
    addresses = {"p": old.address, "q": new.address}
    outcomes = together(lambda: old.connect(addresses, 2), lambda: new.connect(addresses, 2))
    assert any(isinstance(outcome, StaleGeneration) for outcome in outcomes)
    assert all(isinstance(outcome, Exception) for outcome in outcomes)


@pytest.mark.parametrize("topology", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_a_wrong_token_is_refused(topology: Topology, together: Any) -> None:
    first, second = Bootstrap(topology, "p"), Bootstrap(topology, "q")
    addresses = {"p": first.address, "q": second.address}
    forged = {**addresses, "p": replace(first.address, token="0" * 32)}
    outcomes = together(lambda: first.connect(addresses, 1), lambda: second.connect(forged, 1))
    assert isinstance(outcomes[0], DeadlineExceededError)
    assert isinstance(outcomes[1], (UnavailableError, DeadlineExceededError, OSError))


@pytest.mark.parametrize(
    "noise", [b"", b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b'"text"\n', os.urandom(5000), b"[1]\n"]
)
@pytest.mark.parametrize("topology", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_strangers_do_not_disturb(topology: Topology, noise: bytes, together: Any) -> None:
    first, second = Bootstrap(topology, "p"), Bootstrap(topology, "q")
    addresses = {"p": first.address, "q": second.address}
    with socket.socket(socket.AF_INET if first.address.tcp else socket.AF_UNIX) as stranger:
        stranger.connect(first.address.tcp or first.address.path)
        stranger.sendall(noise)
        stranger.shutdown(socket.SHUT_WR)
        parts = together(lambda: first.connect(addresses, 20), lambda: second.connect(addresses, 20))
    summed([communicator for part in parts for communicator in part.values()], together)


def test_the_socket_is_in_an_owner_only_directory_that_goes_after_connecting(
    tmp_path: Path, together: Any
) -> None:
    bootstrap = Bootstrap(ONE_HOST, "p", directory=tmp_path)
    (directory,) = tmp_path.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    bootstrap.close()
    summed(connected(ONE_HOST, together, directory=tmp_path), together)
    assert list(tmp_path.iterdir()) == []


def test_listening_off_loopback_needs_tls() -> None:
    with pytest.raises(UnsafeBind, match="without TLS"):
        Bootstrap(TWO_HOSTS, "p", bind_host="0.0.0.0")


@pytest.mark.parametrize("count", [3, 3_000_000])
def test_hosts_talk_over_tls(together: Any, count: int) -> None:
    security = Security.temporary()
    listening, connecting = security.get_listen_args("worker"), security.get_connection_args("worker")
    tls = Tls(server=listening["ssl_context"], client=connecting["ssl_context"])
    summed(connected(TWO_HOSTS, together, tls=tls), together, count)


def test_a_host_without_the_certificate_is_turned_away(together: Any) -> None:
    security = Security.temporary()
    contexts = (
        security.get_listen_args("worker")["ssl_context"],
        security.get_connection_args("worker")["ssl_context"],
    )
    listener = TcpListener("127.0.0.1", Tls(*contexts))
    with socket.create_connection(listener.address, 5) as stranger:
        stranger.sendall(b'{"group": "g", "token": "t"}\n')
        with pytest.raises(TimeoutError):
            listener.accept("g", "t", time.monotonic() + 0.2)
    listener.close()


@pytest.mark.parametrize(
    "line", [b"[" * 1000, b'{"token": "\\ud800"}', b'{"token": ["t"], "group": 3}', b"3", b"\xff"]
)
def test_what_a_stranger_says_turns_away_nobody_else(line: bytes) -> None:
    listener = TcpListener("127.0.0.1", None)
    with (
        socket.create_connection(listener.address, 5) as stranger,
        socket.create_connection(listener.address, 5) as right,
    ):
        stranger.sendall(line + b"\n")
        right.sendall(b'{"group": "g", "token": "t"}\n')
        listener.accept("g", "t", time.monotonic() + 30).close()
    listener.close()


@pytest.mark.parametrize("missing", [("memfd_create",), ("memfd_create", "posix_fallocate")])
def test_without_memfd_and_eventfd(
    monkeypatch: pytest.MonkeyPatch, together: Any, missing: tuple[str, ...]
) -> None:
    """As on other systems than Linux: unlinked files and pipes."""
    for name in missing:
        monkeypatch.delattr(shared_memory.os, name)
    monkeypatch.delattr(wake.os, "eventfd")
    summed(connected(ONE_HOST, together), together, 500_000)


def test_addresses_travel_pickled_and_do_not_show_the_token() -> None:
    import pickle

    address = Bootstrap(Topology([Member(0, "a", "p")]), "p").address
    assert pickle.loads(pickle.dumps(address)) == address
    assert address.token not in repr(address)


def test_finish_never_blocks_on_a_host_that_reads_nothing(together: Any) -> None:
    """Steps without collectives leave nothing that could fill a connection."""
    first, second = connected(TWO_HOSTS, together)
    for step in range(5000):
        first.begin(step)
        first.finish()
    second.begin(4999)
    second.finish()
    for communicator in (first, second):
        communicator.begin(5000)
    summed([first, second], together)


def test_a_host_that_sends_nonsense_is_an_error_not_a_hang(together: Any) -> None:
    first, second = connected(TWO_HOSTS, together)
    raw: socket.socket = second._link._duplex._following  # type: ignore[attr-defined]
    raw.send(struct.pack("<5q", 99, 0, 0, 0, 0))
    (outcome,) = together(lambda: first.barrier())
    assert isinstance(outcome, Exception)
    assert not threading.current_thread().daemon
    for communicator in (first, second):
        communicator.close()
