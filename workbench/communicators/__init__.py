"""Collectives between replicas: in one process, between processes of a host, between hosts."""

from workbench.communicators.bootstrap import Address, Bootstrap, Gpus
from workbench.communicators.communicator import Communicator
from workbench.communicators.core.options import (
    Algorithm,
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
    Options,
    Reduction,
)
from workbench.communicators.core.position import Flight, Status
from workbench.communicators.core.topology import Member, Topology

__all__ = [
    "Address",
    "Algorithm",
    "Bootstrap",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "Communicator",
    "Flight",
    "Gpus",
    "Member",
    "Options",
    "Reduction",
    "Status",
    "Topology",
]
