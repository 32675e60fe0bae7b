"""The first NaN: text, button, pane, log and recorded run name the same replica, step, collective and line, or none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.runtime.replica.env import current_env

COUNT, WHO, WHEN = 40, 1, 23
Strategy = wb.MirroredStrategy


def trained(strategy: Strategy, spoil: Callable[[np.ndarray, int, int], np.ndarray]) -> wb.Variable:
    with strategy.scope():
        w = wb.Variable(np.zeros(8, np.float32), name="w")

    def step(k: int) -> None:
        context: Any = wb.distribute.get_replica_context()
        gradient = spoil(np.ones(8, np.float32), context.replica_id_in_sync_group, k)
        w.assign_sub(0.1 * context.all_reduce("mean", gradient))

    for k in range(COUNT):
        strategy.run(step, args=(k,))
    return w


def spoilt_by_one(gradient: np.ndarray, replica: int, k: int) -> np.ndarray:
    if (replica, k) == (WHO, WHEN):
        gradient[5] = np.nan
    return gradient


@pytest.fixture
def begin(strategy: Strategy) -> int:
    """The number that the strategy's next step gets."""
    return int(strategy.run(lambda: current_env().step).values[0]) + 1


def line_of_all_reduce() -> int:
    lines, first = inspect.getsourcelines(trained)
    return first + next(number for number, line in enumerate(lines) if "all_reduce(" in line)


def test_one_replica_that_spoils_all_copies_is_named_everywhere(
    strategy: Strategy, begin: int, tmp_path: Path
) -> None:
    with wb.record(tmp_path / "run.parquet"):
        found = wb.inspect(trained(strategy, spoilt_by_one))
    where = f"test_first_nan.py:{line_of_all_reduce()}"
    said = f"replica {WHO} gave it to all_reduce #1 at {where} in step {begin + WHEN}"
    first = found.model.first

    assert first is not None
    assert first.text.startswith("first NaN: w")
    assert said in first.text
    assert said in " ".join(repr(found).split())
    assert said in found._repr_html_()
    assert found.source().model()["first"]["text"] == first.text
    assert "replica 0 " not in first.text
    assert first.replica == WHO
    run = wb.open_run(tmp_path / "run.parquet")
    assert run.model()["values"]["first"]["text"] == first.text
    assert said in " ".join(repr(run).split())
    (alert,) = [event for event in run.events if event.name == "nan"]
    assert said in alert.message
    assert (alert.replica, alert.step) == (-1, -1)


def test_where_it_came_from_is_not_guessed(strategy: Strategy) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(3, np.float32), name="v")

    def step(k: int) -> None:
        v.assign(np.full(3, np.nan if k == 5 else 1.0, np.float32) if k < 6 else v.value())

    for k in range(8):  # no collective ever sees it
        strategy.run(step, args=(k,))
    found = wb.inspect(v)
    first = found.model.first
    assert first is not None
    assert "all 2 copies · between steps" in first.text
    assert "origin not known" in first.text
    assert "replica 0" not in first.text
    assert "enable_check_numerics() makes the next run stop where it appears" in " ".join(repr(found).split())


def test_a_result_of_one_replica_names_it_without_any_collective(strategy: Strategy, begin: int) -> None:
    def step(k: int) -> float:
        return float("nan") if k == 2 and current_env().rank == 1 else 1.0

    for k in range(3):
        losses = strategy.run(step, args=(k,))
    first = wb.inspect(losses).model.first
    assert first is not None
    assert first.text == f"first NaN: losses · replica 1 · step {begin + 2}"


def test_finite_values_have_no_first(strategy: Strategy) -> None:
    assert wb.inspect(strategy.run(lambda: 1.0)).model.first is None
