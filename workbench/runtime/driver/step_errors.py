"""Which failures of a group's steps are causes and which effects, and what of it the user has been told."""

from __future__ import annotations

from workbench.errors import ReplicaLost, ReplicaStalled
from workbench.runtime.driver.accepted_steps import MOST_LOSSES
from workbench.runtime.driver.failures import is_effect, step_error
from workbench.runtime.driver.step import Step

LOSSES = (ReplicaLost, ReplicaStalled)


class StepErrors:
    """What went wrong in one group since it was last made ready.

    Attributes:
      cause: The first failure that did not follow from another.
      first_failed: Serial of the first step that failed, 0 if none did.
      unreported: An error that the user has not been shown.
    """

    def __init__(self) -> None:
        self.cause: BaseException | None = None
        self.first_failed = 0
        self.unreported: BaseException | None = None
        self._reported: BaseException | None = None
        self._accepted: list[Step] = []  # failed, and may be sent again
        self._effects: list[Step] = []  # failed because of a step that has not ended yet

    def failed(self, step: Step) -> None:
        """A step has failed everywhere it ran: remembers it, and gives it its error if it has none yet."""
        self.first_failed = min(self.first_failed or step.serial, step.serial)
        if step.error is None:
            self.explain(step)
        if step.accepted is not None:
            self._accepted.append(step)

    def is_told(self, error: BaseException | None) -> bool:
        """Whether the user has been shown this error, since the last time that everything was made ready."""
        return error is not None and error is self._reported

    def take_accepted(self) -> list[Step]:
        """The steps to be sent again, in their order: accepted, and lost with a replica, not too often yet.

        Where other replicas take part since then, their arguments are not there as they were: those fail.
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
        """Gives a failed step its error; it may get another when a step ends whose failure was the cause."""
        step.error = step.merge_error or step_error(step, self.cause)
        if self.cause is None and is_effect(step):
            self._effects.append(step)
        else:
            self._found_cause(step.error)

    def is_effect(self, step: Step) -> bool:
        """Whether a step was cut short by the failure of one that has not ended yet: a faster replica was there."""
        return step in self._effects

    def owe(self, error: BaseException | None) -> None:
        """The user has to be shown this error, unless another one is still to be shown, or told of the same."""
        if self.unreported is None and error is not None and not _is_told(error, self._reported):
            self.unreported = error

    def raise_unreported(self, *, losses: bool = True) -> None:
        """Shows the user the error that is still to be shown, if there is one.

        Args:
          losses: Also that of a lost replica; else that one stays to be shown.
        """
        if not losses and isinstance(self.unreported, LOSSES):
            return
        error, self.unreported = self.unreported, None
        if error is not None:
            raise error

    def reported(self, error: BaseException | None) -> None:
        """The user has been shown this error."""
        self._reported = error
        if _is_told(self.unreported, error):
            self.unreported = None

    def forget(self) -> None:
        """The user stopped the steps that failed: nothing to report."""
        self.unreported = None
        self._accepted.clear()
        self._effects.clear()

    def settle(self) -> int:
        """What failed is going to be undone: starts anew. Returns the first step that failed, 0 if none did."""
        first, self.first_failed = self.first_failed, 0
        self.cause = self._reported = None
        self._effects.clear()
        return first

    def _found_cause(self, error: BaseException) -> None:
        """This is also the cause of earlier steps that were cut short."""
        self.cause = self.cause or error
        for effect in self._effects:
            self.reported(effect.error)
            effect.error = self.cause
        self._effects.clear()


def _is_told(error: BaseException | None, shown: BaseException | None) -> bool:
    """Whether a user who has seen one error knows the other: all steps in progress report the same lost replica."""
    if not (isinstance(error, LOSSES) and isinstance(shown, LOSSES)):
        return error is shown
    return (error.replica, error.generation) == (shown.replica, shown.generation)
