"""Messages travel as plain tuples, and are read by name."""

from __future__ import annotations

import pickle
import pickletools

import pytest

from workbench.runtime.comm.failure_report import report
from workbench.runtime.comm.messages import (
    RUN,
    Done,
    DoneForRanks,
    Failed,
    Outcome,
    Run,
    carried,
    dumps,
    loads,
    read_outcome,
)


@pytest.mark.parametrize(
    "outcome",
    [Done(1, 7, [(0.5,)]), DoneForRanks((0, 1), 7, [(0.5,)]), Failed(1, report(1, ValueError("no")))],
    ids=lambda outcome: type(outcome).__name__,
)
def test_an_outcome_comes_back_as_it_was_carried(outcome: Outcome) -> None:
    found = read_outcome(loads(dumps(carried(outcome))))
    assert type(found) is type(outcome)
    assert found == outcome


def test_a_result_travels_without_a_class() -> None:
    data = pickle.dumps(carried(Done(1, 7, [(0.5,)])), protocol=5)
    assert "GLOBAL" not in {code.name.removeprefix("STACK_") for code, _, _ in pickletools.genops(data)}


def test_a_step_is_read_by_name() -> None:
    step = Run(9, 1, 2, 4, "function", None, (0,), [(3, 0)], 8, False)
    assert Run.read((RUN, *step)) == step
    assert (step.serial, step.step, step.committed, step.nested) == (9, 4, 8, False)
