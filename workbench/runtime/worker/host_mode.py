"""How a host runs the steps of its replicas: each replica its own, or one program for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.runtime.comm.links import Link
from workbench.runtime.comm.messages import JoinGroup, Message
from workbench.runtime.replica.local_group import LocalGroup
from workbench.runtime.replica.replica_store import ReplicaStore


class HostMode(Protocol):
    """What a host leaves to its mode; `Eager` below, and `TracedExecutor` on workers with TPUs.

    Attributes:
      by_devices: Whether device threads do all the work, so that a single one may read the link itself.
    """

    by_devices: bool

    def take(self, message: Message) -> bool:
        """Carries out a message that concerns programs for all replicas. Whether nothing is left to do with it."""

    def handed_out(self, count: int) -> None:
        """So many more messages are in the queues of device threads."""

    def carried_out(self) -> None:
        """A device thread has carried out one of its messages. Any thread."""

    def before_reading(self, steps: Link) -> None:
        """Uses the time until the driver sends something."""

    def values_of(self, device: int) -> dict[tuple[int, int], Any]:
        """The components that a device has of values, empty at first."""

    def eager(self, values: list[Any]) -> list[Any]:
        """Values as arguments of a program that runs on one replica."""

    def held(self) -> int:
        """Number of values kept for all devices together."""

    def new_store(self) -> ReplicaStore:
        """What a replica keeps between steps, empty."""

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> Any:
        """First half of joining a group: what the driver tells this host's peers."""

    def connect(self, group_id: int, told: dict[str, Any]) -> dict[str, Any] | None:
        """Second half: the addresses out of what the peers told; None if no replica is here."""

    def joined(self, group: LocalGroup) -> None:
        """The group's replicas exist."""

    def leave(self, group_id: int) -> None:
        """Forgets a group."""


class Eager:
    """Every replica runs its steps by itself, on the thread of its device."""

    by_devices = True

    def take(self, message: Message) -> bool:
        """No message is for all replicas."""
        return False

    def handed_out(self, count: int) -> None:
        """Nobody waits for device threads."""

    def carried_out(self) -> None:
        """Nobody waits for device threads."""

    def before_reading(self, steps: Link) -> None:
        """Nothing else is to be done."""

    def values_of(self, device: int) -> dict[tuple[int, int], Any]:
        """A device has its own values only."""
        return {}

    def eager(self, values: list[Any]) -> list[Any]:
        """The values as they are."""
        return values

    def held(self) -> int:
        """All values are with devices."""
        return 0

    def new_store(self) -> ReplicaStore:
        """What a replica keeps between steps, empty."""
        return ReplicaStore()

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> Any:
        """This host's address."""
        return open_group()

    def connect(self, group_id: int, told: dict[str, Any]) -> dict[str, Any]:
        """What the peers told are their addresses."""
        return told

    def joined(self, group: LocalGroup) -> None:
        """Nothing is kept by group."""

    def leave(self, group_id: int) -> None:
        """Nothing is kept by group."""
