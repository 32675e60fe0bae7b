"""StepTallies: tracks the progress of a host's replicas in each step, and reports it to the driver."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from workbench.runtime.comm.messages import DONE, Failed, Message, Outcome, carried
from workbench.runtime.replica.local_group import LocalGroup
from workbench.runtime.worker.completions import Completions


@dataclass(slots=True)
class _Tally:
    """The progress of this host's replicas in one step.

    Attributes:
      ended: Replicas that have ended it.
      unsent: Outcomes that the driver does not yet know.
      singly: Whether the driver must know each outcome at once, because a replica waits in a merge or is late.
    """

    ended: int = 0
    unsent: list[Outcome] = field(default_factory=list)
    singly: bool = False


class StepTallies:
    """Reports a step once all of the host's replicas have ended it, or each outcome if the driver needs it at once."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self._tallies: dict[int, _Tally] = {}
        self._lock = threading.Lock()

    def ended(self, serial: int, group: LocalGroup, ranks: Any, outcome: Outcome) -> None:
        """Records that a replica has ended a step.

        Args:
          serial: The serial of the step.
          group: The group whose step it is.
          ranks: The replicas on which the step runs, None for all.
          outcome: Its outcome.
        """
        expected = len(group.rank_of_device)
        if ranks is not None:
            expected = sum(1 for rank in group.rank_of_device.values() if rank in ranks)
        if expected == 1:
            if self._tallies:
                self._tallies.pop(serial, None)  # left by its merges
            self._completions.complete((DONE, serial, [carried(outcome)]))
            return
        with self._lock:
            tally = self._tallies.setdefault(serial, _Tally())
            tally.ended += 1
            tally.unsent.append(outcome)
            if type(outcome) is Failed and outcome.failure.overdue:
                tally.singly = True
            if tally.ended == expected:
                del self._tallies[serial]
            elif not tally.singly:
                return
            outcomes, tally.unsent = tally.unsent, []
        self._completions.send((DONE, serial, [carried(each) for each in outcomes]))

    def merge_requested(self, message: Message) -> None:
        """Sends a replica's merge request, after the delayed outcomes of replicas that have already ended the step."""
        serial = message[1]
        with self._lock:
            tally = self._tallies.setdefault(serial, _Tally())
            tally.singly = True
            outcomes, tally.unsent = tally.unsent, []
        if outcomes:
            self._completions.send((DONE, serial, [carried(each) for each in outcomes]))
        self._completions.send(message)
