"""The data workers of this process, for consumers that read only from those (`target_workers="LOCAL"`)."""

from __future__ import annotations

import threading

from workbench import forks


class _LocalWorkers:
    """The addresses of this process's data workers. A forked child has none."""

    def __init__(self) -> None:
        self.addresses: set[str] = set()
        self.lock = forks.lock(threading.Lock())
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`."""
        self.addresses.clear()


_workers = _LocalWorkers()


def add(address: str) -> None:
    """Adds a worker of this process at this address, "host:port"."""
    with _workers.lock:
        _workers.addresses.add(address)


def discard(address: str) -> None:
    """Removes a worker."""
    with _workers.lock:
        _workers.addresses.discard(address)


def addresses() -> list[str]:
    """The addresses of all data workers in this process, of any dispatcher."""
    with _workers.lock:
        return sorted(_workers.addresses)
