"""How a host runs the steps of its replicas: each replica separately, or one program for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.runtime.comm.links import Link
from workbench.runtime.comm.messages import JoinGroup, Message
from workbench.runtime.replica.local_group import LocalGroup
from workbench.runtime.replica.replica_store import ReplicaStore


class HostMode(Protocol):
    """The part of a host that depends on its mode: `Eager` below, or `TracedExecutor` on workers with TPUs.

    Attributes:
      by_devices: Whether device threads do all the work, so that a single one may itself read the link.
    """

    by_devices: bool

    def take(self, message: Message) -> bool:
        """Executes a message that concerns programs for all replicas. Whether the message is then done."""

    def handed_out(self, count: int) -> None:
        """Counts new messages in the queues of device threads."""

    def carried_out(self) -> None:
        """Notes that a device thread has executed one of its messages. Any thread."""

    def before_reading(self, steps: Link) -> None:
        """Uses the time until the driver sends something."""

    def values_of(self, device: int) -> dict[tuple[int, int], Any]:
        """The mapping for a device's components of values, empty at first."""

    def eager(self, values: list[Any]) -> list[Any]:
        """Converts values to arguments of a program that runs on one replica."""

    def held(self) -> int:
        """Number of values that are kept once for all devices."""

    def new_store(self) -> ReplicaStore:
        """An empty store for a replica."""

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> Any:
        """First half of joining a group: returns what the driver sends to this host's peers."""

    def connect(self, group_id: int, told: dict[str, Any]) -> dict[str, Any] | None:
        """Second half: returns the addresses that the peers sent, or None without replicas here."""

    def joined(self, group: LocalGroup) -> None:
        """Called when the group's replicas exist."""

    def leave(self, group_id: int) -> None:
        """Drops a group."""


class Eager:
    """Every replica runs its steps separately, on the thread of its device."""

    by_devices = True

    def take(self, message: Message) -> bool:
        """Returns False, because no message is for all replicas."""
        return False

    def handed_out(self, count: int) -> None:
        """Does nothing, because nothing waits for device threads."""

    def carried_out(self) -> None:
        """Does nothing, because nothing waits for device threads."""

    def before_reading(self, steps: Link) -> None:
        """Does nothing, because there is no other work."""

    def values_of(self, device: int) -> dict[tuple[int, int], Any]:
        """A new dict, because a device has only its own values."""
        return {}

    def eager(self, values: list[Any]) -> list[Any]:
        """Returns the values unchanged."""
        return values

    def held(self) -> int:
        """Always 0, because the devices keep all values."""
        return 0

    def new_store(self) -> ReplicaStore:
        """An empty store for a replica."""
        return ReplicaStore()

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> Any:
        """Returns this host's address."""
        return open_group()

    def connect(self, group_id: int, told: dict[str, Any]) -> dict[str, Any]:
        """Returns what the peers sent, which are their addresses."""
        return told

    def joined(self, group: LocalGroup) -> None:
        """Does nothing, because nothing is kept by group."""

    def leave(self, group_id: int) -> None:
        """Does nothing, because nothing is kept by group."""
