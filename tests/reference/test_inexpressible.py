"""Which failures are excused: by the class and the text of an error together, or by what the program does."""

from __future__ import annotations

import pytest

from tests.reference.inexpressible import ON_TPU, changed_outside, excuse_of
from tests.reference.observation import Observed
from workbench.errors import InvalidArgumentError, TracingError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TracingError("fn cannot be traced: an array of object"), "computes with texts"),
        (TracingError("fn cannot be traced: a new reason"), None),
        (ValueError("fn cannot be traced: an array of object"), None),
        (TracingError("argument 0 has another shape on some replicas"), None),
        (
            InvalidArgumentError("argument 0 has another shape on some replicas"),
            "components have different shapes",
        ),
        (None, None),
    ],
)
def test_an_error_excuses_by_class_and_text(error: Exception | None, reason: str | None) -> None:
    found = excuse_of({"input": {"code": "result = 1"}}, Observed(error=error), ON_TPU)

    assert found is None if reason is None else str(found).startswith(reason)


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("seen = []\nrun(lambda: seen.append(1))", {"seen"}),
        ("seen = {}\ndef fn():\n    seen['a'] = 1\nstrategy.run(fn)", {"seen"}),
        (
            "seen = []\ndef merge(s):\n    seen.append(1)\nrun(lambda: get_replica_context().merge_call(merge))",
            {"seen"},
        ),
        ("seen = []\ndef fn():\n    return len(seen)\nrun(fn)\nseen.append(1)", set()),
        ("def fn():\n    seen = []\n    seen.append(1)\nrun(fn)", set()),
        ("seen = []\nstrategy.distribute_datasets_from_function(lambda c: seen.append(c))", set()),
    ],
)
def test_effects_on_the_notebook_are_recognised_by_what_the_program_does(
    code: str, changed: set[str]
) -> None:
    assert changed_outside(code) == changed
    reason = excuse_of({"input": {"code": code.split("\n")}}, Observed({"result": 1}), ())
    assert (reason is not None) == bool(changed)
