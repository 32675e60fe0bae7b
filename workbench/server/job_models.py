"""What a job tells of a channel, where that can be looked at whenever somebody wants to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.runtime import Cluster
from workbench.telemetry.feed.sweeps import sweeps
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.cluster.cluster_model import DeviceHistory, topology_model
from workbench.ui.render.plain_values import plain

ASKING: Final = frozenset({"devices"})
"""Channels of which the model is not known without asking Dask's scheduler."""


def feed_frame(snapshot: Snapshot, status: str) -> dict[str, Any]:
    """What the views of the feed draw beside its snapshot; see `models.Collectives`."""
    return {"status": status, "silent": [], "sweeps": [plain(sweep) for sweep in sweeps(snapshot.table)]}


def looks(cluster: Cluster) -> dict[str, Callable[[], dict[str, Any]]]:
    """Channel -> its model now, for those that can be looked at whenever somebody wants to see them."""
    devices = DeviceHistory(cluster)
    return {
        "topology": lambda: plain(topology_model(cluster)),
        "devices": lambda: plain(devices.model()),
    }
