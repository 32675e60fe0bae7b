"""This process's dispatchers, for views, which are notified of each one and can query it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from workbench.data.service.address import Address
from workbench.data.service.dispatch.coordinator import Coordinator
from workbench.data.service.overview import ServiceStatus
from workbench.data.service.server import Session

listeners: Final[list[Callable[[Watched], object]]] = []
"""Each is called with every dispatcher that starts in this process, and must return at once."""


class Watched:
    """The state of a dispatcher in this process, without network requests. It does not keep the server alive."""

    def __init__(self, coordinator: Coordinator, address: Address) -> None:
        """Watches the dispatcher at `address`."""
        self._coordinator = coordinator
        self._address = address

    def now(self) -> ServiceStatus:
        """The present jobs and workers; after its end, the final state of the jobs."""
        fields, _ = self._coordinator.answer("status", {}, b"", Session())
        return ServiceStatus.of(str(self._address), fields, "stopped" if self.ended else "live")

    @property
    def ended(self) -> bool:
        """Whether the dispatcher was stopped."""
        return self._coordinator.stopped


def tell(watched: Watched) -> None:
    """Notifies listeners of a dispatcher that has started."""
    for listener in tuple(listeners):
        listener(watched)
