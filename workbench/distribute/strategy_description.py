"""StrategyDescription: the part of a strategy that is sent to the replicas, and the stand-in made from it there."""

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
    """A strategy from the point of view of its description."""

    description: StrategyDescription

    @property
    def stands_for_another(self) -> bool:
        """Whether this object only stands for the notebook's strategy, in a replica's process."""

    @classmethod
    def standing_for(cls, description: StrategyDescription) -> Self:
        """A stand-in for the described strategy, for a process without its replicas."""

    def describe_again(self, description: StrategyDescription) -> None:
        """Updates the description after the set of replicas has changed."""


# Strategies of this process by id, so that a strategy that travels to a replica and back is the same object.
_known: weakref.WeakValueDictionary[str, Describable] = weakref.WeakValueDictionary()
# By id, the new descriptions of strategies whose replicas have changed since the old ones were sent.
_resized: dict[str, StrategyDescription] = {}
_lock = forks.lock(threading.Lock())  # replicas of one process must not create two objects for one strategy


@dataclass(frozen=True, slots=True, eq=False)
class StrategyDescription:
    """A strategy without its cluster. Descriptions with the same id are equal.

    Attributes:
      id: Unique among all strategies of all notebooks.
      kind: Its class.
      devices: One per replica.
      placement_of: (strategy, synchronization of a variable) -> the `Placement` of its value; untyped, because that
        class is built on this one.
      options: Default options of collectives, or None.
      library: The array library of replica functions on CPUs.
      cross_device_ops: How replicas combine values, or None for the default.
      parameter_device: The only device with variables, or None if each replica has its own.
      holder: The replica that keeps variables for the others, or None if each replica keeps its own.
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
    """Makes `strategy` the object for its description in this process."""
    _known[strategy.description.id] = strategy


def strategy_of(description: StrategyDescription) -> Describable:
    """The described strategy: the object that this process knows, or a stand-in."""
    with _lock:
        known = _known.get(description.id)
        return (
            description.kind.standing_for(_resized.get(description.id, description))
            if known is None
            else known
        )


def redescribe(env: ReplicaEnv, description: StrategyDescription) -> None:
    """On a replica, updates the description after a strategy's set of replicas has changed."""
    with _lock:
        _resized[description.id] = description
        known = _known.get(description.id)
        if known is not None and known.stands_for_another:
            known.describe_again(description)
