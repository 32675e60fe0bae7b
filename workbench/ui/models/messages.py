"""What views draw: which view has which model.

The other files in this folder define the models, one file per subject; some classes come from lower layers. From them,
`python extension/models.py` generates `extension/src/models.ts`, so that Python and TypeScript agree. All values are
JSON-able: None for a number without meaning, never NaN; tuples become lists. Times are in seconds or µs, as their names
say, and bandwidths in GB/s.
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
"""The model that each view draws."""
