"""A proxy as a hub has it: TLS for everybody, and a server behind each prefix."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PATIENCE_SECONDS: Final = 30.0
_HEAD_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests below a prefix go.

    Attributes:
      port: Of the server, on loopback.
      strips: Whether the server is asked without the prefix, which then knows nothing of it.
    """

    port: int
    strips: bool = False


@dataclass(slots=True)
class TlsProxy:
    """One that runs.

    Attributes:
      port: Where browsers find it, on 127.0.0.1.
      routes: By prefix, such as "/user/ann/"; more may come while it runs.
    """

    port: int = 0
    routes: dict[str, Route] = field(default_factory=dict)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; all of its requests are for the prefix of the first."""
        self._writers.append(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, rest = head.split(b" ", 2)
            found = next(((p, r) for p, r in self.routes.items() if path.startswith(p.encode())), None)
            if found is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            prefix, route = found
            if route.strips:
                path = path[len(prefix) - 1 :]
            if route.strips and not re.search(rb"\r\nUpgrade: websocket\r\n", rest, re.I):
                # The next request has its own connection, because here only the first one loses its prefix.
                rest = re.sub(rb"\r\nConnection: [^\r]*", b"", rest, flags=re.I)
                rest = rest[:-2] + b"Connection: close\r\n\r\n"
            rest = rest[:-2] + b"X-Forwarded-Proto: https\r\n\r\n"
            behind, to_server = await asyncio.open_connection("127.0.0.1", route.port)
            self._writers.append(to_server)
            to_server.write(b" ".join((method, path, rest)))
            ways = [_pipe(reader, to_server), _pipe(behind, writer)]
            _, waiting = await asyncio.wait(map(asyncio.ensure_future, ways), return_when="FIRST_COMPLETED")
            for way in waiting:
                way.cancel()
            to_server.close()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side has gone
        finally:
            writer.close()

    async def end(self) -> None:
        """Ends all connections, before their loop ends: their sockets would be closed by the collector of garbage."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for writer in self._writers:
            # Python 3.11.2 forgets what it would abort as soon as a connection is closed.
            with contextlib.suppress(AttributeError):
                writer.transport.abort()
        closed = (writer.wait_closed() for writer in self._writers)
        await asyncio.wait_for(asyncio.gather(*closed, return_exceptions=True), PATIENCE_SECONDS)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_HEAD_BYTES):
            writer.write(data)
            await writer.drain()


@contextmanager
def tls_proxy(certificate: Path, key: Path) -> Iterator[TlsProxy]:
    """Runs one in a thread.

    Args:
      certificate: Its certificate.
      key: The key of that.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    proxy = TlsProxy()
    loop = asyncio.new_event_loop()
    over: asyncio.Event = asyncio.Event()
    ready = threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context, limit=_HEAD_BYTES)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        server.close()
        await proxy.end()

    def serve() -> None:
        loop.set_exception_handler(lambda *_: None)  # from connections that a browser drops
        loop.run_until_complete(run())
        loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(PATIENCE_SECONDS)
        yield proxy
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE_SECONDS)
