"""The only part that knows Dask: clusters, the gang of their workers, steps, values, failures.

A name below is imported when it is first used: workers need few of these modules, and start sooner without the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster
    from workbench.runtime.connect_cluster import auto_connect, connect, current_cluster
    from workbench.runtime.driver.group import Group
    from workbench.runtime.driver.handle import Handle
    from workbench.runtime.driver.merge_call import PerRank
    from workbench.runtime.replica.env import ReplicaEnv, current_env
    from workbench.runtime.shipping.function_registry import Prepared

_EXPORTS = {
    "Cluster": "workbench.runtime.cluster",
    "Group": "workbench.runtime.driver.group",
    "Handle": "workbench.runtime.driver.handle",
    "PerRank": "workbench.runtime.driver.merge_call",
    "Prepared": "workbench.runtime.shipping.function_registry",
    "ReplicaEnv": "workbench.runtime.replica.env",
    "auto_connect": "workbench.runtime.connect_cluster",
    "connect": "workbench.runtime.connect_cluster",
    "current_cluster": "workbench.runtime.connect_cluster",
    "current_env": "workbench.runtime.replica.env",
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
