"""Started: a step of a traced program that JAX computes, until it has been reported."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import CollectiveAborted, DeadlineExceededError
from workbench.runtime.traced.compiled_step import ReadyProgram
from workbench.runtime.traced.group_programs import GroupPrograms

if TYPE_CHECKING:
    from workbench.backends.jax import Rows
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.host import TracingHost

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
      program: What runs.
      started_ns: When it was started.
      deadline_seconds: How long it may take, None for any time.
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

    def wait(self, host: TracingHost) -> None:
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
                    f"a step of {self.program.site!r} did not end within {self.deadline_seconds:g} s: a host is "
                    f"missing in one of its collectives, or it takes longer: allow it more with "
                    f"RunOptions(timeout_seconds=...), or look with wb.diagnose() who is late"
                )
            time.sleep(_POLL_SECONDS)  # JAX has no wait with a deadline
        wait_for(self.waits_for)  # raises what the computation raised
