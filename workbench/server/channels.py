"""Which views there are, and what of a cluster each of them draws."""

from __future__ import annotations

from typing import Final

FEED: Final = "collectives"
"""The channel that travels as changes of a snapshot; the others travel whole, when they have changed."""

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
"""View -> channel; `runs` and `replay` are none of a cluster."""

SHOWN: Final = frozenset({"values", "array_sharding", "dataset_sharding", "input", "data_service", "servers"})
"""Views of what a person has asked for in the notebook; the others can be looked at whenever somebody wants to."""
CHANNELS: Final = frozenset(CHANNEL_OF.values())
RUNS: Final = ("", "runs")
"""Watched like a channel of a cluster, and told of like one: the list of recorded runs, which no cluster has."""
