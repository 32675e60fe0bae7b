from workbench.distribute.coordinator.cluster_coordinator import ClusterCoordinator as ClusterCoordinator
from workbench.distribute.coordinator.per_worker import PerWorkerValues as PerWorkerValue
from workbench.distribute.coordinator.per_worker import PerWorkerValues as PerWorkerValues
from workbench.distribute.coordinator.remote_value import RemoteValue as RemoteValue
from workbench.distribute.coordinator.worker_resources import (
    experimental_get_current_worker_index as experimental_get_current_worker_index,
)
