"""Random programs of two workers that ask and call things in every context, the same ones on both."""

from __future__ import annotations

from tests.differential.cases import contexts
from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json


def case(values: Values) -> Json:
    """The next program."""
    return {"kind": "multi_worker_program", "workers": 2, "code": contexts.program(values, replicas=2)}
