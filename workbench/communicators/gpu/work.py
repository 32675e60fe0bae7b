"""A replica's part of a collective between GPUs, and the seam for the two ways to carry it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from workbench.communicators.core.call import Call


@dataclass(slots=True, eq=False)
class Work:
    """One replica's part. Arrays are contiguous, one-dimensional, on its device, made on its compute stream.

    Attributes:
      rank: The replica.
      call: What it asked for.
      step: In which step.
      seq: The number of the collective within its step.
      enter_ns: When it asked.
      ready: Event of its compute stream: everything before is in `sources`.
      sources: To be read.
      targets: To be written.
      stream: Where it is carried out; set by the plane.
      finished: Event after which `targets` hold the result; set by the plane.
      temporary: Buffers that must live until then: those of the operation, and those that `sources` were made of.
      moved: Elements, bytes and dtype, where only the exchange has told them.
      flag: Address of the word that says, once set, that `sources` are not finite; 0 if nothing records that.
      unread: Some of `sources` was not looked at, for lack of time.
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
    """Queues a collective on the streams of this process's replicas; waits for nothing.

    `works` are those of all replicas of the process, by rank. Arrays of `all_gather` and `broadcast` have the sender's
    dtype as sources and are bytes as targets.
    """

    @property
    def name(self) -> str:
        """For telemetry: the algorithm."""

    def all_reduce(self, op: str, works: Sequence[Work]) -> None:
        """Each source of each replica is combined over the group into the target of the same position."""

    def reduce(self, op: str, works: Sequence[Work], root: int) -> None:
        """The same, but only the targets of `root` get the results.

        Args:
          op: "sum", "mean", "min", "max" or "prod".
          works: Sources and targets of each replica of the process.
          root: Rank of the replica that gets the results.
        """

    def reduce_scatter(self, op: str, works: Sequence[Work], bounds: Sequence[int]) -> None:
        """Replica r's target gets elements `bounds[r]` to `bounds[r + 1]` of the combined source.

        Args:
          op: "sum", "mean", "min", "max" or "prod".
          works: Source and target of each replica of the process.
          bounds: First element of each replica's part, and the end of the last part.
        """

    def all_gather(self, works: Sequence[Work], counts: Sequence[int]) -> None:
        """Everybody's target gets the sources behind each other, `counts[r]` elements of replica r."""

    def broadcast(self, works: Sequence[Work], root: int) -> None:
        """Everybody's target gets the source of `root`."""

    def abort(self) -> None:
        """Gives up what is queued: streams go on, results are garbage. Any thread."""

    def error(self) -> str:
        """What the library says went wrong in the background, "" if nothing. Any thread."""

    def close(self) -> None:
        """Gives everything back, with nothing queued any more."""


def native(dtype: np.dtype, op: str) -> np.dtype:
    """The fused kernel widens while it reads: arrays are packed as they are."""
    return dtype.newbyteorder("=")
