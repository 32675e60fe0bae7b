"""Polls for workers while some are missing, so that a step knows at once whether it can continue."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Container
from typing import Any

from distributed import Client
from distributed.comm.addressing import parse_host_port

from workbench import forks
from workbench.errors import UnavailableError

_ANSWER_SECONDS = 5.0
# A round ends after this time even without all answers; a late answer still counts.
_ROUND_SECONDS = 1.0
# Restarted workers are back within a second or two, unlike workers behind a broken network.
_SOON_SECONDS = 5.0
_FAST_SECONDS = 0.05
_SLOW_SECONDS = 0.5


class Lookout:
    """While workers are missing, asks on Dask's event loop which ones are present.

    Attributes:
      trouble: Why the scheduler cannot be asked; None while it answers.
    """

    def __init__(self, client: Client, used: Callable[[], Container[str]]) -> None:
        """`used` returns the addresses of the workers that are not free."""
        self._client = client
        self._used = used
        self._heard = forks.lock(threading.Condition())
        self._missing: dict[str, str] = {}
        self._to_end: dict[str, str] = {}
        self._free: dict[str, tuple[float, dict[str, Any]]] = {}
        self._answering: dict[str, float] = {}
        self._asking: dict[str, asyncio.Future[None]] = {}
        self._rounds = 0
        self._fast_until = 0.0
        self._running = False
        self.trouble: UnavailableError | None = None

    def begin(self, worker: str, nanny: str) -> None:
        """Starts to look for the missing `worker`; `nanny` is the address of its nanny, or ""."""
        with self._heard:
            if worker in self._missing:
                return
            self._missing[worker] = nanny
            self._rounds = 0
            self._fast_until = time.monotonic() + _SOON_SECONDS
            self._answering.pop(nanny, None)  # its earlier answers are out of date
            if not self._running:
                self._running = True
                loop: Any = self._client.loop
                loop.add_callback(self._look_out)

    def end(self, worker: str) -> None:
        """Ends the search for `worker`: it has a successor, or none is needed any more."""
        with self._heard:
            nanny = self._missing.pop(worker, "")
            self._to_end.pop(nanny, None)

    def close(self) -> None:
        """Makes the polling end soon."""
        with self._heard:
            self._missing.clear()
            self._heard.notify_all()

    def end_later(self, nanny: str, address: str) -> None:
        """Makes `nanny`, as soon as it answers, end its worker at `address` if that still exists."""
        with self._heard:
            self._to_end[nanny] = address

    def free(self, settled_seconds: float = 0.0) -> dict[str, dict[str, Any]]:
        """Address -> description, for free workers that answered the last time and for at least `settled_seconds`."""
        before = time.monotonic() - settled_seconds
        with self._heard:
            return {address: worker for address, (since, worker) in self._free.items() if since <= before}

    def forget(self, address: str) -> None:
        """Drops what is known about that worker, because it is out of date."""
        with self._heard:
            self._free.pop(address, None)

    def answers_since(self, nanny: str) -> float | None:
        """Since when a nanny has answered, by `time.monotonic`; None while it does not answer."""
        with self._heard:
            return self._answering.get(nanny)

    def has_asked_all(self) -> bool:
        """Whether all were asked since the latest loss, and had time to answer."""
        with self._heard:
            return self._rounds > 0

    def wait(self, seconds: float) -> None:
        """Waits for any answer, at most `seconds`."""
        with self._heard:
            self._heard.wait(seconds)

    async def _look_out(self) -> None:
        try:
            while True:
                with self._heard:
                    if not self._missing:
                        self._running = False
                        self._free.clear()
                        return
                    rounds = self._rounds
                complete = await self._round()
                with self._heard:
                    if complete and self._rounds >= rounds:  # and no other worker has been lost meanwhile
                        self._rounds += 1
                    self._heard.notify_all()
                soon = time.monotonic() < self._fast_until
                await asyncio.sleep(_FAST_SECONDS if soon else _SLOW_SECONDS)
        finally:
            for asked in self._asking.values():
                asked.cancel()
            with self._heard:
                self._running = False

    async def _round(self) -> bool:
        """Asks all that have no unanswered question; returns whether to continue."""
        with self._heard:
            missing, nannies = len(self._missing), {nanny for nanny in self._missing.values() if nanny}
        try:
            scheduler: Any = self._client.scheduler
            identity = await asyncio.wait_for(scheduler.identity(n_workers=-1), _ANSWER_SECONDS)
        except Exception as error:  # closed by its user, ended, or unreachable
            self.trouble = UnavailableError(_why_not(self._client, error))
            with self._heard:
                self._free.clear()
            return missing > 0
        self.trouble = None
        used = self._used()
        present = [address for address in identity["workers"] if address not in used]
        with self._heard:
            for address in [known for known in self._free if known not in present]:
                del self._free[address]
        for address in present:
            self._ask(address, self._describe(address))
        for nanny in nannies:
            self._ask(nanny, self._greet(nanny))
        if asked := list(self._asking.values()):
            await asyncio.wait(asked, timeout=_ROUND_SECONDS)
        return True

    def _ask(self, whom: str, question: Awaitable[None]) -> None:
        if whom in self._asking:
            question.close()  # type: ignore[attr-defined]
            return
        asked = self._asking[whom] = asyncio.ensure_future(question)
        asked.add_done_callback(lambda _: self._asking.pop(whom, None))

    async def _describe(self, address: str) -> None:
        scheduler: Any = self._client.scheduler
        message = {"op": "workbench_describe"}
        try:
            question = scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
            answer = (await asyncio.wait_for(question, _ANSWER_SECONDS)).get(address)
        except Exception:  # whatever the error is, it cannot be used
            answer = None
        with self._heard:
            if answer is None:
                self._free.pop(address, None)
            else:
                since, before = self._free.get(address, (time.monotonic(), answer))
                self._free[address] = (since if before["pid"] == answer["pid"] else time.monotonic()), answer
            self._heard.notify_all()

    async def _greet(self, nanny: str) -> None:
        try:
            there: Any = self._client.rpc(nanny)
            await asyncio.wait_for(there.identity(), _ANSWER_SECONDS)
            if nanny in self._to_end:
                await end_process(self._client, nanny, self._to_end[nanny])
                self._to_end.pop(nanny, None)
        except Exception:  # refused, unreachable, or closing
            with self._heard:
                self._answering.pop(nanny, None)
        else:
            with self._heard:
                self._answering.setdefault(nanny, time.monotonic())


async def end_process(client: Client, nanny: str, address: str) -> None:
    """Makes a nanny replace its worker's process, unless the worker at `address` is already gone.

    Raises:
      Exception: of any kind, if the nanny cannot be reached.
    """
    if await refuses(address):
        return  # the nanny already starts the next process, and may fail if that one dies meanwhile
    there: Any = client.rpc(nanny)
    await asyncio.wait_for(there.kill(reason="workbench-gave-it-up"), _ANSWER_SECONDS)


async def refuses(address: str) -> bool:
    """Whether nothing listens at a Dask address any more; False if that cannot be known."""
    try:
        host, port = parse_host_port(address.partition("://")[2])
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _ROUND_SECONDS)
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError, TimeoutError):
        return False
    writer.close()
    return False


def _why_not(client: Client, error: Exception) -> str:
    """Why a client cannot reach its scheduler, and the remedy."""
    scheduler: Any = client.scheduler
    remedy = "start the cluster again and connect to it with wb.connect(...)"
    # A client closes itself if its scheduler does not come back, but first fails the unanswered questions.
    if scheduler is None or client.status in ("closing", "closed"):
        return (
            f"the Dask scheduler has ended, or was out of reach for too long, or the client that wb.connect was given "
            f"was closed: {remedy}"
        )
    return (
        f"the Dask scheduler at {scheduler.address} does not answer any more ({type(error).__name__}): it ended, or "
        f"cannot be reached; {remedy}"
    )
