"""Clusters announce themselves here, and the Jupyter server shows them: a registry, REST and one WebSocket per client.

    job or kernel                                   Jupyter server                               browser
    Announcement ── entry in the owner-only folder ──► Clusters ── REST /workbench/api ──────► left panel
         └─ Unix socket: summary, models, changes ───► JobLink ──► Session ── WebSocket ─────► panes
    wb.record ── files in folders named "runs" ──► WatchedRuns ──────┘

The job's side (announcing, publisher, summary, workers) imports nothing from Jupyter.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from workbench.server.extension import WorkbenchApp  # only a Jupyter server calls this

    return [{"module": "workbench.server.extension", "app": WorkbenchApp}]
