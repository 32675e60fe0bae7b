"""Collectives between replicas: in one process, between processes of a host, between hosts.

`wb.collectives` is this folder, and when called the view of what ran in it: `workbench.ui.timings.collectives`.
`wb.collectives.sweep` and `wb.collectives.what_if` are measured and predicted there, too.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from workbench.collectives.bootstrap import Address, Bootstrap, Gpus
from workbench.collectives.communicator import Communicator
from workbench.collectives.options import (
    Algorithm,
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
    Options,
)
from workbench.collectives.position import Flight, Status
from workbench.collectives.topology import Member, Topology

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
    "Status",
    "Topology",
]


_SEEN = {
    "LinkCost": "workbench.telemetry.cost_model",
    "sweep": "workbench.ui.sweep",
    "what_if": "workbench.ui.what_if",
}
"""What people find here though it is made in a later layer: imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in _SEEN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_SEEN[name]), name)


class _CallableModule(ModuleType):
    """Importing a folder binds its name in the package, so the view of the same name can only be the folder itself."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return importlib.import_module("workbench.ui.timings").collectives(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
