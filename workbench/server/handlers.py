"""The REST interface, below `/workbench/api`. Every handler requires authentication and consults the authorizer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado.web import HTTPError, authenticated

from workbench.errors import (
    DataCorruption,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from workbench.runtime.deploy.registry import Registry
from workbench.server import layout_names
from workbench.server.channels import CHANNEL_OF
from workbench.server.client_socket import RESOURCE
from workbench.server.clusters import Clusters, describe
from workbench.server.recorded import steps_from
from workbench.server.worker_options import WorkerOptions, read
from workbench.ui.runs.recorded_runs import RecordedRuns

_MAX_BODY_BYTES: Final = 4096
_STATUS_OF: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFoundError, 404),
    (InvalidArgumentError, 400),
    (FailedPreconditionError, 409),
    (UnavailableError, 503),
    (DataCorruption, 422),
)

Method = TypeVar("Method", bound=Callable[..., Any])


def guarded(method: Method) -> Method:
    """Restricts a method to authenticated users that the authorizer admits; our errors become HTTP errors."""

    @wraps(method)
    async def answer(self: APIHandler, *args: Any) -> None:
        try:
            await method(self, *args)
        except tuple(kind for kind, _ in _STATUS_OF) as error:
            status = next(status for kind, status in _STATUS_OF if isinstance(error, kind))
            raise HTTPError(status, str(error)) from error

    guarded_answer: Method = authenticated(authorized(answer))  # type: ignore[assignment]
    return guarded_answer


class _Handler(APIHandler):
    auth_resource = RESOURCE

    def answer(self, body: Any, status: int = 200) -> None:
        """Sends JSON."""
        self.set_status(status)
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(body, allow_nan=False))

    def body(self) -> dict[str, Any]:
        """The request's body.

        Raises:
          HTTPError: if it is not a JSON object, or too long.
        """
        if len(self.request.body) > _MAX_BODY_BYTES:
            raise HTTPError(413, f"a body has at most {_MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise HTTPError(400, "the body is not JSON") from error
        if not isinstance(body, dict):
            raise HTTPError(400, "the body is not a JSON object")
        return body


class _ClusterHandler(_Handler):
    def initialize(self, clusters: Clusters) -> None:
        """Called by tornado."""
        self.clusters = clusters


class ClustersHandler(_ClusterHandler):
    """`/clusters`: all clusters."""

    @guarded
    async def get(self) -> None:
        """Lists clusters, newest first."""
        self.clusters.refresh()
        self.answer(self.clusters.describe())

    @guarded
    async def post(self) -> None:
        """Starts workers; the answer says what to connect to."""
        entry = await self.clusters.start(read(self.body()))
        self.answer(describe(self.clusters.find(entry.id)), 201)


class ClusterHandler(_ClusterHandler):
    """`/clusters/{id}`: one cluster."""

    @guarded
    async def get(self, id: str) -> None:
        """Describes the cluster."""
        self.answer(describe(self.clusters.find(id)))

    @guarded
    async def patch(self, id: str) -> None:
        """Changes the number of its workers, or its range: `{"replicas": 2, "maximum": 8}`."""
        body = self.body()
        confirmed = body.pop("confirmed", False) is True
        options = read(body)
        if options != WorkerOptions(options.replicas, options.maximum):
            raise HTTPError(
                400, "only the number of workers that run can change: start others for another kind"
            )
        await self.clusters.scale(id, options.replicas, options.maximum, confirmed=confirmed)
        self.answer(describe(self.clusters.find(id)))

    @guarded
    async def delete(self, id: str) -> None:
        """Stops the cluster; forgets it if it has already stopped."""
        await self.clusters.stop(id)
        self.set_status(204)
        self.finish()


class ViewsHandler(_Handler):
    """`/views`: the existing views."""

    @guarded
    async def get(self) -> None:
        """The WebSocket channel that each view draws."""
        self.answer(CHANNEL_OF)


class LayoutsHandler(_Handler):
    """`/layouts`: the names of the layouts saved in JupyterLab's settings."""

    def initialize(self, registry: Registry) -> None:
        """Called by tornado."""
        self.registry = registry

    @guarded
    async def put(self) -> None:
        """Replaces the names, which kernels read."""
        body = self.body()
        names = body.get("names")
        if set(body) != {"names"} or not isinstance(names, list):
            raise HTTPError(400, 'the body reads {"names": [<text>, …]}')
        try:
            layout_names.keep(names, self.registry)
        except OSError as error:
            raise UnavailableError(f"names of layouts cannot be kept: {error.strerror}") from error
        self.set_status(204)
        self.finish()


class RunsHandler(_Handler):
    """`/runs` and `/runs/{path}`: recorded runs below the server's root folder."""

    def initialize(self, runs: RecordedRuns) -> None:
        """Called by tornado."""
        self.runs = runs

    @guarded
    async def get(self, path: str = "") -> None:
        """Lists runs (`?compare=a&compare=b` compares two), or returns the views of one (`?step=3&step=9`)."""
        if path:
            steps = steps_from(self.get_query_arguments("step"))
            self.answer(await asyncio.to_thread(self.runs.replay, path, steps))
        else:
            compare = self.get_query_arguments("compare", strip=False)
            self.answer(await asyncio.to_thread(self.runs.all, compare))
