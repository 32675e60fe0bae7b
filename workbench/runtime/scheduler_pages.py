"""Adds pages to those of Dask's scheduler, which tools such as dask-labextension list."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.http.scheduler.info import IndividualPlots
from tornado.web import HTTPError, RequestHandler, StaticFileHandler

from workbench.errors import FailedPreconditionError
from workbench.runtime.cluster import Cluster
from workbench.runtime.deploy.plugin import TELEMETRY_TOPIC

PLUGIN: Final = "workbench-pages"
_PREFIX: Final = "individual-workbench-"
"""Dask lists its single-plot pages, which it calls "individual-…"."""


class Site(Protocol):
    """The content of the pages; created on the scheduler.

    Attributes:
      pages: Last part of a page's path -> its HTML. Relative to itself, a page finds `model` at
        "workbench/model.json" and `files` at "workbench/…".
      files: Folder of the files that pages load.
    """

    pages: dict[str, str]
    files: Path

    def ingest(self, batch: bytes) -> None:
        """Processes a batch of telemetry."""
        ...

    def model(self) -> dict[str, Any]:
        """The current data for the pages, with its "version"."""
        ...


class SchedulerPages(SchedulerPlugin):
    """While it is registered, processes what workers publish and serves the pages of a site."""

    name = PLUGIN
    idempotent = True

    def __init__(self, make: Callable[[], Site]) -> None:
        self._make = make
        self.site: Site

    async def start(self, scheduler: Scheduler) -> None:
        """Called by Dask on the scheduler."""
        self.site = self._make()
        # tornado cannot remove routes; those of an earlier registration find this plugin by its name.
        if PLUGIN not in scheduler.extensions:
            scheduler.extensions[PLUGIN] = True
            scheduler.http_application.add_handlers(r".*$", _routes(scheduler, self.site.files))

    def log_event(self, topic: str, msg: Any) -> None:
        """Called by Dask on the scheduler for everything that workers publish."""
        if topic == TELEMETRY_TOPIC and isinstance(msg, bytes):
            self.site.ingest(msg)


def add(cluster: Cluster, make: Callable[[], Site]) -> None:
    """Adds the pages of a site to a cluster's scheduler.

    Args:
      cluster: The cluster; not an embedded one, which serves no pages.
      make: Creates the site; must be importable on the scheduler.

    Raises:
      FailedPreconditionError: if the scheduler serves no pages.
    """
    if cluster.closed or cluster.embedded or not cluster.client.dashboard_link:
        raise FailedPreconditionError(
            f"there are no Dask pages to add to: the scheduler of {cluster!r} serves none. Connect to a Dask cluster "
            f"that was started with its dashboard on"
        )
    cluster.client.register_plugin(SchedulerPages(make))


def remove(cluster: Cluster) -> None:
    """Undoes `add`."""
    cluster.client.unregister_scheduler_plugin(PLUGIN)


def _routes(scheduler: Scheduler, files: Path) -> list[tuple[str, type[RequestHandler], dict[str, Any]]]:
    prefix = _path_prefix(scheduler)
    own = {"scheduler": scheduler}
    return [
        (rf"{prefix}individual-plots\.json", _Plots, {"dask_server": scheduler}),
        (rf"{prefix}{_PREFIX}([a-z-]+)", _Page, own),
        (rf"{prefix}workbench/model\.json", _Model, own),
        (rf"{prefix}workbench/([a-z]+\.js)", StaticFileHandler, {"path": str(files)}),
    ]


def _path_prefix(scheduler: Scheduler) -> str:
    """The prefix of the scheduler's paths."""
    for rule in scheduler.http_application.wildcard_router.rules:
        pattern = getattr(rule.matcher, "regex", None)
        if pattern is not None and rule.target is IndividualPlots:
            return str(pattern.pattern).partition("individual-plots")[0]
    return "/"


def _site(scheduler: Scheduler) -> Site | None:
    plugin = scheduler.plugins.get(PLUGIN)
    return plugin.site if isinstance(plugin, SchedulerPages) else None


class _Plots(IndividualPlots):
    """Dask's list of pages, with workbench's added."""

    def write(self, chunk: Any) -> None:
        """Called by Dask's handler to write the page."""
        site = _site(self.server)
        if isinstance(chunk, dict) and site is not None:
            ours = {f"Individual Workbench {_title(name)}": f"/{_PREFIX}{name}" for name in site.pages}
            chunk = {**chunk, **ours}
        super().write(chunk)


class _SiteHandler(RequestHandler):
    def initialize(self, scheduler: Scheduler) -> None:
        """Called by tornado."""
        self.scheduler = scheduler

    def site(self) -> Site:
        """The site to show.

        Raises:
          HTTPError: if it was removed.
        """
        site = _site(self.scheduler)
        if site is None:
            raise HTTPError(404, "the pages of workbench were removed")
        self.set_header("Cache-Control", "no-store")
        return site


class _Page(_SiteHandler):
    def get(self, name: str) -> None:
        """Sends one page."""
        page = self.site().pages.get(name)
        if page is None:
            raise HTTPError(404)
        self.write(page)


class _Model(_SiteHandler):
    def get(self) -> None:
        """Sends the model, or nothing (204) if the client has this version."""
        model = self.site().model()
        if self.get_query_argument("version", "") == str(model["version"]):
            self.set_status(204)
        else:
            self.set_header("Content-Type", "application/json")
            self.write(json.dumps(model, allow_nan=False))


def _title(name: str) -> str:
    return name.replace("-", " ").title()
