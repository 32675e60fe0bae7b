"""`wb.distribute`: strategies, the values and variables that they distribute, and the contexts that they run in."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "CollectiveHints": "workbench.communicators.core.options",
    "CommunicationImplementation": "workbench.communicators.core.options",
    "CommunicationOptions": "workbench.communicators.core.options",
    "CrossDeviceOps": "workbench.distribute.replica.cross_device_ops",
    "DefaultStrategy": "workbench.distribute.default",
    "DeviceAssignment": "workbench.distribute.strategies.device_assignment",
    "DistributedDataset": "workbench.distribute.input.distributed_dataset",
    "DistributedIterator": "workbench.distribute.input.distributed_dataset",
    "DistributedValues": "workbench.distribute.values.distributed_values",
    "HierarchicalCopyAllReduce": "workbench.distribute.replica.cross_device_ops",
    "InputContext": "workbench.data.context",
    "InputOptions": "workbench.data.context",
    "InputReplicationMode": "workbench.data.context",
    "MirroredStrategy": "workbench.distribute.strategies.mirrored",
    "Mirrored": "workbench.distribute.values.distributed_values",
    "MultiWorkerMirroredStrategy": "workbench.distribute.strategies.multi_worker",
    "NcclAllReduce": "workbench.distribute.replica.cross_device_ops",
    "OneDeviceStrategy": "workbench.distribute.strategies.one_device",
    "PerReplica": "workbench.distribute.values.distributed_values",
    "PerReplicaSpec": "workbench.distribute.values.distributed_values",
    "ReduceOp": "workbench.distribute.arrays.reduce_op",
    "ReductionToOneDevice": "workbench.distribute.replica.cross_device_ops",
    "ReplicaContext": "workbench.distribute.replica.replica_context",
    "RingAllReduce": "workbench.distribute.replica.cross_device_ops",
    "RunOptions": "workbench.distribute.value_context",
    "Strategy": "workbench.distribute.strategies.strategy",
    "StrategyExtended": "workbench.distribute.strategies.extended",
    "TPUStrategy": "workbench.distribute.strategies.tpu",
    "ValueContext": "workbench.distribute.value_context",
    "experimental_set_strategy": "workbench.distribute.contexts",
    "get_replica_context": "workbench.distribute.default",
    "get_strategy": "workbench.distribute.default",
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
