"""Steps that parameter servers make: the textbook's, on whole variables, shards and rows, each once."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from workbench import distribute
from workbench.distribute.server_optimizers import SGD, Adagrad, Adam, apply_gradients
from workbench.errors import InvalidArgumentError


def _adam(w: Any, gradients: list[Any], rate: float = 0.1) -> Any:
    m = v = np.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-7)
    return w


def _momentum(w: Any, gradients: list[Any], nesterov: bool) -> Any:
    m = np.zeros_like(w)
    for g in gradients:
        m = 0.9 * m - 0.1 * g
        w = w + (0.9 * m - 0.1 * g if nesterov else m)
    return w


def _adagrad(w: Any, gradients: list[Any]) -> Any:
    a = np.full_like(w, 0.1)
    for g in gradients:
        a = a + g * g
        w = w - 0.1 * g / np.sqrt(a + 1e-7)
    return w


RULES = [
    (SGD(0.1), lambda w, gs: w - 0.1 * sum(gs)),
    (SGD(0.1, momentum=0.9), lambda w, gs: _momentum(w, gs, False)),
    (SGD(0.1, momentum=0.9, nesterov=True), lambda w, gs: _momentum(w, gs, True)),
    (Adagrad(0.1), _adagrad),
    (Adam(0.1), _adam),
]


@pytest.mark.parametrize(("rule", "expected"), RULES)
def test_steps_are_those_of_the_textbook_on_whole_variables_and_shards(
    servers: Any, in_three: Any, rule: Any, expected: Any
) -> None:
    start = np.arange(10.0).reshape(5, 2)
    gradients = [np.random.default_rng(n).normal(size=(5, 2)) for n in range(4)]
    for strategy in (servers, in_three):
        with strategy.scope():
            w = wb.Variable(start, name="w")
        for gradient in gradients:
            assert apply_gradients(rule, [(gradient, w), (None, w)]) == 0

        np.testing.assert_allclose(w, expected(start, gradients), rtol=1e-12)


@pytest.mark.parametrize(("rule", "expected"), RULES)
def test_a_sparse_step_changes_its_rows_alone_and_adds_up_duplicates(
    in_three: Any, rule: Any, expected: Any
) -> None:
    with in_three.scope():
        w = wb.Variable(np.ones((6, 2)), name="w")
    values = np.arange(6.0).reshape(3, 2)

    apply_gradients(rule, [(wb.IndexedSlices(values, [5, 0, 5]), w)])

    changed = expected(np.ones((2, 2)), [np.array([values[1], values[0] + values[2]])])
    np.testing.assert_allclose(np.asarray(w)[[0, 5]], changed, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(w)[1:5], np.ones((4, 2)))


def test_a_step_that_is_too_stale_is_left_out_and_counted(servers: Any) -> None:
    with servers.scope():
        w = wb.Variable([0.0])
    w.read_value()
    for _ in range(3):
        w.assign_add([1.0])

    assert apply_gradients(SGD(1.0), [(np.ones(1, "float32"), w)], max_staleness=2) == 1
    assert apply_gradients(SGD(1.0), [(np.ones(1, "float32"), w)], max_staleness=3) == 0
    w.read_value()
    assert apply_gradients(SGD(1.0), [(np.ones(1, "float32"), w)], max_staleness=0) == 0
    assert w.read_value().tolist() == [1.0]


def test_workers_train_together(servers: Any) -> None:
    coordinator = distribute.coordinator.ClusterCoordinator(servers)
    true = np.array([1.0, -2.0, 3.0])
    with servers.scope():
        w = wb.Variable(np.zeros(3))

    @wb.function
    def step(seed: int) -> float:
        x = np.random.default_rng(seed).normal(size=(32, 3))
        error = x @ (w.read_value() - true)
        apply_gradients(SGD(0.1), [(x.T @ error / 32, w)], max_staleness=4)
        return float((error**2).mean())

    for seed in range(300):
        coordinator.schedule(step, args=(seed,))
    coordinator.join()

    np.testing.assert_allclose(w, true, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: SGD("0.1"), TypeError, "SGD: learning_rate must be a number, got '0.1'"),  # type: ignore[arg-type]
        (lambda: SGD(0.1, momentum=None), TypeError, "SGD: momentum must be a number from 0 to 1, got None"),  # type: ignore[arg-type]
        (lambda: Adagrad(np.nan), InvalidArgumentError, "Adagrad: learning_rate must be finite, got nan"),
        (
            lambda: SGD(np.array([0.1, 0.2])),
            TypeError,
            r"SGD: learning_rate must be a number, got array\(.*\)",
        ),  # type: ignore[arg-type]
        (lambda: SGD(nesterov="yes"), TypeError, "SGD: nesterov must be True or False, got 'yes'"),  # type: ignore[arg-type]
        (lambda: SGD(momentum=5), InvalidArgumentError, "SGD: momentum must be a number from 0 to 1, got 5"),
        (
            lambda: Adagrad(initial_accumulator_value=-1),
            InvalidArgumentError,
            "Adagrad: initial_accumulator_value must be 0 or more, got -1",
        ),
        (lambda: Adam(epsilon=-1), InvalidArgumentError, "Adam: epsilon must be 0 or more, got -1"),
        (lambda: SGD(10**400), InvalidArgumentError, "SGD: learning_rate must be finite, got 10*"),
        (
            lambda: Adam(beta_2=1),
            InvalidArgumentError,
            "Adam: beta_2 must be a share, from 0 to less than 1, got 1",
        ),
    ],
)
def test_a_setting_that_no_step_can_be_made_with_is_refused(
    make: Any, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=f"^{told}$"):
        make()


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (np.array("0.1"), "array('0.1', dtype='<U3')"),
        (np.complex64(1 + 1j), "np.complex64(1+1j)"),
        (np.array(1 + 1j), "array(1.+1.j)"),
        (np.datetime64(1, "s"), "np.datetime64('1970-01-01T00:00:01')"),
    ],
)
def test_texts_complex_numbers_and_dates_are_no_settings(wrong: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"^SGD: learning_rate must be a number, got {re.escape(shown)}$"):
        SGD(wrong)


@pytest.mark.parametrize("number", [np.array(0.5), ml_dtypes.bfloat16(0.5), Fraction(1, 2), Decimal("0.5")])
def test_any_real_number_is_a_setting(number: Any) -> None:
    assert SGD(number) == SGD(0.5)


def test_settings_may_be_numbers_of_numpy(servers: Any) -> None:
    with servers.scope():
        w = wb.Variable([1.0])
    apply_gradients(SGD(np.float32(0.5)), [(np.ones(1, "float32"), w)], max_staleness=np.int64(8))
    assert w.read_value().tolist() == [0.5]


def test_what_is_no_optimizer_no_pair_and_no_staleness_is_named(servers: Any) -> None:
    with servers.scope():
        w = wb.Variable([1.0])
    pair = (np.ones(1, "float32"), w)

    with pytest.raises(TypeError, match=r"takes an optimizer of .*server_optimizers, got 'sgd'"):
        apply_gradients("sgd", [pair])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes pairs \(gradient, variable\), got ndarray"):
        apply_gradients(SGD(), [np.ones(4)])
    with pytest.raises(TypeError, match=r"takes pairs \(gradient, variable\), got 3"):
        apply_gradients(SGD(), 3)  # type: ignore[arg-type]
    for wrong in (-1, "8", 1.5, True, np.array([1, 2])):
        with pytest.raises(
            InvalidArgumentError,
            match=f"max_staleness must be an integer of at least 0, .*got {re.escape(repr(wrong))}",
        ):
            apply_gradients(SGD(), [pair], max_staleness=wrong)  # type: ignore[arg-type]
    assert w.read_value().tolist() == [1.0]


def test_what_is_no_variable_on_servers_is_refused_before_anything_changes(servers: Any) -> None:
    with servers.scope():
        w, whole = wb.Variable([1.0]), wb.Variable([1])

    with pytest.raises(InvalidArgumentError, match="scope"):
        apply_gradients(SGD(), [(np.ones(1, "float32"), w), (np.ones(1), wb.Variable([1.0]))])
    with pytest.raises(TypeError, match="floating"):
        apply_gradients(SGD(), [(np.ones(1), whole)])
    with pytest.raises(ValueError, match="shape"):
        apply_gradients(SGD(), [(np.ones(2, "float32"), w)])
    assert w.read_value().tolist() == [1.0]
