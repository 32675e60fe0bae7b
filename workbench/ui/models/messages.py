"""What views draw: which model is whose.

The files beside this one define the models, a file per subject; some classes of models come from below. From them
`python extension/models.py` generates `extension/src/models.ts`, so that Python and TypeScript agree. All values are
JSON-able: None where a number has no meaning, never NaN; tuples are lists there. Times are seconds or µs as their names
say, bandwidths GB/s.
"""

from __future__ import annotations

from typing import Final

from workbench.data.cost.flow import InputFlow
from workbench.data.service.overview import ServiceStatus
from workbench.distribute.servers.overview import ServersStatus
from workbench.ui.models.cluster import Devices, Topology
from workbench.ui.models.collectives import Collectives
from workbench.ui.models.inspected import Values
from workbench.ui.models.runs import Replay, Runs
from workbench.ui.models.sharding import ArraySharding, DatasetSharding

MODELS: Final[dict[str, type]] = {
    "topology": Topology,
    "values": Values,
    "array_sharding": ArraySharding,
    "dataset_sharding": DatasetSharding,
    "input": InputFlow,
    "data_service": ServiceStatus,
    "servers": ServersStatus,
    "overview": Collectives,
    "collectives": Collectives,
    "collective_table": Collectives,
    "lanes": Collectives,
    "sweep": Collectives,
    "heat_map": Collectives,
    "stuck": Collectives,
    "log": Collectives,
    "devices": Devices,
    "runs": Runs,
    "replay": Replay,
}
"""View -> the model that it draws."""
