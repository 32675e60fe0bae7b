"""What every link must do, whatever carries its messages."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from distributed.comm import connect, listen

from workbench.runtime.comm.dask_link import DaskLink
from workbench.runtime.comm.links import Link, LinkClosed, MemoryLink, UnixLink, Wakeup, readable


def received(link: Link, count: int) -> list[Any]:
    """The next `count` messages."""
    messages: list[Any] = []
    deadline = time.monotonic() + 30
    while len(messages) < count:
        assert time.monotonic() < deadline, f"only {len(messages)} of {count} messages came"
        if link.pending or readable(link.fileno(), 0.05):  # a sender may have read it meanwhile
            messages += link.receive()
    return messages


def closed(link: Link) -> bool:
    """Whether the end of the link is seen, in time."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if readable(link.fileno(), 0.5):
            try:
                link.receive()
            except LinkClosed:
                return True
    return False


class LinkContract:
    """Tests of a pair of ends, `pair`."""

    @pytest.fixture
    def pair(self) -> Iterator[tuple[Link, Link]]:
        raise NotImplementedError

    def test_messages_arrive_whole_and_in_order(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        sent = [(i, "x" * (i * 37 % 1000), {"k": [i]}) for i in range(500)]
        sender = threading.Thread(target=lambda: [one.send(message) for message in sent])
        sender.start()
        assert received(two, 500) == sent
        sender.join(30)

    def test_messages_sent_together_arrive_each_by_itself_between_the_others(
        self, pair: tuple[Link, Link]
    ) -> None:
        one, two = pair
        part = ("same", [1, 2])
        for i in range(20):
            one.send((i, "before"))
            one.send_all([(i, part), (i, part), (i, "last")])
        expected = [
            message for i in range(20) for message in ((i, "before"), (i, part), (i, part), (i, "last"))
        ]
        assert received(two, 80) == expected

    def test_both_ways(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        one.send((1,))
        two.send((2,))
        assert received(two, 1) == [(1,)]
        assert received(one, 1) == [(2,)]

    def test_large_messages_cross_each_other(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        large = bytes(8_000_000)
        both = [threading.Thread(target=link.send, args=((i, large),)) for i, link in enumerate(pair)]
        for thread in both:
            thread.start()
        assert received(two, 1)[0] == (0, large)
        assert received(one, 1)[0] == (1, large)
        for thread in both:
            thread.join(30)
            assert not thread.is_alive()

    def test_several_threads_may_send(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        threads = [
            threading.Thread(target=lambda i=i: [one.send((i, k, "y" * 3000)) for k in range(100)])
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        messages = received(two, 400)
        for thread in threads:
            thread.join(30)
        for i in range(4):
            assert [message[1] for message in messages if message[0] == i] == list(range(100))

    def test_closing_is_seen_by_the_other_end_after_what_was_sent(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        one.send(("last",))
        assert received(two, 1) == [("last",)]
        one.close()
        assert closed(two)
        assert _refuses(two)

    def test_a_closed_end_refuses_to_send(self, pair: tuple[Link, Link]) -> None:
        one, _ = pair
        one.close()
        one.close()
        assert _refuses(one)


def _refuses(link: Link) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            link.send(("into the void",))
        except LinkClosed:
            return True
    return False


class TestUnixLink(LinkContract):
    @pytest.fixture
    def pair(self) -> Iterator[tuple[Link, Link]]:
        one, two = map(UnixLink, socket.socketpair())
        yield one, two
        one.close()
        two.close()

    def test_a_frame_may_arrive_byte_by_byte(self) -> None:
        writer, reader = socket.socketpair()
        twin_one, twin_two = socket.socketpair()
        link, sender = UnixLink(reader), UnixLink(twin_one)
        sender.send(("slowly", 1))
        for byte in twin_two.recv(10_000):
            writer.sendall(bytes([byte]))
        assert received(link, 1) == [("slowly", 1)]
        for end in (writer, twin_two):
            end.close()
        link.close()
        sender.close()


class TestMemoryLink(LinkContract):
    @pytest.fixture
    def pair(self) -> Iterator[tuple[Link, Link]]:
        one, two = MemoryLink.pair()
        yield one, two
        one.close()
        for link in (one, two):
            link.inbox.close()

    def test_messages_are_the_objects_themselves(self, pair: tuple[Link, Link]) -> None:
        one, two = pair
        thing = object()
        one.send((thing,))
        assert received(two, 1)[0][0] is thing


class TestDaskLink(LinkContract):
    @pytest.fixture
    def pair(self) -> Iterator[tuple[Link, Link]]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="link-loop")
        thread.start()
        accepted: asyncio.Queue[DaskLink] = asyncio.Queue()

        async def accept(comm: Any) -> None:
            link = DaskLink(comm, loop)
            accepted.put_nowait(link)
            await link.run()

        async def join() -> tuple[Any, DaskLink, DaskLink]:
            listener = await listen("tcp://127.0.0.1:0", accept)
            one = DaskLink(await connect(listener.contact_address), loop)
            one.start()
            return listener, one, await accepted.get()

        async def part(listener: Any) -> None:
            listener.stop()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait([task], timeout=10)

        listener, one, two = asyncio.run_coroutine_threadsafe(join(), loop).result(30)
        yield one, two
        one.close()
        two.close()
        asyncio.run_coroutine_threadsafe(part(listener), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def test_a_wakeup_that_was_closed_writes_into_no_other_file() -> None:
    wakeup = Wakeup()
    wakeup.close()
    taken = [os.pipe() for _ in range(4)]  # including its numbers
    try:
        wakeup.set()
        wakeup.clear()
        assert not any(readable(reading, 0.0) for reading, _ in taken)
    finally:
        for pair in taken:
            for descriptor in pair:
                os.close(descriptor)


def test_waiting_at_a_link_that_was_closed_here_is_its_end() -> None:
    one, two = socket.socketpair()
    link = UnixLink(one)
    link.close()
    two.close()
    with pytest.raises(LinkClosed, match="this end"):
        readable(link.fileno(), 0.0)


class Preempted(socket.socket):
    """A socket whose reader is held up just before it reads, as any thread may be."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self.there, self.go_on = threading.Event(), threading.Event()

    def recv_into(self, *args: Any) -> int:
        self.there.set()
        assert self.go_on.wait(30)
        return super().recv_into(*args)


def test_a_link_that_is_closed_while_it_is_read_keeps_its_descriptor_until_then() -> None:
    one, two = socket.socketpair()
    sock = Preempted(one.detach())
    link = UnixLink(sock)
    with ThreadPoolExecutor(2) as pool, two:
        reading = pool.submit(link.receive)
        assert sock.there.wait(30)
        closing = pool.submit(link.close)
        with pytest.raises(TimeoutError):
            closing.result(0.2)
        assert link.fileno() >= 0
        sock.go_on.set()
        assert isinstance(reading.exception(30), LinkClosed)
        closing.result(30)
    assert link.fileno() < 0
