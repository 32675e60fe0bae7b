from workbench.communicators.core.options import CollectiveHints as CollectiveHints
from workbench.communicators.core.options import CommunicationImplementation as CommunicationImplementation
from workbench.communicators.core.options import CommunicationOptions as CommunicationOptions
from workbench.data.context import InputContext as InputContext
from workbench.data.context import InputOptions as InputOptions
from workbench.data.context import InputReplicationMode as InputReplicationMode
from workbench.distribute import cluster_resolver as cluster_resolver
from workbench.distribute import coordinator as coordinator
from workbench.distribute import experimental as experimental
from workbench.distribute import partitioners as partitioners
from workbench.distribute import server_optimizers as server_optimizers
from workbench.distribute.arrays.reduce_op import ReduceOp as ReduceOp
from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec as ClusterSpec
from workbench.distribute.contexts import experimental_set_strategy as experimental_set_strategy
from workbench.distribute.contexts import has_strategy as has_strategy
from workbench.distribute.contexts import in_cross_replica_context as in_cross_replica_context
from workbench.distribute.default import DefaultStrategy as DefaultStrategy
from workbench.distribute.default import get_replica_context as get_replica_context
from workbench.distribute.default import get_strategy as get_strategy
from workbench.distribute.input.distributed_dataset import DistributedDataset as DistributedDataset
from workbench.distribute.input.distributed_dataset import DistributedIterator as DistributedIterator
from workbench.distribute.replica.cross_device_ops import CrossDeviceOps as CrossDeviceOps
from workbench.distribute.replica.cross_device_ops import (
    HierarchicalCopyAllReduce as HierarchicalCopyAllReduce,
)
from workbench.distribute.replica.cross_device_ops import NcclAllReduce as NcclAllReduce
from workbench.distribute.replica.cross_device_ops import ReductionToOneDevice as ReductionToOneDevice
from workbench.distribute.replica.cross_device_ops import RingAllReduce as RingAllReduce
from workbench.distribute.replica.replica_context import ReplicaContext as ReplicaContext
from workbench.distribute.servers.sharded_variable import ShardedVariable as ShardedVariable
from workbench.distribute.strategies.device_assignment import DeviceAssignment as DeviceAssignment
from workbench.distribute.strategies.extended import StrategyExtended as StrategyExtended
from workbench.distribute.strategies.mirrored import MirroredStrategy as MirroredStrategy
from workbench.distribute.strategies.multi_worker import (
    MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from workbench.distribute.strategies.one_device import OneDeviceStrategy as OneDeviceStrategy
from workbench.distribute.strategies.parameter_server import (
    ParameterServerStrategy as ParameterServerStrategy,
)
from workbench.distribute.strategies.strategy import Strategy as Strategy
from workbench.distribute.strategies.tpu import TPUStrategy as TPUStrategy
from workbench.distribute.value_context import RunOptions as RunOptions
from workbench.distribute.value_context import ValueContext as ValueContext
from workbench.distribute.values.distributed_values import DistributedValues as DistributedValues
from workbench.distribute.values.distributed_values import Mirrored as Mirrored
from workbench.distribute.values.distributed_values import PerReplica as PerReplica
from workbench.distribute.values.distributed_values import PerReplicaSpec as PerReplicaSpec
