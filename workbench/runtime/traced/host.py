"""What traced programs use of the host that runs them."""

from __future__ import annotations

from typing import Protocol

from workbench.runtime.comm.messages import JoinGroup, Message
from workbench.runtime.replica.executor import DeviceExecutor, Host
from workbench.telemetry.recording.ring import Ring


class SharedRings(Protocol):
    """Rings of the host."""

    def shared(self, join: JoinGroup) -> Ring | None:
        """The ring for records that hold of all replicas here, None if nothing is recorded."""


class TracingHost(Host, Protocol):
    """The host of a worker with TPUs.

    Attributes:
      executors: One per device.
      poisoned: A program cannot be stopped, so the process must end.
      worker: Its address.
    """

    executors: list[DeviceExecutor]
    poisoned: bool
    worker: str

    @property
    def rings(self) -> SharedRings:
        """Where what its replicas record is written."""

    @property
    def closed(self) -> bool:
        """Whether the driver is gone."""

    def end_process(self) -> None:
        """Ends this worker's process, where nothing less helps."""

    def send_all(self, messages: list[Message]) -> None:
        """Sends several messages at once."""

    def to_devices(self, message: Message) -> None:
        """Puts a message into the queue of every device."""
