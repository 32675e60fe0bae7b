"""Groups whose processes are all this one: what they share is real, and the test reaches every end of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.communicators import Bootstrap, Topology
from workbench.communicators.core.replica_communicator import ReplicaCommunicator

Together = Callable[..., list[Any]]
"""The fixture `together`: runs functions at the same time; gives their results or exceptions."""


def connected(topology: Topology, run: Together, **how: Any) -> list[ReplicaCommunicator]:
    """The communicators of a topology, by rank; `how` is passed on to `Bootstrap`."""
    processes = dict.fromkeys(member.process for member in topology.members)
    bootstraps = {process: Bootstrap(topology, process, **how) for process in processes}
    addresses = {process: bootstrap.address for process, bootstrap in bootstraps.items()}
    parts = run(*(lambda b=b: b.connect(addresses, 20) for b in bootstraps.values()))
    for part in parts:
        if isinstance(part, BaseException):
            raise part
    return [communicator for part in parts for _, communicator in sorted(part.items())]
