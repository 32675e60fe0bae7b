"""Started: a step of a traced program that JAX is computing or that has not been reported."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import CollectiveAborted, DeadlineExceededError, NotFinite
from workbench.runtime.comm.failure_report import is_users
from workbench.runtime.traced.compiled_step import ReadyProgram
from workbench.runtime.traced.group_programs import GroupPrograms
from workbench.runtime.user_code.notebook_cells import file_name

if TYPE_CHECKING:
    from workbench.backends.jax.mesh import Rows
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.host import TracingHost
    from workbench.runtime.traced.program import OperationDump

_POLL_SECONDS = 50e-6
_GRACE_SECONDS = 2.0
"""How long a step may still take after another host has failed, possibly after the step's collectives."""


@dataclass(slots=True)
class Started:
    """A step that JAX is computing.

    Attributes:
      serial: Number of its message.
      step: Number among the user's steps.
      group: The group whose step it is.
      known: The state of that group on this worker.
      leaves: The leaves of its result: `Rows`, or values that are the same in every step.
      waits_for: All arrays that it computes.
      program: The running program.
      started_ns: When it was started.
      deadline_seconds: How long it may take, None for no limit.
      checks: For each replica, the operation that first made a NaN or an infinity; None without checks.
      dump: Takes the results of operations, or None.
      given: Their results, if `dump` takes elements.
    """

    serial: int
    step: int
    group: LocalGroup
    known: GroupPrograms
    leaves: list[Any]
    waits_for: list[Rows]
    program: ReadyProgram
    started_ns: int
    deadline_seconds: float | None
    checks: Rows | None = None
    dump: OperationDump | None = None
    given: Sequence[Rows] = ()

    def wait(self, host: TracingHost) -> None:
        """Waits until it has been computed.

        Raises:
          CollectiveAborted: if another host has failed and the step does not end; this worker's process must then end.
          DeadlineExceededError: if it takes too long; the process must then end, too.
        """
        from workbench.backends.jax.program import ready
        from workbench.backends.jax.program import wait as wait_for

        if self.known.alone and self.deadline_seconds is None:
            wait_for(self.waits_for)
            return
        ends = time.monotonic() + (self.deadline_seconds or 1e9)
        gives_up = math.inf
        epoch = self.group.epoch
        while not ready(self.waits_for):
            if self.group.aborted and self.group.epoch == epoch:
                gives_up = min(gives_up, time.monotonic() + _GRACE_SECONDS)
            if time.monotonic() > gives_up:
                host.poisoned = True
                raise CollectiveAborted(
                    "the step cannot end: another host has failed, and JAX cannot stop a program"
                )
            if time.monotonic() > ends:
                host.poisoned = True
                raise DeadlineExceededError(
                    f"a step of {self.program.site!r} did not end within {self.deadline_seconds:g} s: a host is "
                    f"missing in one of its collectives, or it takes longer: allow it more with "
                    f"RunOptions(timeout_seconds=...), or look with wb.diagnose() who is late"
                )
            time.sleep(_POLL_SECONDS)  # JAX has no wait with a deadline
        wait_for(self.waits_for)  # raises the computation's error

    def dump_given(self) -> None:
        """Passes on the operations' results, once the step has been computed."""
        if self.dump is None:
            return
        for position, rank in enumerate(self.known.ranks):
            self.dump.take(
                self.program.compiled.given,
                [rows.component(position) for rows in self.given],
                host=self.group.devices[rank].host,
                replica=rank,
                step=self.step,
            )

    def require_finite(self) -> None:
        """Checks, once the step has been computed, that no operation made a NaN or an infinity.

        Raises:
          NotFinite: if one did; names operation, line, replica and step.
        """
        if self.checks is None:
            return
        by_replica = self.checks.component(0)
        bad = [replica for replica, number in enumerate(by_replica) if number >= 0]
        if not bad:
            return
        replica = min(bad, key=lambda each: int(by_replica[each]))
        seen = self.program.compiled.seen[int(by_replica[replica])]
        place = next((frame for frame in seen.frames if is_users(frame[0])), None)
        line = f", at {os.path.basename(file_name(place[0]))}:{place[1]} in {place[2]}" if place else ""
        what = f"{seen.name} makes a NaN or an infinity" if seen.frames else f"{seen.name} is not finite"
        others = f"; on {len(bad)} replicas in all" if len(bad) > 1 else ""
        raise NotFinite(f"{what} on replica {replica} at step {self.step}{line}{others}")
