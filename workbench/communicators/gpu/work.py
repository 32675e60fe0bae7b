"""A replica's part of a collective between GPUs, and the interface of the two implementations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from workbench.communicators.core.call import Call


@dataclass(slots=True, eq=False)
class Work:
    """One replica's part. Arrays are contiguous and one-dimensional; its compute stream made them on its device.

    Attributes:
      rank: The replica.
      call: Its call.
      step: Number of the step.
      seq: The number of the collective within its step.
      enter_ns: When it made the call.
      ready: Event of its compute stream, after which `sources` are complete.
      sources: Arrays to read.
      targets: Arrays to write.
      stream: The stream that executes it; set by the plane.
      finished: Event after which `targets` have the results; set by the plane.
      temporary: Buffers that must live until then: the operation's, and those from which `sources` were made.
      moved: Elements, bytes and dtype, if only the exchange has revealed them.
      flag: Address of the word that is set if `sources` are not finite; 0 if that is not recorded.
      unread: Whether some of `sources` were not checked, for lack of time.
    """

    rank: int
    call: Call
    step: int
    seq: int
    enter_ns: int
    ready: Any
    sources: Sequence[Any]
    targets: Sequence[Any]
    stream: Any = None
    finished: Any = None
    temporary: list[Any] = field(default_factory=list)
    moved: tuple[int, int, str] | None = None
    flag: int = 0
    unread: bool = False


class GpuOps(Protocol):
    """Queues collectives on the streams of this process's replicas, without waiting.

    `works` has one work per replica of the process, in rank order. For `all_gather` and `broadcast`, sources have the
    sender's dtype, and targets are bytes.
    """

    @property
    def name(self) -> str:
        """Name of the algorithm, for telemetry."""

    def all_reduce(self, op: str, works: Sequence[Work]) -> None:
        """Combines each source over the group into the target at the same position."""

    def reduce(self, op: str, works: Sequence[Work], root: int) -> None:
        """As `all_reduce`, but only the targets of `root` get the results.

        Args:
          op: "sum", "mean", "min", "max" or "prod".
          works: Sources and targets of each replica of the process.
          root: Rank of the replica that gets the results.
        """

    def reduce_scatter(self, op: str, works: Sequence[Work], bounds: Sequence[int]) -> None:
        """Writes elements `bounds[r]` to `bounds[r + 1]` of the combined source to replica r's target.

        Args:
          op: "sum", "mean", "min", "max" or "prod".
          works: Source and target of each replica of the process.
          bounds: First element of each replica's part, and the end of the last part.
        """

    def all_gather(self, works: Sequence[Work], counts: Sequence[int]) -> None:
        """Writes all sources one after another, `counts[r]` elements of replica r, to every replica's target."""

    def broadcast(self, works: Sequence[Work], root: int) -> None:
        """Copies the source of `root` to every replica's target."""

    def abort(self) -> None:
        """Drops the queued work: streams continue, results are garbage. Any thread."""

    def error(self) -> str:
        """The library's message about a background error, "" if there is none. Any thread."""

    def close(self) -> None:
        """Frees all resources; nothing may be queued any more."""


def native(dtype: np.dtype, op: str) -> np.dtype:
    """Returns `dtype`: the fused kernel converts while it reads, so arrays are packed unconverted."""
    return dtype.newbyteorder("=")
