"""Collectives between replicas: in one process, between processes of a host, between hosts.

`wb.collectives` is this folder, and also what `workbench.ui.called` says: when called, the view of what ran in it.
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


_SEEN = ("LinkCost", "sweep", "what_if")
"""What people find here though it is made in a later layer, which is imported when one of them is first used."""


def _seen() -> Any:
    return importlib.import_module("workbench.ui.called").collectives


def __getattr__(name: str) -> Any:
    if name not in _SEEN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_seen(), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_SEEN])


class _CallableModule(ModuleType):
    """Importing a folder binds its name in the package, so the view of the same name can only be the folder itself."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _seen()(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:  # functions that name it travel to replicas
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallableModule
