"""Input pipelines: `Dataset` with its sources and stages, sharding, and the split of batches among replicas.

A pipeline is a description (a source and a tuple of frozen stages) that travels to the hosts which read it.
Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "AUTOTUNE": "dataset",
    "AutoShardPolicy": "options",
    "Dataset": "dataset",
    "DatasetIterator": "iterator",
    "DatasetSpec": "spec",
    "FixedLengthRecordDataset": "readers",
    "HostPipeline": "sharding.distributed",
    "INFINITE_CARDINALITY": "spec",
    "InputContext": "context",
    "InputOptions": "context",
    "InputReplicationMode": "context",
    "Iterator": "iterator",
    "Optional": "iterator",
    "Options": "options",
    "SHARD_HINT": "stages.select",
    "Shape": "sharding.model",
    "StatsOptions": "options",
    "TensorSpec": "spec",
    "TFRecordDataset": "readers",
    "TextLineDataset": "readers",
    "ThreadingOptions": "options",
    "UNKNOWN_CARDINALITY": "spec",
    "auto_shard": "sharding.autoshard",
    "batch_sizes_for_worker": "rebatch",
    "compute_batch_size": "rebatch",
    "distribute_for_host": "sharding.distributed",
    "distribute_function_for_host": "sharding.distributed",
    "explain_sharding": "sharding.explain",
    "set_seed": "seeds",
}
_MODULES = ("experimental",)
__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    source = "DatasetIterator" if name == "Iterator" else name
    value = getattr(importlib.import_module(f"{__name__}.{home}"), source)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
