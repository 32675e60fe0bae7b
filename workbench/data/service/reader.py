"""A consumer of a job: fetches elements from its workers ahead, and acknowledges them when it hands them over.

A thread watches the job, and one per worker fetches. What is fetched and not handed over was not acknowledged: a
consumer that stops early leaves it to the others.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench import forks
from workbench.data.service.address import Address, Tls
from workbench.data.service.blocks import cut, size_of, unpacked
from workbench.data.service.channel import Channel
from workbench.data.service.wire import Fields
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Run
from workbench.errors import CancelledError, UnavailableError, WorkbenchError

_WATCH_SECONDS = 2.0
_FETCH_SECONDS = 1.0
_LIMITED_FETCH_SECONDS = 0.05
_IDLE_SECONDS = 0.5
_BLOCK_BYTES = 1024 * 1024
_MOST_ELEMENTS = 4096
_BLOCKS_PER_WORKER = 2
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a consumer reads.

    Attributes:
      address: The dispatcher.
      tls: How to check certificates, None without TLS.
      dataset: Id of the dataset.
      mode: Value of the `ShardingPolicy`.
      job_name: The name that consumers share, "" for a job of this one.
      max_outstanding: How many elements may be here or on their way; 0 for two blocks of a megabyte per worker.
      timeout_seconds: How long the service may be away, or without a worker.
    """

    address: Address
    tls: Tls | None
    dataset: int | str
    mode: int
    job_name: str
    max_outstanding: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class _Block:
    """Elements of a lane that follow each other."""

    fetcher: _Fetcher
    lane: int
    start: int
    count: int
    runs: list[Run]


class Reader:
    """One iteration of one consumer. `runs` starts and ends it."""

    def __init__(self, reading: Reading, iteration: int, structure: Structure) -> None:
        """Nothing is sent yet.

        Args:
          reading: What to read.
          iteration: Which pass under this name.
          structure: The structure of an element.
        """
        self._reading = reading
        self._iteration = iteration
        self.structure = structure
        self.consumer = secrets.token_hex(8)
        self.job = ""
        self.news = forks.lock(threading.Condition())
        self._blocks: deque[_Block] = deque()
        self._held = 0
        self._view: Fields | None = None
        self._fetchers: dict[str, _Fetcher] = {}
        self._failure: WorkbenchError | None = None
        self.closed = False
        self._acknowledged = 0
        self._channel = self.channel(reading.address, "dispatcher")
        self._watching = self.channel(reading.address, "dispatcher")
        self._thread = threading.Thread(target=self._watch, name="wb-data-watch", daemon=True)

    def channel(self, address: Address, what: str) -> Channel:
        """A connection to a server of the service."""
        return Channel(address, self._reading.tls, what, self._reading.timeout_seconds)

    def runs(self) -> Iterator[Run]:
        """The elements that this consumer gets.

        Raises:
          UnavailableError: if the service is away for too long.
        """
        try:
            reading = self._reading
            fields = {
                "id": secrets.token_hex(8),
                "name": reading.job_name,
                "iteration": self._iteration,
                "dataset": reading.dataset,
                "mode": reading.mode,
                "num_consumers": 0,
                "consumer": self.consumer,
            }
            self.job = self._channel.call("job", fields)[0]["job"]
            self._thread.start()
            while (block := self._next()) is not None:
                yield from self._accepted(block)
                with self.news:
                    self._held -= block.count
                    self.news.notify_all()
        finally:
            self._close()

    def _accepted(self, block: _Block) -> Iterator[Run]:
        """What of a block nobody has had, this consumer included: a lane may have been computed again."""
        self._acknowledged += 1
        reply, _ = self._channel.call(
            "ack",
            {
                "job": self.job,
                "lane": block.lane,
                "start": block.start,
                "stop": block.start + block.count,
                "consumer": self.consumer,
                "number": self._acknowledged,
                "failed": sum(isinstance(run, Failed) for run in block.runs),
            },
        )
        with self.news:
            block.fetcher.freed.append((block.lane, block.start))
        for start, stop in reply["accepted"]:
            yield from _between(block.runs, start - block.start, stop - block.start)

    def _next(self) -> _Block | None:
        """The next block; None at the end of the job."""
        with self.news:
            lonely_since = time.monotonic()
            while True:
                if self._blocks:
                    return self._blocks.popleft()
                if self._failure is not None:
                    raise self._failure
                if self._has_ended():
                    return None
                if self._view is None or self._view["workers"]:
                    lonely_since = time.monotonic()
                elif time.monotonic() - lonely_since > self._reading.timeout_seconds:
                    raise UnavailableError(
                        f"the dispatcher at {self._reading.address} has had no worker for "
                        f"{self._reading.timeout_seconds:g} seconds; start one: workbench data-worker ADDRESS"
                    )
                self.news.wait(1.0)

    def _has_ended(self) -> bool:
        """Whether no element is left that nobody was given."""
        view = self._view
        if view is None or not view["closed"]:
            return False
        return all(
            complete or (address in self._fetchers and (number, move) in self._fetchers[address].drained)
            for number, move, address, complete in view["lanes"]
        )

    # Threads

    def _watch(self) -> None:
        version = 0
        while not self.closed:
            fields: Fields = {
                "job": self.job,
                "consumer": self.consumer,
                "version": version,
                "wait": _WATCH_SECONDS,
            }
            try:
                view, _ = self._watching.call("view", fields, wait_seconds=_WATCH_SECONDS)
            except CancelledError:
                return
            except WorkbenchError as error:
                self.fail(error)
                return
            version = view["version"]
            with self.news:
                self._view = view
                gone = self._fetch_from({lane[2] for lane in view["lanes"] if lane[2]})
                self.news.notify_all()
            for fetcher in gone:
                fetcher.stop()

    def _fetch_from(self, addresses: set[str]) -> list[_Fetcher]:
        """Begins to fetch from these workers; gives the fetchers of others, which are to be stopped."""
        for address in addresses - self._fetchers.keys():
            if not self.closed:
                self._fetchers[address] = _Fetcher(self, address, self._reading)
        return [self._fetchers.pop(address) for address in self._fetchers.keys() - addresses]

    def room(self, fetcher: _Fetcher, wanted: int) -> int:
        """How many elements may be asked for now, at most `wanted`; the caller holds the condition.

        None of a worker that has nothing left of the job, or its requests would keep others from being served.
        """
        if not self.has_lanes_at(fetcher.address):
            return 0
        limit = self._reading.max_outstanding
        if limit:
            share = max(1, limit // len(self._fetchers or " "))
            return max(0, min(wanted, limit - self._held, share))
        return wanted if sum(block.fetcher is fetcher for block in self._blocks) < _BLOCKS_PER_WORKER else 0

    def reserve(self, count: int) -> None:
        """Counts elements as outstanding, or as not; the caller holds the condition."""
        self._held += count

    def add(self, block: _Block) -> None:
        """Has the elements of a block wait for the loop; the caller holds the condition."""
        self._blocks.append(block)
        self.news.notify_all()

    def fail(self, error: WorkbenchError) -> None:
        """Has the loop raise an error."""
        with self.news:
            self._failure = self._failure or error
            self.news.notify_all()

    def has_lanes_at(self, address: str) -> bool:
        """Whether a worker has lanes of the job that are not complete, as far as the dispatcher has told."""
        lanes = [] if self._view is None else self._view["lanes"]
        return any(place == address and not complete for _, _, place, complete in lanes)

    def _close(self) -> None:
        with self.news:
            self.closed = True
            fetchers = list(self._fetchers.values())
            self.news.notify_all()
        for fetcher in fetchers:
            fetcher.stop()
        self._watching.close()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)
        for fetcher in fetchers:
            fetcher.join()
        self._release()

    def _release(self) -> None:
        self._channel.close()
        if not self.job:
            return
        # One try: a dispatcher that is away forgets the job by itself, and nobody shall wait for that.
        farewell = Channel(self._reading.address, self._reading.tls, "dispatcher", 0.0)
        try:
            farewell.call("release", {"job": self.job, "consumer": self.consumer})
        except WorkbenchError:
            pass
        finally:
            farewell.close()


class _Fetcher:
    """Fetches from one worker.

    Attributes:
      address: Of the worker.
      freed: Lanes and numbers of blocks that were acknowledged since the last request.
      drained: Lanes of which the worker has nothing left, and how often they had moved by then.
    """

    def __init__(self, reader: Reader, address: str, reading: Reading) -> None:
        self._reader = reader
        self.address = address
        self._stopped = False
        self._most = 1
        self.freed: list[tuple[int, int]] = []
        self.drained: set[tuple[int, int]] = set()
        self._is_idle = False
        # Elements that are asked for and do not come count against the limit, which other workers could use.
        self._wait = _LIMITED_FETCH_SECONDS if reading.max_outstanding else _FETCH_SECONDS
        place = Address.parse(address)
        self._place = Address(place.host, place.port, reading.address.token)
        self._channel = reader.channel(self._place, "data worker")
        self._thread = threading.Thread(target=self._run, name="wb-data-fetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        reader = self._reader
        while True:
            with reader.news:
                while not self._stopped and not reader.room(self, self._most):
                    reader.news.wait(1.0)
                if self._stopped:
                    return
                most = reader.room(self, self._most)
                reader.reserve(most)
                freed, self.freed = self.freed, []
            reserved, self._is_idle = most, False
            try:
                reserved = self._fetch(most, freed)
            except CancelledError:
                return
            except WorkbenchError as error:
                # A worker that has gone, of which the dispatcher knows, is no failure: others have its lanes.
                if reader.has_lanes_at(self.address) and not self._stopped:
                    reader.fail(error)
                return
            finally:
                with reader.news:
                    reader.reserve(-reserved)
                    reader.news.notify_all()
            if self._is_idle:
                with reader.news:
                    reader.news.wait(_IDLE_SECONDS)

    def _fetch(self, most: int, freed: list[tuple[int, int]]) -> int:
        """One request; how many of the elements that were reserved did not come."""
        reader = self._reader
        fields = {"job": reader.job, "consumer": reader.consumer, "most": most, "freed": freed}
        reply, data = self._channel.call("fetch", {**fields, "wait": self._wait}, wait_seconds=self._wait)
        with reader.news:
            if "drained" in reply:
                self.drained = {(lane, move) for lane, move in reply["drained"]}
                self._is_idle = True
                return most
        runs = unpacked(reply["segments"], data, reader.structure, self.address)
        count = int(reply["count"])
        self._most = _next_size(self._most, count, len(data))
        with reader.news:
            reader.reserve(max(0, count - most))
            reader.add(_Block(self, reply["lane"], reply["start"], count, runs))
        return max(0, most - count)

    def stop(self) -> None:
        """Ends the thread."""
        with self._reader.news:
            self._stopped = True
            self._reader.news.notify_all()
        self._channel.close()

    def join(self) -> None:
        """Waits for the thread."""
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)


def _next_size(most: int, count: int, size_bytes: int) -> int:
    """How many elements to ask for: twice as many each time, up to about a megabyte."""
    fit = _BLOCK_BYTES * count // max(1, size_bytes)
    return max(1, min(2 * most, fit, _MOST_ELEMENTS))


def _between(runs: list[Run], start: int, stop: int) -> Iterator[Run]:
    position = 0
    for run in runs:
        size = size_of(run)
        first, last = max(0, start - position), min(size, stop - position)
        if first < last:
            yield cut(run, first, last)
        position += size


def structure_of(element_spec: Any) -> Structure:
    """The structure of elements with this spec."""
    from workbench import tree
    from workbench.data.structure import LEAF

    _, spec = tree.flatten(element_spec)
    return LEAF if spec == LEAF.spec else Structure(spec)
