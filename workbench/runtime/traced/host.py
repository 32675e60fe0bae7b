"""The interface through which traced programs use their host."""

from __future__ import annotations

from typing import Protocol

from workbench.runtime.comm.messages import JoinGroup, Message
from workbench.runtime.replica.executor import DeviceExecutor, Host
from workbench.telemetry.recording.ring import Ring


class SharedRings(Protocol):
    """The host's rings."""

    def shared(self, join: JoinGroup) -> Ring | None:
        """The ring for records about all replicas here, None if nothing is recorded."""


class TracingHost(Host, Protocol):
    """The host of a worker with TPUs.

    Attributes:
      executors: One per device.
      poisoned: Whether a program cannot be stopped, so that the process must end.
      worker: Its address.
    """

    executors: list[DeviceExecutor]
    poisoned: bool
    worker: str

    @property
    def rings(self) -> SharedRings:
        """The rings for the records of its replicas."""

    @property
    def closed(self) -> bool:
        """Whether the driver is gone."""

    def end_process(self) -> None:
        """Ends this worker's process, as a last resort."""

    def send_all(self, messages: list[Message]) -> None:
        """Sends several messages at once."""

    def to_devices(self, message: Message) -> None:
        """Puts a message into the queue of every device."""
