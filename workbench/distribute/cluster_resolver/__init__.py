"""`wb.distribute.cluster_resolver`: finds a cluster's tasks and their addresses in the environment."""

from workbench.distribute.cluster_resolver.compute_engine import GCEClusterResolver
from workbench.distribute.cluster_resolver.dask import DaskClusterResolver
from workbench.distribute.cluster_resolver.kubernetes import KubernetesClusterResolver
from workbench.distribute.cluster_resolver.resolver import ClusterResolver
from workbench.distribute.cluster_resolver.simple import SimpleClusterResolver
from workbench.distribute.cluster_resolver.slurm import SlurmClusterResolver
from workbench.distribute.cluster_resolver.slurm_lists import expand_hostlist, expand_tasks_per_node
from workbench.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from workbench.distribute.cluster_resolver.tpu import TPUClusterResolver
from workbench.distribute.cluster_resolver.union import UnionResolver

__all__ = [
    "ClusterResolver",
    "DaskClusterResolver",
    "GCEClusterResolver",
    "KubernetesClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
    "expand_hostlist",
    "expand_tasks_per_node",
]
