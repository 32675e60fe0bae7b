"""Handles a replica that did not reach a collective in time: the step fails at once, whatever that replica still does.

The replicas that waited have reported. Those that still run the user's code are interrupted, and stop within
milliseconds if they execute Python. If they are in C code, the wait for the step still ends, and only the next step has
to wait, because nothing can be undone while a replica runs.
"""

from __future__ import annotations

import os
import sys
import time

from workbench.errors import DeadlineExceededError, WorkbenchError
from workbench.runtime.comm.messages import DUMP
from workbench.runtime.driver.replicas import Replicas
from workbench.runtime.driver.step import Step, Wait
from workbench.telemetry.formatting import MOST_NAMED, replicas_text

_GRACE_SECONDS = 0.5  # replicas that can stop have stopped by then
_SAY_AFTER_SECONDS = 2.0
_END_AFTER_SECONDS = 30.0
_ANSWER_SECONDS = 0.5


class Overdue:
    """The consequences of a step in which replicas were late, until all replicas of the group are idle."""

    def __init__(self, group: Replicas, step: Step) -> None:
        """Asks the running replicas where they are, then stops them."""
        self._group = group
        self._since = time.monotonic()
        self._began_to_wait = 0.0
        self._said = False
        workers = {group.place(rank)[0].name: group.place(rank)[0] for rank in sorted(step.waiting)}
        self._questions = [group.gang.urgent.ask(worker, DUMP) for worker in workers.values()]
        group.interrupt()

    def grace_seconds(self) -> float:
        """How much longer to wait for replicas to stop before the step is given up."""
        return max(0.0, self._since + _GRACE_SECONDS - time.monotonic())

    def explain(self, error: BaseException | None) -> None:
        """Adds the late replicas' places in the user's code to the error."""
        if not isinstance(error, DeadlineExceededError) or not error.collective:
            return  # unknown for a traced step
        wait = Wait.read(error.collective)
        if wait is None:
            return
        missed = error.step, wait.number - 1
        for question in self._questions:
            try:
                found = question.answer(_ANSWER_SECONDS)
            except WorkbenchError:  # it is gone, or in C code: the next step will report it
                continue
            for row in found["statuses"]:
                place = found["places"].get((row.group, row.rank))
                if row.group == self._group.id and (row.step, row.seq) < missed and place:
                    error.add_note(f"replica {row.rank} was at {place} then")

    def urge(self, step: Step) -> None:
        """While the next step waits for replicas that still run `step`, informs the user, later replaces workers."""
        now = time.monotonic()
        self._began_to_wait = self._began_to_wait or now
        gang = self._group.gang
        if not self._said and now - self._began_to_wait > _SAY_AFTER_SECONDS:
            self._said = True
            self._group.interrupt()  # user code may have caught the first interrupt
            self._say(sorted(step.waiting))
        if now - self._began_to_wait > _END_AFTER_SECONDS:
            for rank in sorted(step.waiting):
                worker, _ = self._group.place(rank)
                if worker.pid != os.getpid() and not worker.lost:
                    gang.kill(
                        worker, "was ended because it did not leave a step that had exceeded its timeout"
                    )

    def _say(self, ranks: list[int]) -> None:
        who = f"{replicas_text(ranks, MOST_NAMED)} {'is' if len(ranks) == 1 else 'are'}"
        print(
            f"{who} still in the step that exceeded its timeout, inside C code: waiting until it stops. "
            f"After {_END_AFTER_SECONDS:.0f} s the worker is restarted; interrupt twice to restart it immediately.",
            file=sys.stderr,
        )
