"""What the server asks of clusters, where their processes do not answer as they should."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.comm.unix_listener import UnixListener
from workbench.runtime.deploy.registry import Entry, Registry, new_id
from workbench.server.clusters import Clusters
from workbench.server.frames import Requests, encode
from workbench.server.limits import Limits
from workbench.server.summary import Summary
from workbench.server.worker_options import MAX_REPLICAS, WorkerOptions

PATIENCE_SECONDS = 60.0
OPTIONS = WorkerOptions(2)
SUMMARY = Summary(
    "live", "2 workers", 2, 2, 1, None, 0, 0, "good", "All is well", embedded=True, strategies=()
).as_dict()


class Process:
    """Workers whose process does as the test says: by default, it ends in the middle of what it is asked.

    Attributes:
      id: The id of their entry.
      asked: What was asked of them.
    """

    def __init__(
        self,
        registry: Registry,
        behave: Callable[[socket.socket], None] | None = None,
        *,
        drives: str = "",
        live: int = 2,
    ) -> None:
        self._live = live
        self.asked: list[str] = []
        self._behave = behave or self._end_when_asked
        self.id = new_id()
        self._listener = UnixListener(self._accept, thread_name="test-process")
        machine, path = socket.gethostname(), self._listener.path
        kind = "driver" if drives else "workers"
        entry = Entry(self.id, kind, "w", os.getpid(), machine, time.time(), path, workers_of=drives)
        self._announced = registry.announce(entry)

    def _accept(self, sock: socket.socket) -> None:
        with sock:
            sock.settimeout(PATIENCE_SECONDS)
            sock.sendall(encode({"summary": SUMMARY | {"replicas_live": self._live}}))
            self._behave(sock)

    def _end_when_asked(self, sock: socket.socket) -> None:
        self.asked += [request["do"] for request in Requests(sock).receive() if "do" in request]

    def end(self) -> None:
        self._announced.withdraw()
        self._listener.close()


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


@contextmanager
def process(
    registry: Registry,
    behave: Callable[[socket.socket], None] | None = None,
    *,
    drives: str = "",
    live: int = 2,
) -> Iterator[Process]:
    one = Process(registry, behave, drives=drives, live=live)
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
                with pytest.raises(FailedPreconditionError, match="has ended"):
                    await clusters.scale(one.id, 3)
        finally:
            await clusters.close()

    with process(registry) as one:
        asyncio.run(ask())
        assert one.asked == [action]


def test_what_a_notebook_says_counts_where_the_workers_have_not_told_how_many_there_are(
    registry: Registry,
) -> None:
    over = threading.Event()

    def wait(sock: socket.socket) -> None:
        over.wait(PATIENCE_SECONDS)

    async def shrink() -> None:
        clusters = Clusters(registry)
        there = asyncio.Event()
        clusters.listen(there.set, dict)
        try:
            while any(clusters.find(one.id).summary is None for one in (workers, driver)):
                there.clear()
                await asyncio.wait_for(there.wait(), PATIENCE_SECONDS)
            with pytest.raises(FailedPreconditionError, match="a notebook uses these workers"):
                await clusters.scale(workers.id, 1)
        finally:
            await clusters.close()

    with process(registry, wait, live=1) as workers, process(registry, wait, drives=workers.id) as driver:
        try:
            asyncio.run(shrink())
        finally:
            over.set()


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

        async def start(self: Clusters, options: WorkerOptions) -> Entry:
            begun.append(options.replicas)
            await asyncio.wait_for(go_on.wait(), PATIENCE_SECONDS)
            raise FailedPreconditionError("only counted")

        monkeypatch.setattr(Clusters, "_start", start)
        clusters = Clusters(registry)
        asking = [asyncio.ensure_future(clusters.start(WorkerOptions(1))) for _ in range(20)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
        go_on.set()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        asking = [asyncio.ensure_future(clusters.start(WorkerOptions(1)))]
        return [*answers, *await asyncio.gather(*asking, return_exceptions=True)]

    answers = asyncio.run(ask())
    assert len(begun) == 8 + 1
    assert ["8 clusters were started here" in str(answer) for answer in answers] == (
        [False] * 8 + [True] * 12 + [False]
    )


@pytest.mark.parametrize("beats", [True, False], ids=["a driver", "workers"])
def test_a_process_that_falls_silent_is_stale_until_it_is_heard_again(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, beats: bool
) -> None:
    monkeypatch.setattr("workbench.server.job_link.STALE_SECONDS", 0.01)
    topology = {"status": "live", "hosts": []}
    go_on, done = threading.Event(), threading.Event()
    seen: list[tuple[str, ...]] = []

    def behave(sock: socket.socket) -> None:
        sock.sendall(encode({"view": "topology", "model": topology}))
        sock.sendall(encode({"beat": True} if beats else {"summary": SUMMARY}))
        assert go_on.wait(PATIENCE_SECONDS)
        sock.sendall(encode({"summary": SUMMARY | {"text": "heard again"}}))
        assert done.wait(PATIENCE_SECONDS)

    async def look() -> None:
        clusters = Clusters(registry)
        ended = asyncio.Event()

        def changed() -> None:
            link = clusters.find(one.id)
            if link.summary is None or "topology" not in link.models:
                return
            now = (link.summary["status"], link.models["topology"]["status"], link.summary["text"])
            if now not in seen[-1:]:
                seen.append(now)
            if now[0] == "stale" or not beats:
                go_on.set()
            if "heard again" in now:
                ended.set()

        clusters.listen(changed, dict)
        try:
            await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
        finally:
            done.set()
            await clusters.close()

    with process(registry, behave) as one:
        asyncio.run(look())
    live, again = ("live", "live", "2 workers"), ("live", "live", "heard again")
    stale = ("stale", "stale", "2 workers")
    assert [now for now in seen if now != ("stale", "stale", "heard again")][:4] == (
        [live, stale, live, again] if beats else [live, again]
    )


class Started:
    """What the server starts as a process: it says the id of workers that are there already."""

    stdin = None

    def __init__(self, id: str) -> None:
        self.stdout = self
        self.returncode: int | None = None
        self._id = id

    async def readline(self) -> bytes:
        return json.dumps({"id": self._id}).encode()

    async def wait(self) -> int:
        return 0


def test_workers_that_no_notebook_uses_are_stopped_in_time_and_others_are_not(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    over = threading.Event()
    entries = registry.entries

    def look() -> list[Entry]:
        nonlocal looks
        looks += 1
        return entries()

    def drive(sock: socket.socket) -> None:
        assert over.wait(PATIENCE_SECONDS)

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await asyncio.sleep(0.01)

    async def use() -> None:
        async def start(*command: object, **pipes: object) -> Started:
            return started

        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        monkeypatch.setattr(registry, "entries", look)
        started = Started(one.id)
        clusters = Clusters(registry, Limits(idle_minutes=0.2 / 60))
        try:
            await clusters.start(OPTIONS)
            before = looks
            await until(lambda: looks > before + 10)  # more than twice the allowed time
            assert one.asked == []
            over.set()
            driver.end()
            await until(lambda: one.asked != [])
            started.returncode = 0
        finally:
            await clusters.close()

    with process(registry) as one, process(registry, drive, drives=one.id) as driver:
        try:
            asyncio.run(use())
        finally:
            over.set()
    assert one.asked == ["close_unused"]


def test_the_server_allows_as_many_replicas_and_clusters_as_are_configured(registry: Registry) -> None:
    async def start(limits: Limits) -> None:
        clusters = Clusters(registry, limits)
        try:
            await clusters.start(OPTIONS)
        finally:
            await clusters.close()

    with pytest.raises(InvalidArgumentError, match=r"allows 1 replicas .*WorkbenchApp\.max_replicas"):
        asyncio.run(start(Limits(replicas=1)))
    with pytest.raises(FailedPreconditionError, match=r"starts no clusters.*WorkbenchApp\.max_clusters"):
        asyncio.run(start(Limits(clusters=0)))
