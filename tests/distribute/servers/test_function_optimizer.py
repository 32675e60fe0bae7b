"""A step that the user wrote: whole variables, shards and rows; what it keeps; once; and what it says when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.coordinator.cluster_coordinator import ClusterCoordinator
from workbench.distribute.server_optimizers import Adam, FunctionOptimizer, SlotState, apply_gradients
from workbench.errors import CaptureError, InvalidArgumentError, UnknownError


def rmsprop(values: Any, gradient: Any, slots: Any, step: int) -> Any:
    mean = 0.9 * slots["mean"] + 0.1 * gradient**2
    return values - 0.1 / step * gradient / np.sqrt(mean + 1e-7), {"mean": mean}


def expected(values: Any, gradients: list[Any]) -> Any:
    slots = {"mean": np.full_like(values, 0.5)}
    for step, gradient in enumerate(gradients, 1):
        values, slots = rmsprop(values, gradient, slots, step)
    return values


def test_it_is_called_with_whole_variables_and_shards(servers: Any, in_three: Any) -> None:
    start = np.arange(10.0).reshape(5, 2)
    gradients = [np.random.default_rng(n).normal(size=(5, 2)) for n in range(3)]
    optimizer = FunctionOptimizer(rmsprop, slots={"mean": 0.5})
    for strategy in (servers, in_three):
        with strategy.scope():
            w = wb.Variable(start, name="w")
        for gradient in gradients:
            assert apply_gradients(optimizer, [(gradient, w)]) == 0

        np.testing.assert_allclose(w, expected(start, gradients), rtol=1e-12)


def test_of_a_sparse_gradient_it_gets_the_rows_and_their_slots_with_duplicates_added_up(
    in_three: Any,
) -> None:
    with in_three.scope():
        w = wb.Variable(np.ones((6, 2)), name="w")
    optimizer = FunctionOptimizer(rmsprop, {"mean": 0.5})
    values = np.arange(6.0).reshape(3, 2)

    for _ in range(2):
        apply_gradients(optimizer, [(wb.IndexedSlices(values, [5, 0, 5]), w)])

    gradient = np.array([values[1], values[0] + values[2]])
    np.testing.assert_allclose(np.asarray(w)[[0, 5]], expected(np.ones((2, 2)), [gradient] * 2), rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(w)[1:5], np.ones((4, 2)))


def test_it_may_change_what_it_gets_and_need_no_slots(servers: Any) -> None:
    def step(values: Any, gradient: Any, slots: Any, step: int) -> Any:
        values -= gradient
        gradient *= 0
        return values, slots

    with servers.scope():
        w = wb.Variable(np.ones(3, np.float32), name="w")
    apply_gradients(FunctionOptimizer(step), [(np.full(3, 0.25), w)])

    assert np.asarray(w).tolist() == [0.75] * 3


def test_a_scheduled_function_uses_one_that_it_captures(servers: Any) -> None:
    rate = 0.5
    optimizer = FunctionOptimizer(lambda values, gradient, slots, step: (values - rate * gradient, slots))
    rate = 100.0  # read when the optimizer was created
    with servers.scope():
        w = wb.Variable(0.0, name="w")
    coordinator = ClusterCoordinator(servers)

    for _ in range(10):
        coordinator.schedule(lambda: apply_gradients(optimizer, [(np.float32(-1.0), w)]))
    coordinator.join()

    assert float(w) == 5


def test_what_it_raises_names_server_variable_update_and_line_and_changes_nothing(servers: Any) -> None:
    def step(values: Any, gradient: Any, slots: Any, step: int) -> Any:
        if step == 2:
            raise ZeroDivisionError("nothing to divide by")
        return values - gradient, {"seen": slots["seen"] + 1}

    with servers.scope():
        w = wb.Variable(np.zeros(2), name="w")
    optimizer = FunctionOptimizer(step, {"seen": 0.0})
    apply_gradients(optimizer, [(np.ones(2), w)])

    text = (
        r"the step step on ps:\d, variable 'w:0', update 2, raised ZeroDivisionError: nothing to divide by "
        r"\(test_function_optimizer.py, line \d+\); the variable is as before"
    )
    with pytest.raises(UnknownError, match=text):
        apply_gradients(optimizer, [(np.ones(2), w)])

    assert np.asarray(w).tolist() == [-1, -1]
    assert SlotState(optimizer, [w]).state_dict()["w"]["slots"]["seen"].tolist() == [1, 1]
    coordinator = ClusterCoordinator(servers)
    coordinator.schedule(lambda: apply_gradients(optimizer, [(np.ones(2), w)]))
    with pytest.raises(UnknownError, match="update 2, raised ZeroDivisionError"):
        coordinator.join()


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda values, gradient, slots, step: values, r"must return \(values, slots\), got ndarray"),
        (lambda values, gradient, slots, step: (values, {}), r"with the slots \['m'\], got \[\]"),
        (lambda values, gradient, slots, step: (values[:1], slots), r"values of shape \(2,\).*got \(1,\)"),
        (lambda values, gradient, slots, step: (values * 1j, slots), "complex128"),
        (lambda values, gradient, slots, step: (values, {"m": 0.0}), r"slot 'm' of shape \(2,\)"),
    ],
)
def test_what_it_returns_is_looked_at(servers: Any, step: Any, text: str) -> None:
    with servers.scope():
        w = wb.Variable(np.zeros(2), name="w")

    with pytest.raises(InvalidArgumentError, match=text):
        apply_gradients(FunctionOptimizer(step, {"m": 0.0}), [(np.ones(2), w)])

    assert np.asarray(w).tolist() == [0, 0]


def test_one_that_is_too_large_to_travel_with_each_update_is_refused() -> None:
    large = np.zeros(100_000)

    with pytest.raises(CaptureError, match="keep arrays of the variable's shape in slots"):
        FunctionOptimizer(lambda values, gradient, slots, step: (values + large, slots))


@pytest.mark.parametrize("point", ["server.after_journal", "server.before_reply"])
def test_a_step_whose_answer_was_lost_counts_once_and_is_not_called_again(point: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def step(values: Any, gradient: Any, slots: Any, step: int) -> Any:
        with calls.open("a") as file:
            file.write("x")
        return values + gradient, {"sum": slots["sum"] + gradient}

    rule = {"point": point, "nth": 4, "action": "kill", "once": str(tmp_path / "killed")}
    with wb.connect(replicas=2, replace=True, environment={"WB_FAULTS": json.dumps([rule])}):
        strategy = distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            w = wb.Variable(np.zeros(2), name="w")
        optimizer = FunctionOptimizer(step, {"sum": 0.0})
        for _ in range(6):
            apply_gradients(optimizer, [(np.ones(2), w)])

        assert np.asarray(w).tolist() == [6, 6]
        state = SlotState(optimizer, [w]).state_dict()["w"]
        assert (state["steps"], state["slots"]["sum"].tolist()) == (6, [6, 6])
        assert strategy.hosting.servers[0].restarts == 1
    assert (tmp_path / "killed").exists()
    assert calls.read_text() == "x" * 6


@pytest.mark.parametrize("optimizer", [Adam(0.1), FunctionOptimizer(rmsprop, {"mean": 0.5})])
def test_training_goes_on_from_a_checkpoint_on_other_shards(
    servers: Any, in_three: Any, optimizer: Any, tmp_path: Path
) -> None:
    start = np.arange(10.0).reshape(5, 2)
    gradients = [np.random.default_rng(n).normal(size=(5, 2)) for n in range(4)]
    with servers.scope():
        w = wb.Variable(start, name="w")
    for gradient in gradients[:2]:
        apply_gradients(optimizer, [(gradient, w)])
    path = wb.Checkpoint(w=w, slots=SlotState(optimizer, [w])).write(tmp_path / "saved")
    for gradient in gradients[2:]:
        apply_gradients(optimizer, [(gradient, w)])

    with in_three.scope():
        other = wb.Variable(np.zeros((5, 2)), name="w")
    wb.Checkpoint(w=other, slots=SlotState(optimizer, [other])).restore(path)
    for gradient in gradients[2:]:
        apply_gradients(optimizer, [(gradient, other)])

    np.testing.assert_allclose(other, np.asarray(w), rtol=1e-12)


def test_a_slot_may_have_the_name_of_the_step_count(servers: Any, tmp_path: Path) -> None:
    def step(values: Any, gradient: Any, slots: Any, step: int) -> Any:
        return values + gradient, {"steps": slots["steps"] + 10 * step}

    optimizer = FunctionOptimizer(step, {"steps": 0.0})
    with servers.scope():
        w = wb.Variable(np.zeros(2), name="w")
    kept = wb.Checkpoint(w=w, slots=SlotState(optimizer, [w]))
    for _ in range(2):
        apply_gradients(optimizer, [(np.ones(2), w)])
    path = kept.write(tmp_path / "saved")
    apply_gradients(optimizer, [(np.ones(2), w)])

    kept.restore(path)

    state = SlotState(optimizer, [w]).state_dict()["w"]
    assert (state["steps"], state["slots"]["steps"].tolist()) == (2, [30, 30])


def test_slots_are_of_variables_on_servers_with_different_names(servers: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="SlotState needs variables on parameter servers"):
        SlotState(Adam(), [wb.Variable(0.0)])
    with servers.scope():
        w = wb.Variable(0.0, name="w")
    with pytest.raises(InvalidArgumentError, match="the same name"):
        SlotState(Adam(), [w, w])
