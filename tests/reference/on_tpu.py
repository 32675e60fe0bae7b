"""Cases that a traced function cannot express: what tracing refused, and why."""

from __future__ import annotations

from tests.reference.observation import Observed
from tests.reference.outcomes import NotExpressible
from workbench.errors import TracingError

_REASONS = {
    "merge_call": "merge_call stops replicas for a function in the notebook, and a compiled program cannot stop",
    "wb.Variable(...) was called": "creates a variable in a replica function",
    "has another shape on some replicas": "components have different shapes, and a program has one shape",
    "`if`": "branches in Python on a value",
    "given to NumPy": "computes with NumPy",
    "needed as a concrete number": "needs a value while it is traced",
    "an array of object": "computes with texts",
    "arrays of numbers only": "computes with something that is no array of numbers",
    "device differs by replica": "asks a replica for its device",
}


def refuse_untraceable(observed: Observed) -> None:
    """Tells a case that tracing refused from one that failed.

    Raises:
      NotExpressible: With the reason.
    """
    error = observed.error
    text = str(error)
    if isinstance(error, TracingError) or "has another shape on some replicas" in text:
        raise NotExpressible(next((reason for part, reason in _REASONS.items() if part in text), text[:200]))
