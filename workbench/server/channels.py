"""Which views there are, and what of a cluster each of them draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.runtime import Cluster
from workbench.telemetry.snapshot import Snapshot
from workbench.telemetry.sweeps import sweeps
from workbench.ui.cluster_model import DeviceHistory, topology_model
from workbench.ui.models import plain

FEED: Final = "collectives"
"""The channel that travels as changes of a snapshot; the others travel whole, when they have changed."""

CHANNEL_OF: Final[dict[str, str]] = {
    "topology": "topology",
    "values": "values",
    "array_sharding": "array_sharding",
    "dataset_sharding": "dataset_sharding",
    "collective_table": FEED,
    "lanes": FEED,
    "sweep": FEED,
    "heat_map": FEED,
    "stuck": FEED,
    "log": FEED,
    "collectives": FEED,
    "devices": "devices",
}
"""View -> channel; `runs` and `replay` are none of a cluster."""

SHOWN: Final = frozenset({"values", "array_sharding", "dataset_sharding"})
"""Views of what a person has asked for in the notebook; the others can be looked at whenever somebody wants to."""
CHANNELS: Final = frozenset(CHANNEL_OF.values())


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
