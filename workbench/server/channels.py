"""Which views there are, and what of a cluster each of them draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.runtime import Cluster
from workbench.telemetry.snapshot import Snapshot

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
"""View -> channel; `runs` is none of a cluster."""

CHANNELS: Final = frozenset(CHANNEL_OF.values())

Look = Callable[[Cluster, Snapshot], dict[str, Any]]


def feed_frame(cluster: Cluster, snapshot: Snapshot) -> dict[str, Any]:
    """What the views of the feed draw beside its snapshot."""
    return {"status": cluster.status, "silent": []}


LOOKS: Final[dict[str, Look]] = {}
"""Channel -> its model, for those that can be looked at whenever somebody wants to see them."""
