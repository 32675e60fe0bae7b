"""What a consumer reads, and how."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.data.service.address import Address, Tls


@dataclass(frozen=True, slots=True)
class Reading:
    """What a consumer reads.

    Attributes:
      address: The dispatcher.
      tls: How to check certificates, None without TLS.
      dataset: Id of the dataset.
      mode: Value of the `ShardingPolicy`.
      job_name: The name that consumers share, "" for a job of this one.
      max_outstanding: How many elements may be here or in transit; 0 for two blocks of a megabyte per worker.
      timeout_seconds: How long the service may be unreachable or without a worker, or another consumer of the rounds
        missing.
      index: The number of this consumer among those that read in rounds; -1 if it does not.
      num_consumers: How many of these there are; 0 if it does not read in rounds.
      trainer: The id of its trainer, if trainers share a cache; otherwise "".
      target_workers: "LOCAL" for workers in this process only, "AUTO" or "ANY" for all.
    """

    address: Address
    tls: Tls | None
    dataset: int | str
    mode: int
    job_name: str
    max_outstanding: int
    timeout_seconds: float
    index: int = -1
    num_consumers: int = 0
    trainer: str = ""
    target_workers: str = "AUTO"

    @property
    def is_local(self) -> bool:
        """Whether it reads from workers in this process only."""
        return self.target_workers == "LOCAL"
