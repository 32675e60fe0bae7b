"""The only part that knows Dask: clusters, the gang of their workers, steps, values, failures."""

from workbench.runtime.cluster import Cluster, auto_connect, connect, current_cluster
from workbench.runtime.env import ReplicaEnv, current_env
from workbench.runtime.group import Group
from workbench.runtime.handles import Handle
from workbench.runtime.merges import PerRank
from workbench.runtime.shipping import Prepared

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
