"""`wb.distribute`: strategies, the values and variables that they distribute, and the contexts that they run in."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "CollectiveHints": "workbench.collectives.options",
    "CommunicationImplementation": "workbench.collectives.options",
    "CommunicationOptions": "workbench.collectives.options",
    "CrossDeviceOps": "workbench.distribute.cross_device_ops",
    "DefaultStrategy": "workbench.distribute.default",
    "DeviceAssignment": "workbench.distribute.device_assignment",
    "DistributedDataset": "workbench.distribute.input",
    "DistributedIterator": "workbench.distribute.input",
    "DistributedValues": "workbench.distribute.values",
    "HierarchicalCopyAllReduce": "workbench.distribute.cross_device_ops",
    "InputContext": "workbench.data.context",
    "InputOptions": "workbench.data.context",
    "InputReplicationMode": "workbench.data.context",
    "MirroredStrategy": "workbench.distribute.mirrored",
    "Mirrored": "workbench.distribute.values",
    "MultiWorkerMirroredStrategy": "workbench.distribute.multi_worker",
    "NcclAllReduce": "workbench.distribute.cross_device_ops",
    "OneDeviceStrategy": "workbench.distribute.one_device",
    "PerReplica": "workbench.distribute.values",
    "PerReplicaSpec": "workbench.distribute.values",
    "ReduceOp": "workbench.distribute.reduce_op",
    "ReductionToOneDevice": "workbench.distribute.cross_device_ops",
    "ReplicaContext": "workbench.distribute.replica_context",
    "RingAllReduce": "workbench.distribute.cross_device_ops",
    "RunOptions": "workbench.distribute.value_context",
    "Strategy": "workbench.distribute.strategy",
    "StrategyExtended": "workbench.distribute.extended",
    "TPUStrategy": "workbench.distribute.tpu",
    "ValueContext": "workbench.distribute.value_context",
    "experimental_set_strategy": "workbench.distribute.contexts",
    "get_replica_context": "workbench.distribute.contexts",
    "get_strategy": "workbench.distribute.contexts",
    "has_strategy": "workbench.distribute.contexts",
    "in_cross_replica_context": "workbench.distribute.contexts",
}
_MODULES = frozenset({"experimental"})

__all__ = [*sorted(_EXPORTS), *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"workbench.distribute.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'workbench.distribute' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value  # the next use finds it at once
    return value


def __dir__() -> list[str]:
    return list(__all__)
