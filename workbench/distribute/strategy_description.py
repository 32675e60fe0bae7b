"""StrategyDescription: what of a strategy travels to the replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.backends.library import Library
from workbench.collectives.options import CommunicationOptions
from workbench.devices import Device

if TYPE_CHECKING:
    from workbench.distribute.cross_device_ops import CrossDeviceOps
    from workbench.distribute.strategy import Strategy


@dataclass(frozen=True, slots=True, eq=False)
class StrategyDescription:
    """A strategy without its cluster. Equal where the id is.

    Attributes:
      id: Unique among all strategies of all notebooks.
      kind: Its class.
      devices: One per replica.
      options: Default options of collectives, or None.
      library: What replica functions on CPUs compute with.
      cross_device_ops: How replicas combine, or None for the default.
    """

    id: str
    kind: type[Strategy]
    devices: tuple[Device, ...]
    options: CommunicationOptions | None
    cross_device_ops: CrossDeviceOps | None
    library: Library = "numpy"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrategyDescription) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)
