"""Adds the handlers to a Jupyter server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import url_path_join
from traitlets import Float, Int

from workbench.runtime.deploy.registry import Registry
from workbench.server.client_socket import ClientSocket
from workbench.server.clusters import Clusters
from workbench.server.guide import Guide, GuideHandler
from workbench.server.handlers import (
    ClusterHandler,
    ClustersHandler,
    LayoutsHandler,
    RunsHandler,
    ViewsHandler,
)
from workbench.server.limits import USUAL, Limits
from workbench.server.recorded import RunsBelow
from workbench.server.watched_runs import WatchedRuns
from workbench.ui.runs.recorded_runs import RecordedRuns

ROOT: Final = "/workbench/api"


class WorkbenchApp(ExtensionApp):
    """The Jupyter extension.

    Attributes:
      clusters: The clusters that it shows.
      runs: The recorded runs that it shows.
    """

    name = "workbench"
    description = "Clusters of workbench: a registry, REST and a WebSocket for the panes of JupyterLab."
    open_browser = False

    max_clusters = Int(
        USUAL.clusters, min=0, help="how many clusters from the panel may run at the same time"
    ).tag(config=True)
    max_replicas = Int(
        USUAL.replicas,
        min=1,
        max=USUAL.replicas,
        help="the largest number of workers of each of these clusters",
    ).tag(config=True)
    idle_minutes = Float(
        USUAL.idle_minutes,
        min=0.0,
        help="after how many minutes without a notebook the server stops their workers; 0 for never",
    ).tag(config=True)
    start_seconds = Float(USUAL.start_seconds, min=1.0, help="how long workers may take to start").tag(
        config=True
    )
    ended_clusters = Int(USUAL.ended_clusters, min=0, help="how many ended clusters the panel lists").tag(
        config=True
    )
    max_pages = Int(USUAL.pages, min=1, help="how many browser pages may be connected at the same time").tag(
        config=True
    )
    updates_per_second = Float(
        USUAL.updates_per_second,
        min=0.1,
        max=10.0,
        help="the most often that the server sends news to a page",
    ).tag(config=True)
    max_run_bytes = Int(
        USUAL.run_bytes,
        min=0,
        help="the largest recorded run, in bytes, that panes open; the panel only lists larger ones",
    ).tag(config=True)

    @property
    def limits(self) -> Limits:
        """What the configuration allows."""
        return Limits(
            clusters=self.max_clusters,
            replicas=self.max_replicas,
            idle_minutes=self.idle_minutes,
            start_seconds=self.start_seconds,
            ended_clusters=self.ended_clusters,
            pages=self.max_pages,
            updates_per_second=self.updates_per_second,
            run_bytes=self.max_run_bytes,
        )

    def initialize_handlers(self) -> None:
        """Called by Jupyter when the server is configured."""
        registry = Registry()
        limits = self.limits
        self.clusters = Clusters(registry, limits)
        assert self.serverapp is not None
        folder = RunsBelow(Path(self.serverapp.root_dir), limits.run_bytes)
        self.runs = WatchedRuns(RecordedRuns(folder))
        found = handlers(self.clusters, registry, self.runs)
        self.handlers.extend(
            (url_path_join(ROOT, path), handler, arguments) for path, handler, arguments in found
        )

    async def stop_extension(self) -> None:
        """Called by Jupyter when the server ends."""
        await self.runs.close()
        await self.clusters.close()


def handlers(
    clusters: Clusters, registry: Registry, runs: WatchedRuns
) -> list[tuple[str, type, dict[str, Any]]]:
    """Path below `ROOT`, handler and its arguments."""
    return [
        (r"clusters", ClustersHandler, {"clusters": clusters}),
        (r"clusters/([0-9a-f]{8})", ClusterHandler, {"clusters": clusters}),
        (r"views", ViewsHandler, {}),
        (r"layouts", LayoutsHandler, {"registry": registry}),
        (r"runs", RunsHandler, {"runs": runs.runs}),
        (r"runs/(.+)", RunsHandler, {"runs": runs.runs}),
        (r"guide/(.*)", GuideHandler, {"guide": Guide()}),
        (r"socket", ClientSocket, {"clusters": clusters, "runs": runs, "clients": set()}),
    ]
