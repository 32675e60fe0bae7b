"""The views, and which part of a cluster each of them draws."""

from __future__ import annotations

from typing import Final

FEED: Final = "collectives"
"""The channel that sends changes of a snapshot; the others send their whole model when it has changed."""

CHANNEL_OF: Final[dict[str, str]] = {
    "overview": FEED,
    "topology": "topology",
    "values": "values",
    "array_sharding": "array_sharding",
    "dataset_sharding": "dataset_sharding",
    "input": "input",
    "data_service": "data_service",
    "servers": "servers",
    "collective_table": FEED,
    "lanes": FEED,
    "sweep": FEED,
    "heat_map": FEED,
    "stuck": FEED,
    "log": FEED,
    "collectives": FEED,
    "devices": "devices",
}
"""The channel of each view. `runs` and `replay` do not belong to a cluster."""

SHOWN: Final = frozenset({"values", "array_sharding", "dataset_sharding", "input", "data_service", "servers"})
"""Views of what a user has requested in the notebook; the others are always available."""
CHANNELS: Final = frozenset(CHANNEL_OF.values())
RUNS: Final = ("", "runs")
"""The list of recorded runs, which belongs to no cluster. Watched and sent like a cluster's channel."""
