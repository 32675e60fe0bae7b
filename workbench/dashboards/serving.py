"""The server of a dashboard, on the event loop of the thread that starts it."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from pathlib import Path
from typing import Any, Final

import panel as pn
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import EMPTY_LAYOUT
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.application import build_applications
from panel.io.server import WSHandler
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import StreamClosedError
from tornado.log import access_log, app_log
from tornado.web import OutputTransform, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClosedError

from workbench.dashboards import page
from workbench.dashboards.address import Address
from workbench.dashboards.gate import POLICY, Gate
from workbench.dashboards.pane import VIEWS_ROUTE
from workbench.dashboards.recordings import Recordings
from workbench.dashboards.target import Jobs
from workbench.errors import UnavailableError
from workbench.runtime.deploy.registry import Registry
from workbench.server.clusters import Clusters
from workbench.server.rates import Bucket
from workbench.ui.widgets.built import STATIC

_TITLE: Final = "workbench"
_TEMPLATE: Final = Path(__file__).with_name("page.html")
_MAX_MESSAGE_BYTES: Final = 256 * 1024
_MAX_BODY_BYTES: Final = 64 * 1024
_MAX_PAGES: Final = 64
_IDLE_SECONDS: Final = 60.0
"""How long a connection may be silent, or leave a request unfinished."""
_FRAGMENTS_PER_SECOND: Final = 1000.0
"""A message is three fragments. Ten times a second, a page acknowledges what each of its views has received."""
_BURST: Final = 3000
_COMPRESSION: Final = 6
"""zlib's level. Neighbouring views get the same changes, and much of each repeats the last, so a tenth of the bytes
remains.
"""
_TOO_MANY: Final = 1008


class DashboardServer:
    """Serves pages until `stop`. Used by one event loop only.

    Attributes:
      url: The address of the dashboard, with the token.
      loop: Tornado's loop around asyncio's, with all connections.
    """

    def __init__(self, target: Jobs | Recordings, address: Address) -> None:
        """Starts listening.

        Raises:
          UnsafeBind, InvalidArgumentError: see `Address`.
          UnavailableError: if the port is in use, or the address does not belong to this machine.
        """
        address.check()
        _keep_quiet()
        tls = address.tls()
        bound = _bind(address)
        port: int = bound.getsockname()[1]
        self._clusters = Clusters(Registry())
        self._pages: set[object] = set()
        origins = address.allowed_origins(port)
        tornado = BokehTornado(
            build_applications(lambda: self._page(target), title=_TITLE, location=False),
            extra_websocket_origins=[origin.partition("://")[2] for origin in origins],
            extra_patterns=[(rf"/{VIEWS_ROUTE}/(.*)", StaticFileHandler, {"path": str(STATIC)})],
            websocket_max_message_size_bytes=_MAX_MESSAGE_BYTES,
            websocket_compression_level=_COMPRESSION,
            generate_session_ids=True,
        )
        for rule in tornado.wildcard_router.rules:
            if rule.target is WSHandler:
                rule.target = _PageSocket
        tornado.add_transform(_Headers)
        tornado.settings["log_function"] = _log
        self.gate = Gate(tornado, origins)
        http = HTTPServer(
            self.gate,
            ssl_options=tls,
            max_body_size=_MAX_BODY_BYTES,
            idle_connection_timeout=_IDLE_SECONDS,
            body_timeout=_IDLE_SECONDS,
        )
        self.loop = IOLoop.current()
        asyncio.get_running_loop().set_exception_handler(_on_lost_task)
        tornado.initialize(self.loop)
        http.add_sockets([bound])
        self._server = BaseServer(self.loop, tornado, http)
        self._server.start()
        self.url = f"{address.url(port)}?token={self.gate.token}"

    async def stop(self) -> None:
        """Ends the server and all of its pages."""
        self._server.stop(wait=False)
        self.gate.connections.close()
        await self._clusters.close()

    def _page(self, target: Jobs | Recordings) -> Any:
        """The page for a new browser."""
        if len(self._pages) >= _MAX_PAGES:
            return pn.pane.Str(f"{_MAX_PAGES} pages of this dashboard are open already: close one")
        made = page.make(target, self._clusters)
        self._pages.add(made)
        pn.state.on_session_destroyed(lambda context: self._forget(made))
        template = pn.Template(_TEMPLATE.read_text(encoding="utf-8"))
        template.add_panel("shell", made.shell)
        template.add_panel("body", made.body.column)
        return template

    def _forget(self, made: page.JobPage | page.RunPage) -> None:
        self._pages.discard(made)
        made.close()


class _PageSocket(WSHandler):
    """The WebSocket of a page, which limits the size of messages."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bucket = Bucket(_FRAGMENTS_PER_SECOND, _BURST)

    async def on_message(self, fragment: str | bytes) -> None:
        """Handles a part of a message."""
        if self._bucket.take():
            await super().on_message(fragment)
        else:
            self.close(_TOO_MANY, "too many messages")


class _Headers(OutputTransform):
    """Adds headers to every response that restrict what browsers do with it."""

    def transform_first_chunk(
        self, status_code: int, headers: Any, chunk: bytes, finishing: bool
    ) -> tuple[int, Any, bytes]:
        """Called by tornado."""
        headers["Content-Security-Policy"] = POLICY
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        # Pages of every port of this host send the cookie, and requests for scripts have no Origin.
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return status_code, headers, chunk


def _log(handler: RequestHandler) -> None:
    """Logs as tornado does, without the query, which may hold the token."""
    request, status = handler.request, handler.get_status()
    log = access_log.info if status < 500 else access_log.error
    log("%d %s %s (%s)", status, request.method, request.path, request.remote_ip)


def _keep_quiet() -> None:
    """Silences messages about disconnected browsers and about requests from strangers.

    Dask, if imported, does the same.
    """
    silence(EMPTY_LAYOUT)  # a page whose job has not answered yet has no views
    for name, level in (
        ("bokeh", logging.ERROR),
        ("tornado", logging.CRITICAL),
        (app_log.name, logging.ERROR),
    ):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:  # nobody requested more
            logger.setLevel(level)


def _on_lost_task(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Reports an exception that nothing awaited, unless it only says that a browser has disconnected."""
    if not isinstance(context.get("exception"), WebSocketClosedError | StreamClosedError):
        loop.default_exception_handler(context)


def _bind(address: Address) -> socket.socket:
    host = "127.0.0.1" if address.host == "localhost" else address.host
    try:
        bound = socket.create_server(
            (host, address.port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        why = (
            "is in use: choose another one" if error.errno == errno.EADDRINUSE else f"cannot be used: {error}"
        )
        raise UnavailableError(f"port {address.port} of {address.host} {why}") from error
    bound.setblocking(False)
    return bound
