"""What a dataset function learns about its pipeline, and how its datasets are replicated."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from workbench.arguments import count, flag, optional_flag, whole_number
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class InputContext:
    """The position of an input pipeline among all of them.

    Attributes:
      num_input_pipelines: Number of pipelines: hosts, or replicas with `PER_REPLICA`.
      input_pipeline_id: Which one this is, from 0.
      num_replicas_in_sync: Number of replicas that take part in a step.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def __str__(self) -> str:
        place = f"input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines}"
        return f"wb.distribute.InputContext({place})"

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of a global batch that one replica gets.

        Raises:
          ValueError: if the batch cannot be divided evenly.
        """
        rows = whole_number(global_batch_size, "global_batch_size")
        size, rest = divmod(rows, self.num_replicas_in_sync)
        if rest:
            raise InvalidArgumentError(
                f"global batch {global_batch_size} is not divisible by {self.num_replicas_in_sync} replicas; "
                f"use {rows - rest} or {rows - rest + self.num_replicas_in_sync}"
            )
        return size


class InputReplicationMode(enum.Enum):
    """Whether a dataset function is called once per host, or once per replica."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How a distributed dataset reaches its replicas (as tf.distribute.InputOptions, with its names of all releases).

    Attributes:
      experimental_fetch_to_device: Whether to prepare batches in the device's memory; None for the default, True.
        Without effect: batches stay in the host's memory until the replica's function is called; then they are on its
        device.
      experimental_replication_mode: Pipelines per host or per replica; the latter only for datasets from functions.
      experimental_place_dataset_on_device: Whether the pipeline itself runs on the device; only with `PER_REPLICA`.
      experimental_per_replica_buffer_size: Batches to prepare ahead for a replica. Without effect: batches are fetched
        in chunks that follow the pace of the loop.
      experimental_prefetch_to_device: The earlier name of `experimental_fetch_to_device`.
      input_process: Whether a separate process reads for the replicas of a host, so that functions of stages take no
        time from replicas. None lets the host decide: yes if functions are called or files are read, each replica has
        its own process on Linux, and there are two cores; no for arrays in memory, because a replica gathers its rows
        faster than it could ask another process.

    Raises:
      ValueError: if the two names of one option have different values, or the buffer size is not a whole number above
        0.
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1
    experimental_prefetch_to_device: bool | None = None
    input_process: bool | None = None

    def __post_init__(self) -> None:
        for name in ("experimental_fetch_to_device", "experimental_prefetch_to_device", "input_process"):
            object.__setattr__(self, name, optional_flag(getattr(self, name), f"InputOptions: {name}"))
        name = "experimental_place_dataset_on_device"
        object.__setattr__(self, name, flag(getattr(self, name), f"InputOptions: {name}"))
        newer, older = self.experimental_fetch_to_device, self.experimental_prefetch_to_device
        if newer is not None and older is not None and newer != older:
            raise InvalidArgumentError(
                f"experimental_fetch_to_device={newer} and experimental_prefetch_to_device={older} are two names of "
                f"one option; give one of them"
            )
        name = "experimental_per_replica_buffer_size"
        object.__setattr__(self, name, count(self.experimental_per_replica_buffer_size, name))
        chosen = newer is not False and older is not False
        object.__setattr__(self, "experimental_fetch_to_device", chosen)
        object.__setattr__(self, "experimental_prefetch_to_device", chosen)

    @property
    def per_replica(self) -> bool:
        """Whether every replica has its own pipeline."""
        return self.experimental_replication_mode is InputReplicationMode.PER_REPLICA

    def check_for_dataset(self) -> None:
        """Rejects what `distribute_dataset` cannot do.

        Raises:
          NotImplementedError: for `PER_REPLICA`.
        """
        if self.per_replica:
            raise NotImplementedError(
                "InputReplicationMode.PER_REPLICA needs a dataset per replica; "
                "use distribute_datasets_from_function, whose function is called for each"
            )

    def check_for_function(self) -> None:
        """Rejects combinations that `distribute_datasets_from_function` cannot do.

        Raises:
          ValueError: for placing on the device together with PER_WORKER or prefetching.
        """
        if self.experimental_place_dataset_on_device and (
            not self.per_replica or self.experimental_fetch_to_device
        ):
            raise InvalidArgumentError(
                "experimental_place_dataset_on_device=True needs "
                "experimental_replication_mode=PER_REPLICA and "
                f"experimental_fetch_to_device=False, got {self}"
            )
