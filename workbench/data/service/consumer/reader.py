"""A consumer of a job: prefetches elements from its workers, and acknowledges them when it delivers them.

One thread watches the job, and one per worker fetches. Elements that were fetched but not delivered are not
acknowledged: a consumer that stops early leaves them to the others.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator

from workbench import forks
from workbench.data.service import local_workers
from workbench.data.service.address import Address
from workbench.data.service.blocks import cut, size_of, unpacked
from workbench.data.service.channel import Channel
from workbench.data.service.consumer.reading import Reading
from workbench.data.service.consumer.rounds import Rounds
from workbench.data.service.consumer.turns import MOST_ELEMENTS, Ask, Block, FirstCome, Turns, Worker
from workbench.data.service.wire import Fields
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Run
from workbench.errors import CancelledError, FailedPreconditionError, UnavailableError, WorkbenchError

_WATCH_SECONDS = 2.0
_FETCH_SECONDS = 1.0
_LIMITED_FETCH_SECONDS = 0.05
_IDLE_SECONDS = 0.5
_BLOCK_BYTES = 1024 * 1024
_STOP_SECONDS = 10.0


class Reader:
    """One iteration of one consumer. `runs` starts and ends it."""

    def __init__(self, reading: Reading, iteration: int, structure: Structure) -> None:
        """Sends nothing yet.

        Args:
          reading: What to read.
          iteration: The number of the pass under this name.
          structure: The structure of an element.
        """
        self._reading = reading
        self._iteration = iteration
        self.structure = structure
        self.consumer = secrets.token_hex(8)
        self.job = ""
        self.news = forks.lock(threading.Condition())
        self.turns: Turns = FirstCome(reading.max_outstanding)
        if reading.num_consumers:
            self.turns = Rounds(reading.index, reading.num_consumers, reading.max_outstanding)
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
          UnavailableError: if the service is unreachable for too long.
        """
        try:
            self._join()
            while (block := self._next()) is not None:
                yield from self._accepted(block)
                with self.news:
                    self.turns.done(block)
                    self.news.notify_all()
        finally:
            self._close()

    def _join(self) -> None:
        reading = self._reading
        fields = {
            **self._seat(),
            "id": secrets.token_hex(8),
            "name": reading.job_name,
            "iteration": self._iteration,
            "dataset": reading.dataset,
            "mode": reading.mode,
            "num_consumers": reading.num_consumers,
            "cached": bool(reading.trainer),
            "target_workers": reading.target_workers,
        }
        reply, _ = self._channel.call("job", fields)
        self.job = reply["job"]
        if isinstance(self.turns, Rounds):
            self.turns.start(reply["round"])
        self._thread.start()

    def _seat(self) -> Fields:
        """The fields that identify this consumer."""
        local = local_workers.addresses() if self._reading.is_local else []
        return {"consumer": self.consumer, "index": self._reading.index, "local": local}

    def _accepted(self, block: Block) -> Iterator[Run]:
        """The part of a block that no consumer has received yet: a lane may have been computed twice."""
        if self._reading.trainer:  # others may also receive it
            yield from block.runs
            return
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
            self.turns.acknowledged(block)
            if block.worker in self._fetchers:
                self._fetchers[block.worker].freed.append((block.lane, block.start))
        for start, stop in reply["accepted"]:
            yield from _between(block.runs, start - block.start, stop - block.start)

    def _next(self) -> Block | None:
        """The next block; None at the end of the job."""
        with self.news:
            waits_since = time.monotonic()
            while True:
                block = self.turns.next()
                if block is not None:
                    return block
                if self._failure is not None:
                    raise self._failure
                if self._has_ended():
                    return None
                lacking = self._lacking()
                if lacking is None:
                    waits_since = time.monotonic()
                elif time.monotonic() - waits_since > self._reading.timeout_seconds:
                    raise UnavailableError(lacking)
                self.news.wait(1.0)

    def _lacking(self) -> str | None:
        """Why nothing can arrive in this state; None if something can."""
        view, seconds = self._view, f"{self._reading.timeout_seconds:g} seconds"
        if view is None:
            return None
        if not view["workers"]:
            start = "start one: workbench data-worker ADDRESS"
            if self._reading.is_local:
                start = 'start a WorkerServer here, or choose target_workers="ANY"'
            where = " in the process of this consumer" if self._reading.is_local else ""
            return (
                f"the dispatcher at {self._reading.address} has had no worker{where} for {seconds}; {start}"
            )
        if view["missing"]:
            indices = ", ".join(map(str, view["missing"]))
            return (
                f"consumer {self._reading.index} has waited {seconds} for the others of job "
                f"{self._reading.job_name!r}, which read in rounds: nobody reads as consumer_index {indices} of "
                f"{self._reading.num_consumers}; start it, and it continues where it was"
            )
        return None

    def _has_ended(self) -> bool:
        """Whether every element has been delivered to a consumer.

        Raises:
          FailedPreconditionError: if the lane whose turn it is has ended, although others continue.
        """
        view = self._view
        if view is None or not view["closed"]:
            return False
        due = self.turns.lane_due()
        if due is None:
            lanes = [lane for lane in view["lanes"] if not lane[2] or self._is_read(lane[2])]
            return all(
                complete or self._is_drained(lane, move, place) for lane, move, place, complete in lanes
            )
        number, move, place, complete = view["lanes"][due]
        if complete or self._is_drained(number, move, place):
            raise FailedPreconditionError(
                "a data worker has come to the end of the dataset, and consumers that read in rounds need one without "
                "end; put .repeat() at its end"
            )
        return False

    def _is_drained(self, lane: int, move: int, address: str) -> bool:
        return address in self._fetchers and (lane, move) in self._fetchers[address].drained

    def _is_read(self, address: str) -> bool:
        """Whether this consumer reads from the worker at this address."""
        return not self._reading.is_local or address in local_workers.addresses()

    # Threads

    def _watch(self) -> None:
        version = 0
        while not self.closed:
            fields: Fields = {
                **self._seat(),
                "job": self.job,
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
                gone = self._fetch_from(
                    {lane[2] for lane in view["lanes"] if lane[2] and self._is_read(lane[2])}
                )
                self.news.notify_all()
            for fetcher in gone:
                fetcher.stop()

    def _fetch_from(self, addresses: set[str]) -> list[_Fetcher]:
        """Starts fetching from these workers; returns the fetchers of other workers, which the caller stops."""
        for address in addresses - self._fetchers.keys():
            if not self.closed:
                self._fetchers[address] = _Fetcher(self, address, self._reading)
        return [self._fetchers.pop(address) for address in self._fetchers.keys() - addresses]

    def worker(self, address: str) -> Worker:
        """A worker according to the dispatcher; the caller holds the condition."""
        view = self._view
        lanes = () if view is None else view["lanes"]
        here = tuple(lane for lane, _, place, complete in lanes if place == address and not complete)
        total = len(lanes) if view is not None and view["closed"] else 0
        return Worker(address, here, total, len(self._fetchers))

    def fail(self, error: WorkbenchError) -> None:
        """Makes the loop raise an error."""
        with self.news:
            self._failure = self._failure or error
            self.news.notify_all()

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
        # Tries once: an unreachable dispatcher drops the job on its own, and closing should not wait for that.
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
      address: The address of the worker.
      freed: Lanes and numbers of the blocks acknowledged since the last request.
      drained: Lanes that the worker has sent completely, and how often each had been moved by then.
    """

    def __init__(self, reader: Reader, address: str, reading: Reading) -> None:
        self._reader = reader
        self.address = address
        self._stopped = False
        self._most = 1
        self.freed: list[tuple[int, int]] = []
        self.drained: set[tuple[int, int]] = set()
        self._is_idle = False
        self._trainer = reading.trainer
        # Requested elements that do not arrive count against the limit, which other workers could use.
        is_limited = reading.max_outstanding and not reading.num_consumers
        self._wait = _LIMITED_FETCH_SECONDS if is_limited else _FETCH_SECONDS
        place = Address.parse(address)
        self._place = Address(place.host, place.port, reading.address.token)
        self._channel = reader.channel(self._place, "data worker")
        self._thread = threading.Thread(target=self._run, name="wb-data-fetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        reader = self._reader
        while True:
            with reader.news:
                while (ask := None if self._stopped else self._plan()) is None:
                    if self._stopped:
                        return
                    reader.news.wait(1.0)
                freed, self.freed = self.freed, []
            came, self._is_idle = 0, False
            try:
                came = self._fetch(ask, freed)
            except CancelledError:
                return
            except WorkbenchError as error:
                # A lost worker is not a failure if the dispatcher knows: others have its lanes.
                with reader.news:
                    is_missed = reader.worker(self.address).lanes and not self._stopped
                if is_missed:
                    reader.fail(error)
                return
            finally:
                with reader.news:
                    reader.turns.settle(ask, came)
                    reader.news.notify_all()
            if self._is_idle:
                with reader.news:
                    reader.news.wait(_IDLE_SECONDS)

    def _plan(self) -> Ask | None:
        return self._reader.turns.plan(self._reader.worker(self.address), self._most)

    def _fetch(self, ask: Ask, freed: list[tuple[int, int]]) -> int:
        """Makes one request; returns how many elements arrived."""
        reader = self._reader
        fields = {
            "job": reader.job,
            "consumer": reader.consumer,
            "most": ask.most,
            "freed": freed,
            "due": list(ask.due.items()),
            "unread": list(ask.unread.items()),
            "trainer": self._trainer,
            "wait": self._wait,
        }
        reply, data = self._channel.call("fetch", fields, wait_seconds=self._wait)
        if "drained" in reply:
            with reader.news:
                self.drained = {(lane, move) for lane, move in reply["drained"]}
            # When all lanes are drained, the worker answers at once.
            self._is_idle = bool(reply["drained"])
            return 0
        runs = unpacked(reply["segments"], data, reader.structure, self.address)
        count = int(reply["count"])
        self._most = _next_size(self._most, count, len(data))
        with reader.news:
            reader.turns.add(Block(self.address, reply["lane"], reply["start"], count, runs))
        return count

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
    """How many elements to request: twice as many each time, up to about a megabyte."""
    fit = _BLOCK_BYTES * count // max(1, size_bytes)
    return max(1, min(2 * most, fit, MOST_ELEMENTS))


def _between(runs: list[Run], start: int, stop: int) -> Iterator[Run]:
    position = 0
    for run in runs:
        size = size_of(run)
        first, last = max(0, start - position), min(size, stop - position)
        if first < last:
            yield cut(run, first, last)
        position += size
