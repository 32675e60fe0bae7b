"""The record of why a group of replicas cannot continue; it wakes every waiter, including those in other processes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from workbench.errors import (
    CollectiveAborted,
    CollectiveMismatch,
    DeadlineExceededError,
    ReplicaLost,
    StaleGeneration,
    WorkbenchError,
)

_MAX_TEXT = 2000  # characters; any text of this length must fit the field of a shared control page

Kind = Literal["mismatch", "aborted", "lost", "deadline", "closed"]
_ERRORS: dict[Kind, type[WorkbenchError]] = {
    "mismatch": CollectiveMismatch,
    "aborted": CollectiveAborted,
    "lost": ReplicaLost,
    "deadline": DeadlineExceededError,
    "closed": StaleGeneration,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong first in a generation of a group.

    Attributes:
      kind: The kind of error that it becomes.
      text: The error's message.
      replica: The replica concerned, or -1.
      generation: The generation of the communicator.
      step: Step in which it happened, or -1.
      collective: Such as "all_reduce #4", or "".
      origin: The exception itself, in the process where it happened.
    """

    kind: Kind
    text: str
    replica: int = -1
    generation: int = -1
    step: int = -1
    collective: str = ""
    origin: BaseException | None = field(default=None, compare=False)

    @classmethod
    def of(cls, error: BaseException, generation: int = -1) -> Failure:
        """The record for an `abort` with `error`."""
        text = f"aborted because of {type(error).__name__}: {_text(error)}"
        replica, step = getattr(error, "replica", -1), getattr(error, "step", -1)
        return cls("aborted", text, replica=replica, generation=generation, step=step, origin=error)

    @classmethod
    def again(cls, error: BaseException, generation: int = -1) -> Failure:
        """The record that makes peers raise the error that another link has raised here."""
        for kind, raised in _ERRORS.items():
            if type(error) is raised:
                return cls(
                    kind,
                    str(error),
                    replica=error.replica,
                    generation=error.generation,
                    step=error.step,
                    collective=error.collective,
                    origin=error.__cause__,
                )
        return cls.of(error, generation)

    def error(self) -> WorkbenchError:
        """A new exception for one waiter, with the original one as its cause if that is known."""
        error = _ERRORS[self.kind](
            self.text,
            generation=self.generation,
            replica=self.replica,
            step=self.step,
            collective=self.collective,
            cause=self.text if self.kind == "aborted" else "",
        )
        error.__cause__ = self.origin
        return error

    def encode(self) -> bytes:
        """As JSON, for another process."""
        row = [self.kind, self.text[:_MAX_TEXT], self.replica, self.generation, self.step, self.collective]
        return json.dumps(row).encode()

    @classmethod
    def decode(cls, data: bytes) -> Failure:
        """The inverse of `encode`."""
        kind, text, replica, generation, step, collective = json.loads(data)
        return cls(kind, text, replica=replica, generation=generation, step=step, collective=collective)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_TEXT]
    except Exception as broken:  # a user's exception may have a faulty __str__
        return f"(its text raised {type(broken).__name__})"
