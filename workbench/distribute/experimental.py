"""`wb.distribute.experimental`: the names that the reference has there."""

from workbench.collectives.options import (
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)
from workbench.distribute.central_storage import CentralStorageStrategy
from workbench.distribute.device_assignment import DeviceAssignment
from workbench.distribute.multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from workbench.distribute.tpu import TPUStrategy
from workbench.distribute.value_context import ValueContext

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "DeviceAssignment",
    "MultiWorkerMirroredStrategy",
    "TPUStrategy",
    "ValueContext",
]
