"""The steps of a group in progress: sends them, handles their outcomes, waits for their ends."""

from __future__ import annotations

import functools
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from workbench.device_names import Device
from workbench.errors import RunInterrupted
from workbench.runtime.comm.messages import RUN
from workbench.runtime.deploy.worker_link import WorkerEnd, WorkerLink
from workbench.runtime.driver.cores_used import CoresUsed
from workbench.runtime.driver.failures import structure_error, where_others_wait
from workbench.runtime.driver.gang.gang import Gang
from workbench.runtime.driver.gang.requests import CHECK_SECONDS
from workbench.runtime.driver.group_state import Change, Phase
from workbench.runtime.driver.merge_call import refuse_merge, refuse_stuck_merge, run_merge
from workbench.runtime.driver.recent_results import RecentResults
from workbench.runtime.driver.step import Runner, Step
from workbench.runtime.driver.step_errors import StepErrors
from workbench.runtime.driver.step_events import step_failed, step_succeeded
from workbench.runtime.driver.straggler_deadline import Overdue
from workbench.runtime.user_code.notebook_cells import running_cell
from workbench.telemetry.feed.step_window import STEPS
from workbench.telemetry.formatting import MOST_NAMED, replicas_text
from workbench.telemetry.told import SentSteps

# A replica that has not stopped by then is in C code, which stops only with its process.
_SAY_AFTER_SECONDS = 2.0


class StepQueue(Runner):
    """Replicas, and the steps that they have not completed.

    Attributes:
      overdue: Set if replicas did not reach a collective in time and some may still run; normally None.
      recent: Small results of the newest steps.
      cores_used: Cores that steps use during waits; None if every replica has its own core, or it cannot be measured.
      errors: The failures since the replicas were last made ready.
    """

    def __init__(self, gang: Gang[Any], devices: Sequence[Device], *, label: str) -> None:
        super().__init__(gang, devices, label=label)
        self.overdue: Overdue | None = None
        self.recent = RecentResults()
        self.cores_used: CoresUsed | None = None
        self.errors = StepErrors()
        self._steps: dict[int, Step] = {}  # by serial, oldest first
        # The user's steps, as in `SentSteps`.
        self._sent: deque[tuple[int, int, int]] = deque(maxlen=STEPS)
        self._cell: int | None = None  # the cell in which the newest of them was sent
        self._ended_ns = 0  # when the newest of them ended; 0 before the first
        self._paused_ns = 0
        self._has_failed = False  # whether one of the user's steps has failed, and none has succeeded since

    def on_their_way(self) -> list[Step]:
        """The steps that have not ended, oldest first; for threads that only read, without the lock."""
        return list(self._steps.values())

    def unreported(self, rank: int) -> list[int]:
        """Numbers of the steps that a replica has not yet reported, oldest first; -1 for workbench's own steps."""
        return [step.number for step in self.on_their_way() if rank in step.waiting]

    def at_steps(self) -> list[int]:
        """For each replica the number of the user's step that it is in, or completed last; -1 before the first.

        Replicas of one worker report together, so the slowest of them counts.
        """
        at = [self.number - 1] * self.size
        for step in self.on_their_way():
            if step.number >= 0:
                for rank in step.waiting.copy():
                    at[rank] = min(at[rank], step.number)
        return at

    def sent_steps(self) -> SentSteps | None:
        """When the user's newest steps were sent; None before the first. Any thread."""
        sent = list(self._sent)
        return SentSteps(*zip(*sent, strict=True)) if sent else None

    @property
    def idle_since_ns(self) -> int | None:
        """When the user's newest step ended, by the monotonic clock: 0 before the first, None while one runs."""
        running = any(step.number >= 0 for step in self.on_their_way())
        return None if running else self._ended_ns

    def submit(self, step: Step, encoded: Any, structure: Any, ranks: tuple[int, ...] | None) -> None:
        """Sends a step to all its replicas.

        Args:
          step: The step.
          encoded: Its arguments, encoded by `payload`.
          structure: Id of their structure.
          ranks: The replicas, if not all.
        """
        function = step.prepared.function
        message = (  # the fields of `Run`, without the microsecond that creating one takes
            RUN,
            step.serial,
            self.id,
            self.state.epoch,
            step.number,
            function,
            encoded,
            ranks,
            # A nested step overtakes others, which may need the released values.
            [] if step.nested else self.gang.take_released(),
            self.state.committed,
            step.nested,
        )
        self.state.sent()
        if step.number >= 0:
            self._note_sent(step.number)
        self._steps[step.serial] = step
        objects = (function, structure) if type(function) is int else ()
        for worker in self.gang.submit(self, step.serial, message, names=self.worker_names, objects=objects):
            assert worker.lost is not None
            self._note_lost(step, worker, worker.lost)
        if not step.waiting:
            self._end(step)

    def _note_sent(self, number: int) -> None:
        """Records that a user's step is about to be sent.

        If all earlier steps ended in another cell, the notebook has paused.
        """
        now_ns, cell = time.monotonic_ns(), running_cell()
        if cell != self._cell and (idle_since_ns := self.idle_since_ns):
            self._paused_ns += now_ns - idle_since_ns
        self._cell = cell
        self._sent.append((number, now_ns, self._paused_ns))

    # -- what the gang tells
    # ------------------------------------------------------------------------------------------------

    @property
    def merging(self) -> bool:
        """Whether replicas wait for a merge function."""
        return any(step.merging for step in self.on_their_way())

    def done(self, worker: WorkerLink, serial: int, outcomes: list[tuple[Any, ...]]) -> None:
        """Handles the outcomes of a worker's replicas in a step.

        Args:
          worker: The link to the worker.
          serial: The number of the step.
          outcomes: The outcome of each replica; see `Step.take`.
        """
        step = self._steps[serial]
        step.take(outcomes, worker.structures)
        if step.failures and step.waiting:
            self._failing(step)
        if step.merging:
            self.gang.afterwards(functools.partial(self._try_merge, step))
        if not step.waiting:
            self._end(step)

    def merge_asked(self, serial: int, rank: int, request: Any) -> None:
        """Handles a merge request of a replica.

        Args:
          serial: The number of the step.
          rank: The replica.
          request: The request; the function runs once all replicas have sent theirs.
        """
        step = self._steps[serial]
        step.merging[rank] = request
        self.gang.afterwards(functools.partial(self._try_merge, step))

    def worker_lost(self, worker: WorkerLink, end: WorkerEnd) -> None:
        """Handles the loss of a worker: steps that ran there fail, and replicas that wait for others wake."""
        for step in self.on_their_way():
            self._note_lost(step, worker, end)
        if worker.name in self.worker_names and self.id in self.gang.groups:
            self.state.after(Change.LOST)
            self.abort(-1, f"aborted because a replica's worker was lost: {end}")
        for step in [step for step in self.on_their_way() if not step.waiting]:
            self._end(step)

    def look(self) -> None:
        """Ends merges that heartbeats show to be impossible."""
        for step in [step for step in self.on_their_way() if step.merging]:
            refuse_stuck_merge(step)

    def _note_lost(self, step: Step, worker: WorkerLink, end: WorkerEnd) -> None:
        for rank, (name, _) in enumerate(step.places):
            if name == worker.name and rank in step.waiting:
                step.waiting.discard(rank)
                step.lost[rank] = end
                step.waited = where_others_wait(step)
        self.gang.afterwards(functools.partial(self._try_merge, step))

    def _try_merge(self, step: Step) -> None:
        """Runs a merge function if every replica waits for it; ends the wait if one never will."""
        if step.ended or not step.merging:
            return
        if (
            set(step.merging) == step.waiting
            and not step.failed
            and all(leaf is None for leaf in step.leaves)
        ):
            run_merge(step)
        elif step.failed or any(leaf is not None for leaf in step.leaves):
            refuse_merge(step)

    # -- what becomes of a step
    # ---------------------------------------------------------------------------------

    def _failing(self, step: Step) -> None:
        """Stops the other replicas when one has failed, so that they do not wait for it."""
        failure = step.failures[0]
        self.state.after(Change.FAILED)
        self.abort(step.serial, f"replica {failure.rank} raised {failure.type_name}: {failure.text}")
        if self.overdue is None and any(failure.overdue for failure in step.failures):
            self.state.after(Change.LATE)
            self.overdue = Overdue(self, step)
            self.errors.explain(step)
            self.overdue.explain(step.error)
            self.errors.owe(step.error)

    def _end(self, step: Step) -> None:
        """Called when every replica has reported or is gone."""
        if self._steps.pop(step.serial, None) is None:
            return  # the loss of a worker has ended it meanwhile
        self.gang.ended(step.serial)
        step.ended = True
        self.state.ended()
        step.ended_ns = time.monotonic_ns()
        if step.number >= 0:
            self._ended_ns = step.ended_ns
        if not step.failed:
            self._succeeded(step)
        else:
            self.state.after(Change.LOST if step.lost else Change.FAILED)
            self.errors.failed(step)
            if self.errors.cause is step.error:  # unless another step's failure caused it
                for event in step_failed(step):
                    self.gang.notify(event)
                self._has_failed = self._has_failed or step.number >= 0
        if step.error is not None:
            # There will be no handles to the results of replicas that succeeded.
            most = max((len(leaves) for leaves in step.leaves if leaves is not None), default=0)
            self.gang.released.extend((step.serial, leaf) for leaf in range(most))
            if not step.prepared.quiet:
                self.errors.owe(step.error)

    def _succeeded(self, step: Step) -> None:
        step.error = step.error or structure_error(step)
        if not step.nested:
            self.state.commit(step.serial, step.number)
            if step.number >= 0 and step.error is None:
                self.recent.add(step)
                if self._has_failed:
                    self._has_failed = False
                    self.gang.notify(step_succeeded(step))
        if step.accepted is not None:
            # Values dropped before a step was resent have another serial.
            if step.accepted.losses:
                self.gang.released.extend((step.serial, leaf) for leaf in step.accepted.dropped)
            step.accepted = None

    # -- waiting
    # ------------------------------------------------------------------------------------------------

    def wait_for(self, step: Step) -> None:
        """Waits for a step; raises its error. Ctrl-C stops the step and leaves the cluster usable."""
        __tracebackhide__ = True
        with self.gang.lock:
            if step.accepted is not None and self.errors.is_told(step.error):
                self.make_ready()  # which resends it
            self._wait_for_end(step)
            if step.error is not None and self.errors.is_effect(step) and not step.nested:
                self.drain()  # until the step that caused this failure has ended
        if step.error is not None:
            self.errors.reported(step.error)
            raise step.error

    def wait_for_end(self, step: Step) -> None:
        """As `wait_for`, but raises nothing; the next run reports the failure."""
        with self.gang.lock:
            self._wait_for_end(step)

    def wait_for_room(self, in_flight: int) -> None:
        """Waits until at most `in_flight` steps are in progress; for Ctrl-C see `wait_for`."""
        with self.gang.lock:
            while self.in_flight > in_flight and not self._gives_up():
                self._wait_for_end(self._oldest())

    def drain(self) -> None:
        """Receives until no step is in progress."""
        gang = self.gang
        with gang.lock, gang.interrupts as interrupts:
            while self.in_flight:
                gang.receive(CHECK_SECONDS)
                if interrupts.take():
                    self._interrupted(self._oldest())
                if self.overdue is not None and self.in_flight:
                    self.overdue.urge(self._oldest())

    def settle(self) -> None:
        """Waits until all replicas are idle, even late ones, because nothing may be undone while they run."""
        self.drain()
        self.overdue = None
        self.state.after(Change.SETTLED)

    def _gives_up(self) -> bool:
        """Whether to stop waiting for steps, because late replicas have not stopped when asked to."""
        if (
            self.state.phase is Phase.OVERDUE
            and self.overdue is not None
            and not self.overdue.grace_seconds()
        ):
            self.state.after(Change.GAVE_UP)
        return self.state.phase is Phase.GIVEN_UP

    def _wait_for_end(self, step: Step) -> None:
        if step.ended:
            return
        gang = self.gang
        gang.check_open()
        with gang.interrupts:
            if self.cores_used is None or step.number < 0:
                self._receive_until_end(step)
                return
            gang.receive(0.0)  # receives messages that arrived, at an unknown time, while nothing waited
            if not step.ended:
                pids = [gang.workers[name].pid for name in self.worker_names]
                steps = sum(
                    0 <= each.number <= step.number for each in self._steps.values() if not each.ended
                )
                with self.cores_used.watch(pids, steps):
                    self._receive_until_end(step)

    def _receive_until_end(self, step: Step) -> None:
        gang, interrupts = self.gang, self.gang.interrupts
        while not step.ended and not self._gives_up():
            late = self.overdue
            gang.receive(CHECK_SECONDS if late is None else min(CHECK_SECONDS, late.grace_seconds()))
            if interrupts.pending and interrupts.take():
                self._interrupted(step)
        if not step.ended:  # it was given up because of late replicas
            step.error = step.error or self.errors.cause

    def _oldest(self) -> Step:
        return next(iter(self._steps.values()))

    def _interrupted(self, step: Step) -> None:
        """Handles Ctrl-C during a wait for `step`: stops it, by force at the second Ctrl-C.

        Raises:
          RunInterrupted: always.
        """
        self._stop(step)
        last = self.committed_step
        kept = f"variables are as {'before the first step' if last < 0 else f'after step {last}'}"
        if all(self.gang.workers[name].lost for name in self.worker_names):
            kept = "all its workers had to be ended, and the values of variables with them"
        raise RunInterrupted(
            f"interrupted {step.name!r}; the cluster is usable, {kept}",
            run=self.gang.run_id,
            generation=self.generation,
            step=step.number,
        )

    def _stop(self, step: Step) -> None:
        """Stops `step` and all steps queued behind it; returns when its replicas are idle.

        A second Ctrl-C ends the processes of the replicas that still run; the next step replaces them.
        """
        self.state.after(Change.INTERRUPTED)
        self.interrupt()
        said = False
        start = time.monotonic()
        with self.gang.interrupts as interrupts:
            while self.in_flight:
                self.gang.receive_some()
                if interrupts.take():
                    for rank in sorted(step.waiting):
                        self.gang.kill(self.place(rank)[0])
                if not said and time.monotonic() - start > _SAY_AFTER_SECONDS:
                    said = True
                    self.interrupt()  # user code may have caught the first interrupt
                    busy = sorted(step.waiting)
                    who = replicas_text(busy, MOST_NAMED) if busy else "a replica"
                    print(
                        f"{who} {'have not stopped yet: they are' if len(busy) > 1 else 'has not stopped yet: it is'} "
                        f"inside C code. Interrupt again to restart the worker.",
                        file=sys.stderr,
                    )
        self.errors.forget()
