"""DeviceAssignment: the TPU cores of a strategy's replicas."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import runtime
from workbench.errors import FailedPreconditionError, InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Topology:
    """The TPU cores of a cluster as a grid of (host, chip position, core) (as tf.tpu.experimental.Topology).

    Attributes:
      mesh_shape: Cores in each direction: hosts, 1, 1, and the cores of a host.
    """

    mesh_shape: tuple[int, int, int, int]

    @classmethod
    def of_cluster(cls) -> Topology:
        """The topology of the connected cluster.

        Raises:
          FailedPreconditionError: if it has no TPU devices, or hosts with different numbers of them.
        """
        cluster = runtime.current_cluster()
        counts: dict[int, int] = {}
        for device in () if cluster is None else cluster.devices:
            if device.kind == "TPU":
                counts[device.task] = counts.get(device.task, 0) + 1
        if not counts or len(set(counts.values())) > 1:
            raise FailedPreconditionError(
                f"a topology needs hosts with equally many TPU devices, got {counts or 'none'}; connect with "
                f"wb.connect(tpu=8)"
            )
        return cls((len(counts), 1, 1, next(iter(counts.values()))))

    @property
    def num_tasks(self) -> int:
        """Number of hosts."""
        return self.mesh_shape[0]

    @property
    def num_tpus_per_task(self) -> int:
        """Cores of a host."""
        return self.mesh_shape[3]


class DeviceAssignment:
    """Maps replicas to TPU cores (as tf.tpu.experimental.DeviceAssignment); one core per replica.

    Args:
      topology: The available cores.
      core_assignment: Shape `(replicas, 1, 4)`: the coordinates of each replica's core in the topology.

    Raises:
      InvalidArgumentError: if coordinates are outside the topology, or a core is used twice.
    """

    def __init__(self, topology: Topology, core_assignment: Any) -> None:
        coordinates = np.asarray(core_assignment, np.int64)
        if coordinates.ndim != 3 or coordinates.shape[1:] != (1, 4) or not len(coordinates):
            raise InvalidArgumentError(
                f"core_assignment must have shape (replicas, 1, 4), one core per replica, got {coordinates.shape}"
            )
        outside = (coordinates < 0) | (coordinates >= np.asarray(topology.mesh_shape))
        if outside.any():
            replica = int(np.argwhere(outside)[0][0])
            raise InvalidArgumentError(
                f"replica {replica} is on core {coordinates[replica, 0].tolist()}, outside of the topology "
                f"{list(topology.mesh_shape)}"
            )
        if len({tuple(row[0]) for row in coordinates.tolist()}) < len(coordinates):
            raise InvalidArgumentError("core_assignment uses a core twice; each replica needs one of its own")
        self.topology = topology
        self.core_assignment = coordinates

    @classmethod
    def build(
        cls,
        topology: Topology | None = None,
        computation_shape: Sequence[int] | None = None,
        computation_stride: Sequence[int] | None = None,
        num_replicas: int = 1,
    ) -> DeviceAssignment:
        """Assigns the first `num_replicas` cores of a topology, host by host.

        Args:
          topology: The available cores; None for those of the connected cluster.
          computation_shape: Cores of one replica in each direction; only one core per replica is possible.
          computation_stride: Steps between the cores of neighbouring replicas in each direction.
          num_replicas: Number of replicas.

        Raises:
          InvalidArgumentError: if a replica would need several cores, or there are too few.
        """
        shape = [1, 1, 1, 1] if computation_shape is None else list(computation_shape)
        stride = [1, 1, 1, 1] if computation_stride is None else list(computation_stride)
        if shape != [1, 1, 1, 1]:
            raise InvalidArgumentError(
                f"computation_shape {shape}: a replica runs on one core, so it must be [1, 1, 1, 1]"
            )
        if len(stride) != 4 or any(step < 1 for step in stride):
            raise InvalidArgumentError(
                f"computation_stride must be four integers of at least 1, got {stride}"
            )
        found = topology or Topology.of_cluster()
        cores = list(
            itertools.product(*(range(0, n, step) for n, step in zip(found.mesh_shape, stride, strict=True)))
        )
        if not 1 <= num_replicas <= len(cores):
            raise InvalidArgumentError(
                f"num_replicas must be from 1 to {len(cores)}, the cores of the topology {list(found.mesh_shape)} with "
                f"stride {stride}; got {num_replicas}"
            )
        return cls(found, [[core] for core in cores[:num_replicas]])

    @property
    def num_replicas(self) -> int:
        """Number of replicas."""
        return len(self.core_assignment)

    @property
    def num_cores_per_replica(self) -> int:
        """Always 1."""
        return 1

    def coordinates(self, replica: int, logical_core: int = 0) -> tuple[int, ...]:
        """The coordinates of a replica's core in the topology."""
        return tuple(int(n) for n in self.core_assignment[replica, logical_core])

    def host_and_ordinal(self, replica: int) -> tuple[int, int]:
        """A replica's host, and its core's number there."""
        host, _, _, core = self.coordinates(replica)
        return host, core

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """The number of a replica's core on its host."""
        return self.coordinates(replica, logical_core)[3]

    def lookup_replicas(self, task_id: int, logical_core: int = 0) -> list[int]:
        """The replicas on one host."""
        return [r for r in range(self.num_replicas) if self.coordinates(r, logical_core)[0] == task_id]

    def __repr__(self) -> str:
        return f"DeviceAssignment({self.num_replicas} replicas, {self.core_assignment[:, 0].tolist()})"
