"""Cases that a traced function cannot express: what tracing refused, and why."""

from __future__ import annotations

from tests.reference.codec import Json
from tests.reference.observation import Observed
from tests.reference.outcomes import NotExpressible
from workbench.errors import TracingError

_REASONS = {
    "wb.Variable(...) was called": "creates a variable in a replica function",
    "has another shape on some replicas": "components have different shapes, and a program has one shape",
    "`if`": "branches in Python on a value",
    "given to NumPy": "computes with NumPy",
    "needed as a concrete number": "needs a value while it is traced",
    "an array of object": "computes with texts",
    "arrays of numbers only": "computes with something that is no array of numbers",
    "device differs by replica": "asks a replica for its device",
}

_EFFECTS = {
    "merge_call/program-002": "counts calls in a list, and a copy of the function runs once elsewhere"
}


def refuse_untraceable(case: Json, observed: Observed) -> None:
    """Tells a case that tracing refused from one that failed.

    Raises:
      NotExpressible: With the reason.
    """
    error = observed.error
    text = str(error)
    if case["id"] in _EFFECTS:
        raise NotExpressible(_EFFECTS[case["id"]])
    wanted = "error" in case["expected"]  # components of different shapes are one where the case says so
    if isinstance(error, TracingError) or ("has another shape on some replicas" in text and not wanted):
        raise NotExpressible(next((reason for part, reason in _REASONS.items() if part in text), text[:200]))
