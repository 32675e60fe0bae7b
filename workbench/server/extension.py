"""Puts the handlers into a Jupyter server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import url_path_join

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
from workbench.server.recorded import RunsBelow
from workbench.server.watched_runs import WatchedRuns
from workbench.ui.runs.recorded_runs import RecordedRuns

ROOT: Final = "/workbench/api"


class WorkbenchApp(ExtensionApp):
    """The extension as Jupyter sees it.

    Attributes:
      clusters: What it shows.
      runs: Likewise.
    """

    name = "workbench"
    description = "Clusters of workbench: a registry, REST and a WebSocket for the panes of JupyterLab."
    open_browser = False

    def initialize_handlers(self) -> None:
        """Called by Jupyter when the server is configured."""
        registry = Registry()
        self.clusters = Clusters(registry)
        assert self.serverapp is not None
        self.runs = WatchedRuns(RecordedRuns(RunsBelow(Path(self.serverapp.root_dir))))
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
