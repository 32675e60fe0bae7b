"""The data workers of this process, for consumers that read from those only (`target_workers="LOCAL"`)."""

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
    """A worker at this address, "host:port", runs in this process."""
    with _workers.lock:
        _workers.addresses.add(address)


def discard(address: str) -> None:
    """It does no more."""
    with _workers.lock:
        _workers.addresses.discard(address)


def addresses() -> list[str]:
    """Of all data workers in this process, whichever dispatcher they belong to."""
    with _workers.lock:
        return sorted(_workers.addresses)
