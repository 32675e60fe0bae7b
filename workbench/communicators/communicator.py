"""The seam between the collectives and everything above: how replicas communicate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from workbench.communicators.core.options import Options, Reduction
from workbench.communicators.core.position import Flight, Status
from workbench.telemetry.records import Signature


class Communicator(Protocol):
    """One replica's end of its group.

    Only the replica's own thread may use it, except `abort`, `status` and `flight`. Inputs are any arrays that
    `backends.numpy.view` accepts and are never written; results are owned and of the caller's type. Every method that
    communicates raises

    * `CollectiveMismatch` if replicas make different calls, or one leaves the step while others wait for it;
    * `CollectiveAborted` after an `abort` by any replica, `ReplicaLost` when a peer's process has ended;
    * `DeadlineExceededError`, naming the missing replicas, after `options.timeout_seconds`.

    After such an error the group is broken: every replica's next call raises too. Close all its communicators and
    connect new ones (`Bootstrap`, next generation); processes and threads can stay.

    Attributes:
      rank: Position of the replica in the group.
      size: Number of replicas.
      generation: How often the group has been rebuilt.
      transport: The links that it uses, such as "threads + shared memory".
    """

    rank: int
    size: int
    generation: int
    transport: str

    def begin(self, step: int, order: int | None = None) -> None:
        """Starts a step: collectives are counted from 0 again.

        Args:
          step: Its number, shown to users.
          order: Distinguishes steps on all replicas; must grow from step to step. By default `step`.
        """

    def finish(self) -> None:
        """Ends the step: peers that still wait in one of its collectives get `CollectiveMismatch` at once."""

    def all_reduce(
        self,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """Combines each array elementwise over all replicas.

        Args:
          arrays: Same number, dtypes and shapes on every replica.
          request: How to combine them; equal on all replicas.

        Returns:
          One result per array, of its shape.
        """

    def reduce_scatter(self, array: Any, op: str, *, site: str = "", options: Options | None = None) -> Any:
        """Combines `array` over all replicas and returns this replica's part along axis 0.

        Args:
          array: Same dtype and shape `(n, ...)` on every replica.
          op: "sum", "mean", "min", "max" or "prod"; see `Reduction`.
          site: Where the user called it, for errors and telemetry.
          options: The deadline.

        Returns:
          Part number `rank` of `size` parts, cut as `np.array_split` does.
        """

    def all_gather(self, array: Any, axis: int, *, site: str = "", options: Options | None = None) -> Any:
        """Concatenates every replica's array along `axis`, in rank order.

        Args:
          array: Same dtype on every replica. Only dimension `axis` may differ, except that an array without elements
            along it fits any other; if all are empty, the result has the shape of replica 0's array.
          axis: The dimension; negative ones count from the end.
          site: Where the user called it, for errors and telemetry.
          options: The deadline.
        """

    def all_gather_arrays(
        self,
        arrays: Sequence[Any],
        axis: int,
        *,
        site: str = "",
        options: Options | None = None,
        nesting: str = "",
    ) -> list[Any]:
        """Concatenates each of several arrays as `all_gather` does; arrays on the host take a single collective.

        Args:
          arrays: Same number and dtypes on every replica; shapes as for `all_gather`.
          axis: The dimension; negative ones count from the end.
          site: Where the user called it, for errors and telemetry.
          options: The deadline.
          nesting: The structure that the arrays came in; must be equal on all replicas.
        """

    def broadcast(self, array: Any, root: int, *, site: str = "", options: Options | None = None) -> Any:
        """Sends the array of `root` to every replica.

        Args:
          array: The root's array. Others may pass None, or an array of the type that their result should have.
          root: The rank that sends its array; equal on all replicas.
          site: Where the user called it, for errors and telemetry.
          options: The deadline.

        Returns:
          An array of the root's shape and dtype.
        """

    def reduce(
        self, arrays: Sequence[Any], op: str, root: int, *, site: str = "", options: Options | None = None
    ) -> list[Any]:
        """Combines arrays as `all_reduce` does, but only `root` gets the results.

        Args:
          arrays: Same number, dtypes and shapes on every replica.
          op: "sum", "mean", "min", "max" or "prod"; see `Reduction`.
          root: The rank that gets the results; equal on all replicas.
          site: Where the user called it, for errors and telemetry.
          options: The deadline.

        Returns:
          One result per array on the root, None for each array on the others.
        """

    def barrier(self, *, site: str = "", options: Options | None = None) -> None:
        """Returns once every replica has called it."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised array that peers can read in place, so `all_reduce` does not copy it first."""

    def paused(self, what: str, site: str = "") -> AbstractContextManager[None]:
        """Within this context, `status` reports that the replica waits in `what`, such as "merge_call"."""

    def record(self, signature: Signature, step: int, seq: int, *numbers: int) -> None:
        """Records a collective that something else has carried out, such as a compiled program.

        Args:
          signature: Describes the collective.
          step: The step that it was part of.
          seq: Its number in the step.
          *numbers: The other fields of its `Record`: count, bytes, and three times in ns.
        """

    def internal(self, purpose: str) -> AbstractContextManager[None]:
        """Marks the collectives in this context as workbench's own, so that views of the user's collectives omit them.

        Args:
          purpose: Why workbench needs them, such as "input".
        """

    def status(self) -> Status:
        """Where the replica is. Any thread."""

    def flight(self) -> list[Flight]:
        """Its last 2,000 collectives, oldest first. Any thread."""

    def abort(self, error: BaseException) -> None:
        """Breaks the group: all waiting replicas raise, also in other processes. Any thread; the first call wins."""

    def give_back(self, before: float) -> None:
        """Frees collectives' memory that was last used before `before`, a `time.monotonic` time. Any thread."""

    def close(self) -> None:
        """Frees all resources; idempotent."""
