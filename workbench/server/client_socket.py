"""`/workbench/api/socket`: the one WebSocket of each client."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from workbench.server.clusters import Clusters
from workbench.server.rates import Bucket
from workbench.server.session import Session
from workbench.server.watched_runs import WatchedRuns

RESOURCE: Final = "workbench"
"""The resource for authorizers."""
_MAX_MESSAGE_BYTES: Final = 16 * 1024
_MESSAGES_PER_SECOND: Final = 20.0
_BURST: Final = 60
_WRITE_SECONDS: Final = 30.0
_POLICY_VIOLATION: Final = 1008


class ClientSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Sends a client all clusters, and the views that it has open; see `session.Session` for the messages."""

    auth_resource = RESOURCE

    def initialize(self, clusters: Clusters, runs: WatchedRuns, clients: set[ClientSocket]) -> None:
        """Called by tornado; `clients` has all connected ones."""
        self._clusters = clusters
        self._runs = runs
        self._clients = clients
        self._session = Session(clusters, runs)
        self._bucket = Bucket(_MESSAGES_PER_SECOND, _BURST)
        self._news = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    @property
    def max_message_size(self) -> int:
        """A longer message closes the connection before it is read."""
        return _MAX_MESSAGE_BYTES

    def get_compression_options(self) -> dict[str, Any]:
        """Enables compression, because a change of the feed repeats much of the previous one."""
        return {}

    def skip_check_origin(self) -> bool:
        """Never skips the check: a page of another origin with a token in its address is still another origin."""
        return False

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Becomes a WebSocket."""
        user = self.current_user
        if not await ensure_async(self.authorizer.is_authorized(self, user, "read", RESOURCE)):
            raise HTTPError(403, "not authorized to read workbench")
        most = self._clusters.limits.pages
        if len(self._clients) >= most:
            raise HTTPError(503, f"{most} pages are connected already")
        self._clients.add(self)  # at once, so that connections opened together cannot exceed the limit
        try:
            await super().get(*args, **kwargs)
        except ValueError as error:  # an invalid Origin, such as "http://["
            raise HTTPError(403, "not a page of this server") from error
        finally:
            if self.ws_connection is None:
                self._clients.discard(self)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Starts sending."""
        super().open(*args, **kwargs)
        self._clusters.listen(self._news.set, self._session.wanted)
        self._news.set()
        self._writing = asyncio.ensure_future(self._write())

    def on_message(self, message: str | bytes) -> None:
        """Notes what the client has open."""
        if not self._bucket.take():
            self.close(_POLICY_VIOLATION, "too many messages")
            return
        try:
            self._session.take(message)
        except (ValueError, RecursionError):
            self.close(_POLICY_VIOLATION, "not a message of workbench")
            return
        if self._session.watches_runs:
            self._runs.listen(self._news.set)
        else:
            self._runs.unlisten(self._news.set)
        self._news.set()

    def on_close(self) -> None:
        """Stops sending."""
        self._clients.discard(self)
        self._clusters.unlisten(self._news.set)
        self._runs.unlisten(self._news.set)
        if self._writing is not None:
            self._writing.cancel()
        super().on_close()

    async def _write(self) -> None:
        """Sends pending changes after the client has received the last ones, within the rate limit."""
        try:
            while True:
                await self._news.wait()  # on_close cancels this task
                self._news.clear()
                for message in self._session.due():
                    await asyncio.wait_for(self.write_message(message), _WRITE_SECONDS)
                await asyncio.sleep(1 / self._clusters.limits.updates_per_second)
        except WebSocketClosedError:
            pass
        except TimeoutError:
            self.close(_POLICY_VIOLATION, "too slow")
