"""Distinguishes causes and effects among the failures of a group's steps, and tracks which the user has seen."""

from __future__ import annotations

from workbench.errors import ReplicaLost, ReplicaStalled
from workbench.runtime.driver.accepted_steps import MOST_LOSSES
from workbench.runtime.driver.failures import is_effect, step_error
from workbench.runtime.driver.step import Step

LOSSES = (ReplicaLost, ReplicaStalled)


class StepErrors:
    """The failures of one group since it was last made ready.

    Attributes:
      cause: The first failure that is not the effect of another.
      first_failed: Serial of the first step that failed, 0 if none did.
      unreported: An error that the user has not seen.
    """

    def __init__(self) -> None:
        self.cause: BaseException | None = None
        self.first_failed = 0
        self.unreported: BaseException | None = None
        self._reported: BaseException | None = None
        self._accepted: list[Step] = []  # failed, and may be sent again
        self._effects: list[Step] = []  # failed because of a step that has not ended yet

    def failed(self, step: Step) -> None:
        """Records a step that has ended as failed, and sets its error if it has none yet."""
        self.first_failed = min(self.first_failed or step.serial, step.serial)
        if step.error is None:
            self.explain(step)
        if step.accepted is not None:
            self._accepted.append(step)

    def is_told(self, error: BaseException | None) -> bool:
        """Whether the user has seen this error since the group was last made ready."""
        return error is not None and error is self._reported

    def take_accepted(self) -> list[Step]:
        """The steps to resend, in order: accepted ones that were lost with a replica, but not too often.

        If the set of replicas has changed since, their arguments do not exist any more, and they fail.
        """
        failed, self._accepted = self._accepted, []
        again: list[Step] = []
        for step in sorted(failed, key=lambda one: one.serial):
            same = step.places is step.group.places
            if step.accepted is not None and same and isinstance(step.error, LOSSES):
                step.accepted.losses += 1
                if step.accepted.losses < MOST_LOSSES:
                    again.append(step)
                    continue
            step.accepted = None
        return again

    def explain(self, step: Step) -> None:
        """Sets the error of a failed step; this may change when the step that caused the failure ends."""
        step.error = step.merge_error or step_error(step, self.cause)
        if self.cause is None and is_effect(step):
            self._effects.append(step)
        else:
            self._found_cause(step.error)

    def is_effect(self, step: Step) -> bool:
        """Whether the failure of an earlier step that has not ended cut this one short; a faster replica was in it."""
        return step in self._effects

    def owe(self, error: BaseException | None) -> None:
        """Marks this error as unreported, unless another one is unreported or the user has seen the same."""
        if self.unreported is None and error is not None and not _is_told(error, self._reported):
            self.unreported = error

    def raise_unreported(self, *, losses: bool = True) -> None:
        """Raises the unreported error, if there is one.

        Args:
          losses: Whether to raise the error of a lost replica, too; otherwise it stays unreported.
        """
        if not losses and isinstance(self.unreported, LOSSES):
            return
        error, self.unreported = self.unreported, None
        if error is not None:
            raise error

    def reported(self, error: BaseException | None) -> None:
        """Records that the user has seen this error."""
        self._reported = error
        if _is_told(self.unreported, error):
            self.unreported = None

    def forget(self) -> None:
        """Drops all failures, because the user has stopped these steps."""
        self.unreported = None
        self._accepted.clear()
        self._effects.clear()

    def settle(self) -> int:
        """Resets all, because failed steps will be undone. Returns the first step that failed, 0 if none did."""
        first, self.first_failed = self.first_failed, 0
        self.cause = self._reported = None
        self._effects.clear()
        return first

    def _found_cause(self, error: BaseException) -> None:
        """Uses this error also for earlier steps that it cut short."""
        self.cause = self.cause or error
        for effect in self._effects:
            self.reported(effect.error)
            effect.error = self.cause
        self._effects.clear()


def _is_told(error: BaseException | None, shown: BaseException | None) -> bool:
    """Whether a user who has seen one error also knows the other, as all steps in progress report the same loss."""
    if not (isinstance(error, LOSSES) and isinstance(shown, LOSSES)):
        return error is shown
    return (error.replica, error.generation) == (shown.replica, shown.generation)
