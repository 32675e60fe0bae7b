"""`wb.compat.v1.distribute`: strategies with the methods of TensorFlow 1.15 (as tf.compat.v1.distribute)."""

from workbench.compat.v1 import experimental
from workbench.compat.v1.strategies import MirroredStrategy, OneDeviceStrategy
from workbench.compat.v1.strategies import StrategyV1 as Strategy
from workbench.data.context import InputContext, InputReplicationMode
from workbench.distribute import cluster_resolver
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.contexts import (
    experimental_set_strategy,
    has_strategy,
    in_cross_replica_context,
)
from workbench.distribute.default import get_replica_context, get_strategy
from workbench.distribute.replica.cross_device_ops import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from workbench.distribute.replica.replica_context import ReplicaContext
from workbench.distribute.strategies.extended import StrategyExtended
from workbench.distribute.value_context import RunOptions

__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
