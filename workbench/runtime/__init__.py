"""The only part that knows Dask: clusters, the gang of their workers, steps, values, failures.

A name below is imported when it is first used: workers need few of these modules, and start sooner without the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster
    from workbench.runtime.current import auto_connect, connect, current_cluster
    from workbench.runtime.env import ReplicaEnv, current_env
    from workbench.runtime.group import Group
    from workbench.runtime.handles import Handle
    from workbench.runtime.merges import PerRank
    from workbench.runtime.shipping import Prepared

_EXPORTS = {
    "Cluster": "workbench.runtime.cluster",
    "Group": "workbench.runtime.group",
    "Handle": "workbench.runtime.handles",
    "PerRank": "workbench.runtime.merges",
    "Prepared": "workbench.runtime.shipping",
    "ReplicaEnv": "workbench.runtime.env",
    "auto_connect": "workbench.runtime.current",
    "connect": "workbench.runtime.current",
    "current_cluster": "workbench.runtime.current",
    "current_env": "workbench.runtime.env",
}

__all__ = [
    "Cluster",
    "Group",
    "Handle",
    "PerRank",
    "Prepared",
    "ReplicaEnv",
    "auto_connect",
    "connect",
    "current_cluster",
    "current_env",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'workbench.runtime' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value  # the next use finds it at once
    return value
