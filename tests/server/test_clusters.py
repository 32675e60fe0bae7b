"""What the server asks of clusters, where their processes do not answer as they should."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.registry import Entry, Registry, new_id
from workbench.runtime.unix_listener import UnixListener
from workbench.server.clusters import MAX_REPLICAS, Clusters
from workbench.server.frames import Requests, encode
from workbench.server.summary import Summary

PATIENCE_SECONDS = 60.0
SUMMARY = Summary("live", "2 workers", 2, 2, 1, None, 0, 0, 0, embedded=True, strategies=()).as_dict()


class Process:
    """Workers whose process does as the test says.

    Attributes:
      id: Of their entry.
      asked: What was asked of them.
    """

    def __init__(self, registry: Registry) -> None:
        self.asked: list[str] = []
        self.id = new_id()
        self._listener = UnixListener(self._accept, thread_name="test-process")
        machine, path = socket.gethostname(), self._listener.path
        entry = Entry(self.id, "workers", "w", os.getpid(), machine, time.time(), path)
        self._announced = registry.announce(entry)

    def _accept(self, sock: socket.socket) -> None:
        """Tells how it is; then ends in the middle of the first thing that it is asked."""
        with sock:
            sock.sendall(encode({"summary": SUMMARY}))
            sock.settimeout(PATIENCE_SECONDS)
            self.asked += [request["do"] for request in Requests(sock).receive() if "do" in request]

    def end(self) -> None:
        self._announced.withdraw()
        self._listener.close()


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


@contextmanager
def process(registry: Registry) -> Iterator[Process]:
    one = Process(registry)
    try:
        yield one
    finally:
        one.end()


@pytest.mark.parametrize("action", ["scale", "close"])
def test_who_ends_while_it_was_asked_to_scale_has_not_done_so(registry: Registry, action: str) -> None:
    async def ask() -> None:
        clusters = Clusters(registry)
        there = asyncio.Event()
        clusters.listen(there.set, dict)
        try:
            while clusters.find(one.id).summary is None:
                there.clear()
                await asyncio.wait_for(there.wait(), PATIENCE_SECONDS)
            if action == "close":
                await clusters.stop(one.id)
            else:
                with pytest.raises(FailedPreconditionError, match="has ended meanwhile"):
                    await clusters.scale(one.id, 3)
        finally:
            await clusters.close()

    with process(registry) as one:
        asyncio.run(ask())
        assert one.asked == [action]


@pytest.mark.parametrize("replicas", [0, -1, MAX_REPLICAS + 1])
def test_a_number_that_cannot_be_is_not_passed_on(registry: Registry, replicas: int) -> None:
    async def scale() -> None:
        clusters = Clusters(registry)
        try:
            await clusters.scale(one.id, replicas)
        finally:
            await clusters.close()

    with process(registry) as one, pytest.raises(InvalidArgumentError, match=f"between 1 and .*{replicas}"):
        asyncio.run(scale())
    assert one.asked == []


def test_those_that_ask_together_get_no_more_than_one_alone(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    async def ask() -> list[object]:
        go_on = asyncio.Event()

        async def start(self: Clusters, replicas: int) -> Entry:
            begun.append(replicas)
            await asyncio.wait_for(go_on.wait(), PATIENCE_SECONDS)
            raise FailedPreconditionError("only counted")

        monkeypatch.setattr(Clusters, "_start", start)
        clusters = Clusters(registry)
        asking = [asyncio.ensure_future(clusters.start(1)) for _ in range(20)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
        go_on.set()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        asking = [asyncio.ensure_future(clusters.start(1))]
        return [*answers, *await asyncio.gather(*asking, return_exceptions=True)]

    answers = asyncio.run(ask())
    assert len(begun) == 8 + 1
    assert ["8 clusters were started here" in str(answer) for answer in answers] == (
        [False] * 8 + [True] * 12 + [False]
    )
