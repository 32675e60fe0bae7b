"""`wb.distribute.experimental`: the names that TensorFlow has there."""

from workbench.communicators.core.options import (
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)
from workbench.distribute import coordinator, partitioners
from workbench.distribute.strategies.central_storage import CentralStorageStrategy
from workbench.distribute.strategies.device_assignment import DeviceAssignment
from workbench.distribute.strategies.multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from workbench.distribute.strategies.parameter_server import ParameterServerStrategy
from workbench.distribute.strategies.tpu import TPUStrategy
from workbench.distribute.value_context import ValueContext

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "DeviceAssignment",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "ValueContext",
    "coordinator",
    "partitioners",
]
