"""A link over Dask's comm layer, with its TLS and addressing, for workers on other machines."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections import deque
from typing import Any

from distributed.comm.core import CommClosedError

from workbench import forks
from workbench.runtime.comm.codec import PICKLED, Codec
from workbench.runtime.comm.links import Inbox, LinkClosed
from workbench.runtime.comm.messages import Message


class DaskLink:
    """One end of a link over an open Dask comm. `run` must be awaited on the comm's event loop.

    Frames are pickled here, as on the other transports, and travel as bytes.
    """

    codec: Codec = PICKLED

    def __init__(self, comm: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._comm = comm
        self._loop = loop
        self._inbox = Inbox()
        self._outbox: deque[bytes] = deque()
        self._something_to_send = asyncio.Event()
        self._closed = False
        self._task: asyncio.Future[None] | None = None
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`."""
        self._closed = True
        stream = getattr(self._comm, "stream", None)  # in-process comms have none
        if stream is not None and not stream.closed():
            forks.let_go(stream.socket.fileno())

    def fileno(self) -> int:
        """As `Link.fileno`."""
        return self._inbox.fileno()

    def send(self, message: Message, body: bytes | None = None) -> None:
        """As `Link.send`."""
        if self._closed:
            raise LinkClosed("the peer closed the link")
        self._outbox.append(pickle.dumps(message, protocol=5) if body is None else body)
        try:
            self._loop.call_soon_threadsafe(self._something_to_send.set)
        except RuntimeError as error:
            raise LinkClosed("the event loop has ended") from error

    def send_all(self, messages: list[Message]) -> None:
        """As `Link.send_all`."""
        self.send((), pickle.dumps(messages, protocol=5))

    @property
    def pending(self) -> bool:
        """See `Link.pending`."""
        return False

    def receive(self) -> list[Message]:
        """As `Link.receive`."""
        return self._inbox.take()

    def start(self) -> None:
        """Begins to transfer frames; call it on the comm's event loop."""
        self._task = asyncio.ensure_future(self.run())

    async def run(self) -> None:
        """Transfers frames in both directions until either end closes."""
        reader = asyncio.ensure_future(self._read())
        writer = asyncio.ensure_future(self._write())
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._closed = True
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
            with contextlib.suppress(Exception):
                await self._comm.close()
            self._inbox.end()

    async def _read(self) -> None:
        while True:
            try:
                frame = await self._comm.read()
            except (CommClosedError, OSError):
                return
            message = pickle.loads(frame)
            for each in message if type(message) is list else [message]:
                self._inbox.put(each)

    async def _write(self) -> None:
        while True:
            await self._something_to_send.wait()
            self._something_to_send.clear()
            while self._outbox:
                try:
                    await self._comm.write(self._outbox.popleft())
                except (CommClosedError, OSError):
                    return
            if self._closed:
                return

    def close(self) -> None:
        """As `Link.close`."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._something_to_send.set)
