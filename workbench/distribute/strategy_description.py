"""StrategyDescription: the part of a strategy that is sent to the replicas, and the strategy that it becomes there."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from workbench import forks
from workbench.backends.library import Library
from workbench.communicators.core.options import CommunicationOptions
from workbench.device_names import Device

if TYPE_CHECKING:
    from workbench.distribute.replica.cross_device_ops import CrossDeviceOps
    from workbench.distribute.variables.aggregation import VariableSynchronization
    from workbench.runtime.replica.env import ReplicaEnv


class Describable(Protocol):
    """A strategy as its description knows it."""

    description: StrategyDescription

    @property
    def stands_for_another(self) -> bool:
        """Whether this is a replica's process, in which the notebook's strategy is not."""

    @classmethod
    def standing_for(cls, description: StrategyDescription) -> Self:
        """What `description` describes, for a process that has no replicas of it."""

    def describe_again(self, description: StrategyDescription) -> None:
        """Other replicas take part than before."""


# Strategies of this process by id, so that one that travels to a replica and back is the same object.
_known: weakref.WeakValueDictionary[str, Describable] = weakref.WeakValueDictionary()
# By id, the new description of strategies whose replicas have changed since the old one was sent.
_resized: dict[str, StrategyDescription] = {}
_lock = forks.lock(threading.Lock())  # replicas of one process must not create two objects for one strategy


@dataclass(frozen=True, slots=True, eq=False)
class StrategyDescription:
    """A strategy without its cluster. Equal where the id is.

    Attributes:
      id: Unique among all strategies of all notebooks.
      kind: Its class.
      devices: One per replica.
      placement_of: (strategy, synchronization of a variable) -> the `Placement` of its value; what is built on this is
        no type here.
      options: Default options of collectives, or None.
      library: What replica functions on CPUs compute with.
      cross_device_ops: How replicas combine, or None for the default.
      parameter_device: The one device that variables live on, or None where each replica has its own.
      holder: The replica that keeps them for the others, or None where each replica keeps its own.
    """

    id: str
    kind: type[Describable]
    devices: tuple[Device, ...]
    placement_of: Callable[[Any, VariableSynchronization], Any]
    options: CommunicationOptions | None
    cross_device_ops: CrossDeviceOps | None
    library: Library = "numpy"
    parameter_device: Device | None = None
    holder: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrategyDescription) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def remember(strategy: Describable) -> None:
    """From now on, `strategy` is what its description stands for in this process."""
    _known[strategy.description.id] = strategy


def strategy_of(description: StrategyDescription) -> Describable:
    """The strategy that `description` describes: the object that this process knows, or one that stands for it."""
    with _lock:
        known = _known.get(description.id)
        return (
            description.kind.standing_for(_resized.get(description.id, description))
            if known is None
            else known
        )


def redescribe(env: ReplicaEnv, description: StrategyDescription) -> None:
    """On a replica: other replicas take part in a strategy from now on."""
    with _lock:
        _resized[description.id] = description
        known = _known.get(description.id)
        if known is not None and known.stands_for_another:
            known.describe_again(description)
