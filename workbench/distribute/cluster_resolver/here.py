"""Finds the resolver for the cluster in which this process was started, and the process's task."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from workbench.distribute.cluster_resolver.kubernetes import KubernetesClusterResolver
from workbench.distribute.cluster_resolver.resolver import ClusterResolver
from workbench.distribute.cluster_resolver.slurm import SlurmClusterResolver
from workbench.distribute.cluster_resolver.tf_config import VARIABLE, TFConfigClusterResolver
from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.tasks import Task
from workbench.runtime.joining.addresses import host_and_port, ip_of, is_here
from workbench.runtime.joining.roster import tasks_of


def resolver_here(
    jobs: Mapping[str, int] | None = None, pods: Mapping[str, Sequence[str]] | None = None
) -> ClusterResolver | None:
    """The resolver of this process's environment: TF_CONFIG, else Slurm's step, else Kubernetes; None outside of all.

    Args:
      jobs: Number of tasks by job, for Slurm; all are workers by default.
      pods: Label selectors by job, for Kubernetes; without them, its resolver is not used.
    """
    if os.environ.get(VARIABLE):
        return TFConfigClusterResolver()
    if "SLURM_STEP_NODELIST" in os.environ:
        return SlurmClusterResolver(jobs)
    if pods:
        return KubernetesClusterResolver(pods)
    return None


def task_here(resolver: ClusterResolver) -> Task:
    """The task of this process: according to the resolver, else the one with an address of this machine.

    Raises:
      InvalidArgumentError: if no task, or more than one, has an address of this machine.
    """
    spec = resolver.cluster_spec()  # first, because Slurm's resolver knows the task only afterwards
    if resolver.task_type is not None and resolver.task_id is not None:
        return Task(resolver.task_type, resolver.task_id)
    hosts = {task: host_and_port(spec.task_address(task.job, task.index))[0] for task in tasks_of(spec)}
    found = [task for task, host in hosts.items() if is_here(ip_of(host))]
    if len(found) != 1:
        raise InvalidArgumentError(
            f"the address does not tell which task this is: {len(found)} of {spec.as_dict()} are this machine's; "
            f'name it in TF_CONFIG, as in "task": {{"type": "worker", "index": 0}}'
        )
    return found[0]
