"""Started: a step of a traced program that JAX computes, until it has been reported."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import CollectiveAborted, DeadlineExceededError
from workbench.runtime.traced_group import GroupPrograms
from workbench.runtime.traced_slices import SlicesRows
from workbench.runtime.wire import INLINE_BYTES, RemoteLeaf, RowsLeaf
from workbench.telemetry.records import Signature

if TYPE_CHECKING:
    from workbench.backends.jax import Rows
    from workbench.backends.jax_program import Compiled
    from workbench.runtime.host import ReplicaHost
    from workbench.runtime.local_group import LocalGroup

_POLL_SECONDS = 50e-6


@dataclass(slots=True)
class Started:
    """A step that JAX computes.

    Attributes:
      serial: Number of its message.
      step: Number among the user's steps.
      group: Whose step it is.
      known: What this worker keeps of that group.
      leaves: Of its result: `Rows`, or what is the same in every step.
      waits_for: Everything that it computes.
      compiled: The program.
      site: The user's function.
      started_ns: When it was started.
      deadline_seconds: How long it may take, None for any time.
    """

    serial: int
    step: int
    group: LocalGroup
    known: GroupPrograms
    leaves: list[Any]
    waits_for: list[Rows]
    compiled: Compiled
    site: str
    started_ns: int
    deadline_seconds: float | None

    def wait(self, host: ReplicaHost) -> None:
        """Waits until it has been computed.

        Raises:
          CollectiveAborted: If another host has failed meanwhile; this worker's process must end.
          DeadlineExceededError: If it takes too long; likewise.
        """
        from workbench.backends.jax_program import ready
        from workbench.backends.jax_program import wait as wait_for

        if self.known.alone and self.deadline_seconds is None:
            wait_for(self.waits_for)
            return
        ends = time.monotonic() + (self.deadline_seconds or 1e9)
        epoch = self.group.epoch
        while not ready(self.waits_for):
            if self.group.aborted and self.group.epoch == epoch:
                host.poisoned = True
                raise CollectiveAborted(
                    "the step cannot end: another host has failed, and JAX cannot stop a program"
                )
            if time.monotonic() > ends:
                host.poisoned = True
                raise DeadlineExceededError(
                    f"a step of {self.site!r} did not end within {self.deadline_seconds:g} s: a host is missing "
                    f"in one of its collectives, or it takes longer (CommunicationOptions.timeout_seconds)"
                )
            time.sleep(_POLL_SECONDS)  # JAX has no wait with a deadline
        wait_for(self.waits_for)  # raises what the computation raised

    def outcome(self, host: ReplicaHost, *, awaited: bool) -> tuple[Any, ...]:
        """What DONE carries: the local ranks, the structure of the result, and its leaves; see `wire`."""
        from workbench.backends.jax import Rows

        leaves: list[Any] = []
        for leaf in self.leaves:
            if type(leaf) is SlicesRows:
                leaves.append(RemoteLeaf("IndexedSlices", leaf.values.dtype.name, leaf.fixed.dense_shape, 0))
            elif type(leaf) is not Rows:
                leaves.append((leaf,))
            elif awaited and leaf.nbytes <= INLINE_BYTES:
                leaves.append(RowsLeaf(leaf.bring_home()))
            else:
                leaves.append(RemoteLeaf("jax.Array", leaf.dtype.name, leaf.shape, leaf.nbytes))
        return self.known.ranks, host.structure_key(self.compiled.structure[0]), leaves

    def record(self, host: ReplicaHost, begin: int, end: int) -> None:
        """Writes one record per replica: the whole step, with what its collectives move as the compiler says.

        Args:
          host: Has the rings.
          begin: When it began to be computed, of `time.monotonic_ns`.
          end: When it had ended.
        """
        join, program = self.group.join, self.compiled
        signature = Signature(join.generation, join.name, "step", "", "", "traced", 0, "xla", site=self.site)
        numbers = (program.collectives, program.collective_bytes, self.started_ns, begin, end)
        for rank, _ in self.known.local:
            ring = host.rings.get((join.group, rank))
            if ring is not None:
                ring.write(ring.number(signature), self.step, 0, *numbers)
