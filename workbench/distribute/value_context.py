"""ValueContext and RunOptions: small descriptions that strategies pass to functions or take from users."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from workbench.arguments import flag


@dataclass(frozen=True, slots=True)
class ValueContext:
    """Argument of the function of `distribute_values_from_function` (as tf.distribute.experimental.ValueContext).

    Attributes:
      replica_id_in_sync_group: The replica for which the function makes the value.
      num_replicas_in_sync: Number of replicas.
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1

    def __str__(self) -> str:
        return (
            f"wb.distribute.experimental.ValueContext(replica id {self.replica_id_in_sync_group}, "
            f"total replicas in sync: {self.num_replicas_in_sync})"
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `Strategy.run` (as tf.distribute.RunOptions), for strategies that compile functions.

    Attributes:
      experimental_enable_dynamic_batch_size: Whether shapes may differ from step to step; here they always may.
      experimental_bucketizing_dynamic_shape: Whether to pad dynamic shapes to a few sizes; not needed here.
      experimental_xla_options: Options of the XLA compiler.
      partial_batch: How to handle a batch with fewer rows than others. "recompile" compiles another program, and raises
        an error if components differ by replica. "pad" fills the batch up with zeros to the largest number of rows so
        far; `ctx.row_mask(x)` distinguishes data from padding.
      timeout_seconds: Longest time that a step may take before `DeadlineExceededError`; None for no limit.
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None
    partial_batch: Literal["recompile", "pad"] = "recompile"
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("experimental_enable_dynamic_batch_size", "experimental_bucketizing_dynamic_shape"):
            object.__setattr__(self, name, flag(getattr(self, name), f"RunOptions: {name}"))
        if self.partial_batch not in ("recompile", "pad"):
            raise ValueError(f"partial_batch must be 'recompile' or 'pad', got {self.partial_batch!r}")
        seconds = self.timeout_seconds
        if seconds is not None and not (isinstance(seconds, Real) and seconds > 0):
            raise ValueError(
                f"timeout_seconds must be a number above 0, or None for any time, got {seconds!r}"
            )
