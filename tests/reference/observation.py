"""What running a case showed, and whether that is what its vector expects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.reference.compare import Comparison
from tests.reference.errors import accepts, in_time
from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.specs import match_spec
from tests.reference.outcomes import Mismatch

_DELIVERED = ("elements", "steps", "epochs")


@dataclass(slots=True)
class Observed:
    """The outcome of a case, filled in while it runs.

    Attributes:
      fields: What was seen so far, under the names that expectations use.
      phase: What is being done at the moment, as in the errors of the format.
      error: The exception that ended the case.
      common_error: The exception in which all workers ended; expectations give it to them or to the case.
      comparison: How to compare its values.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    phase: str = "call"
    error: BaseException | None = None
    common_error: BaseException | None = None
    comparison: Comparison = field(default_factory=Comparison)

    def check(self, expected: Json) -> None:
        """Raises `Mismatch` unless this is what `expected` describes."""
        self._check_error(expected.get("error"), expected)
        for name, value in expected.items():
            if name == "error":
                continue
            if name not in self.fields:
                if self.error is None:
                    raise Mismatch(f"{name} was not observed")
                continue  # the error came before anything was created, which is allowed
            if name == "element_spec":
                match_spec(value, self.fields[name], name)
            elif name == "per_replica":
                self.comparison.match({name: value}, self.fields[name])
            else:
                self.comparison.match(value, self.fields[name], name)

    def _check_error(self, wanted: Json, expected: Json) -> None:
        if wanted is None:
            if self.error is not None:
                raise Mismatch(f"unexpected {_describe(self.error)} in phase {self.phase}") from self.error
            return
        error = self.error or self.common_error
        if error is None:
            raise Mismatch(f"expected the error {wanted['kind']}, got {self.fields!r}")
        if not accepts(wanted, error):
            raise Mismatch(f"expected the error {wanted}, got {_describe(error)}") from error
        delivered = [item for name in _DELIVERED for item in expected.get(name, ())]
        if not in_time(wanted, self.phase, delivered):
            raise Mismatch(f"expected {wanted}, but it came in phase {self.phase}") from error


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
