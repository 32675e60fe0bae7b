"""SlurmClusterResolver: the tasks of a job step of Slurm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from workbench.arguments import count as count_of
from workbench.arguments import flag, whole_number
from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, address_or_own
from workbench.distribute.cluster_resolver.slurm_lists import (
    MOST_TASKS,
    expand_hostlist,
    expand_tasks_per_node,
)
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.process import gpus

GPUS = "CUDA_VISIBLE_DEVICES"
DEALT = "WORKBENCH_SLURM_GPUS"
"""The variable with a resolver's value of CUDA_VISIBLE_DEVICES, "=", and the host's GPUs that it distributed."""

_MOST_GPUS = 4096  # a number such as 2**31 is a mistake, so no such list is built
_TASKS_PER_NODE = "SlurmClusterResolver: tasks_per_node"


class SlurmClusterResolver(ClusterResolver):
    """Assigns the tasks of `srun` to jobs (as tf.distribute.cluster_resolver.SlurmClusterResolver).

    Hosts and jobs are sorted by name as strings, n10 before n9. The tasks of a host have the ports from `port_base` on,
    and share its GPUs. The task of this process is known after `cluster_spec()`.

    Args:
      jobs: Number of tasks by job; all tasks are workers by default.
      port_base: The port of the first task of a host.
      gpus_per_node: How many GPUs of a host to use; by default all that CUDA_VISIBLE_DEVICES or the driver shows.
      gpus_per_task: GPUs of a task; by default those of the host, divided by its tasks.
      tasks_per_node: Number of tasks of each host, or numbers by host; by default Slurm's.
      auto_set_gpu: Whether `cluster_spec()` sets CUDA_VISIBLE_DEVICES to the GPUs of this task.
      rpc_layer: The beginning of addresses, such as "grpc".

    Raises:
      RuntimeError: outside a job step, or if numbers of tasks differ, or tasks need more GPUs than there are.
      TypeError: if `jobs` is not a dict, or `port_base` not a whole number.
      ValueError: if another number is negative, or not a whole number.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | Mapping[str, int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        auto_set_gpu = flag(auto_set_gpu, "SlurmClusterResolver: auto_set_gpu")
        if not (jobs is None or isinstance(jobs, Mapping)):
            raise TypeError(
                f"SlurmClusterResolver: jobs is a dict from job to number of tasks, got {jobs!r:.80}"
            )
        self._port_base = whole_number(port_base, "SlurmClusterResolver: port_base")
        rank = _number("PROCID", "the number of this task")
        count = _number("STEP_NUM_TASKS", "the number of tasks")
        counts = {"worker": count} if jobs is None else jobs
        self._jobs = {
            job: count_of(counts[job], f"SlurmClusterResolver: jobs[{job!r}]", 0) for job in sorted(counts)
        }
        if sum(self._jobs.values()) != count:
            raise FailedPreconditionError(
                f"jobs {self._jobs} have {sum(self._jobs.values())} tasks, Slurm started {count}: make them agree"
            )
        self._tasks = _tasks_by_host(tasks_per_node)
        if sum(self._tasks.values()) != count:
            raise FailedPreconditionError(
                f"hosts {self._tasks} have {sum(self._tasks.values())} tasks, Slurm started {count}"
            )
        self._rank = _rank_here(self._tasks, rank)
        if not 0 <= self._rank < count:
            raise FailedPreconditionError(
                f"SLURM_PROCID is {self._rank}, and tasks have numbers from 0 to {count - 1}"
            )
        most = max(self._tasks.values())
        wanted, per_task = _given("gpus_per_node", gpus_per_node), _given("gpus_per_task", gpus_per_task)
        self._gpus = _gpus_here(wanted or 0)
        available = len(self._gpus) if wanted is None else wanted
        self._gpus_per_task = available // most if per_task is None else per_task
        if most * self._gpus_per_task > available:
            raise FailedPreconditionError(
                f"{most} tasks of a host need {self._gpus_per_task} GPUs each, it has {available}: start fewer tasks "
                "per node, or set gpus_per_task"
            )
        self._auto_set_gpu = auto_set_gpu
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster. Records the task of this process, and assigns its GPUs unless `auto_set_gpu` is False.

        Returns:
          Addresses "host:port" by job.
        """
        places = _places(self._tasks)
        cluster: dict[str, list[str]] = {}
        rank = 0
        for job, count in self._jobs.items():
            cluster[job] = []
            for index in range(count):
                host, local = places[rank]
                cluster[job].append(f"{host}:{self._port_base + local}")
                if rank == self._rank:
                    self.task_type, self.task_id = job, index
                    self._take_gpus(local)
                rank += 1
        return ClusterSpec(cluster)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job of this process and its number there; both are None before `cluster_spec()`."""
        return self.task_type, self.task_id

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task, by default of this one, "" before `cluster_spec()`; see `ClusterResolver`."""
        return address_or_own(self, task_type, task_id, rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many GPUs a task has; see `ClusterResolver`."""
        return {"GPU": self._gpus_per_task}

    def _take_gpus(self, local: int) -> None:
        if self._auto_set_gpu and self._gpus_per_task:
            first = local * self._gpus_per_task
            own = ",".join(self._gpus[first : first + self._gpus_per_task])
            os.environ[GPUS] = own
            os.environ[DEALT] = f"{own}={','.join(self._gpus)}"


def _places(tasks_by_host: Mapping[str, int]) -> list[tuple[str, int]]:
    """The host of each task, and its number there, in the order of the resolver."""
    return [(host, local) for host, count in sorted(tasks_by_host.items()) for local in range(count)]


def _rank_here(tasks_by_host: Mapping[str, int], rank: int) -> int:
    """This task's number in the order of the resolver, derived from its host.

    Slurm sorts n9 before n10 and may distribute tasks round-robin. With Slurm's number, as in TensorFlow, a task could
    get another host's address. Slurm's number is used only if Slurm does not report the host.
    """
    here = os.environ.get("SLURMD_NODENAME", ""), os.environ.get("SLURM_LOCALID", "")
    places = {(host, str(local)): position for position, (host, local) in enumerate(_places(tasks_by_host))}
    return places.get(here, rank)


def _gpus_here(at_least: int) -> tuple[str, ...]:
    """The GPUs that this host's tasks share, as CUDA_VISIBLE_DEVICES lists them; numbers if it lists too few.

    Slurm sets the variable to the GPUs of the step. Another resolver may already have reduced it to this task's part,
    and processes that this task starts inherit that.
    """
    own, _, of_host = os.environ.get(DEALT, "").partition("=")
    if own and os.environ.get(GPUS) == own:
        found = tuple(of_host.split(","))
    else:
        named = gpus.named()
        found = gpus.visible() if named is None else named
    return found if len(found) >= at_least else tuple(map(str, range(at_least)))


def _tasks_by_host(tasks_per_node: int | Mapping[str, int] | None) -> dict[str, int]:
    if isinstance(tasks_per_node, Mapping):
        return {host: count_of(count, _TASKS_PER_NODE) for host, count in tasks_per_node.items()}
    hosts = expand_hostlist(_variable("STEP_NODELIST", "the hosts"))
    if tasks_per_node is not None:
        return dict.fromkeys(hosts, count_of(tasks_per_node, _TASKS_PER_NODE))
    counts = expand_tasks_per_node(_variable("STEP_TASKS_PER_NODE", "the number of tasks of each host"))
    if len(counts) != len(hosts):
        raise FailedPreconditionError(
            f"Slurm names {len(hosts)} hosts and numbers of tasks for {len(counts)}"
        )
    return dict(zip(hosts, counts, strict=True))


def _given(name: str, gpus: int | None) -> int | None:
    if gpus is None:
        return None
    number = count_of(gpus, f"SlurmClusterResolver: {name}", 0)
    if number > _MOST_GPUS:
        raise InvalidArgumentError(
            f"SlurmClusterResolver: {name} is {number}, and no host has more than {_MOST_GPUS:,} GPUs"
        )
    return number


def _number(name: str, what: str) -> int:
    value = _variable(name, what)
    try:
        number = int(value)
    except ValueError:
        number = -1
    if 0 <= number <= MOST_TASKS:
        return number
    raise FailedPreconditionError(
        f"SLURM_{name}, {what}, is a whole number from 0 to {MOST_TASKS:,}, got {value!r:.60}"
    )


def _variable(name: str, what: str) -> str:
    value = os.environ.get(f"SLURM_{name}")
    if value is None:
        raise FailedPreconditionError(
            f"SLURM_{name}, {what}, is not set: run this in a job step, such as srun python train.py"
        )
    return value
