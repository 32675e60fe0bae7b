"""What checks of numbers cost: an assertion that passes, and training while each operation is checked.

Steps with checks are given as a multiple of those without.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import network
from tests.benchmarks.measure import Script
from workbench import debugging

ASSERTION = "slowest assertion of a scalar that passes"
STEP = "step with enable_check_numerics"
TRACED = "traced step with enable_check_numerics"
CALLS, BATCHES, ROUNDS = 200, 10, 15
TURNS, STEPS = 9, 300

X, Y = np.float32(3), np.float32(4)
ASSERTIONS: dict[str, Callable[[], Any]] = {
    "Assert": lambda: debugging.Assert(True, [X]),
    "assert_all_finite": lambda: debugging.assert_all_finite(X, ""),
    "assert_equal": lambda: debugging.assert_equal(X, X),
    "assert_greater": lambda: debugging.assert_greater(Y, X),
    "assert_greater_equal": lambda: debugging.assert_greater_equal(Y, X),
    "assert_integer": lambda: debugging.assert_integer(3),
    "assert_less": lambda: debugging.assert_less(X, Y),
    "assert_less_equal": lambda: debugging.assert_less_equal(X, Y),
    "assert_near": lambda: debugging.assert_near(X, X),
    "assert_negative": lambda: debugging.assert_negative(-X),
    "assert_non_negative": lambda: debugging.assert_non_negative(X),
    "assert_non_positive": lambda: debugging.assert_non_positive(-X),
    "assert_none_equal": lambda: debugging.assert_none_equal(X, Y),
    "assert_positive": lambda: debugging.assert_positive(X),
    "assert_proper_iterable": lambda: debugging.assert_proper_iterable([X]),
    "assert_rank": lambda: debugging.assert_rank(X, 0),
    "assert_rank_at_least": lambda: debugging.assert_rank_at_least(X, 0),
    "assert_rank_in": lambda: debugging.assert_rank_in(X, (0, 1)),
    "assert_same_float_dtype": lambda: debugging.assert_same_float_dtype([X]),
    "assert_scalar": lambda: debugging.assert_scalar(X),
    "assert_shapes": lambda: debugging.assert_shapes([(X, ())]),
    "assert_type": lambda: debugging.assert_type(X, np.float32),
    "check_numerics": lambda: debugging.check_numerics(X, ""),
}


def assertions(script: Script) -> None:
    """The mean of many calls of each, in the best of some batches; what counts is the slowest of them."""
    if not script.wants(ASSERTION):
        return
    found: dict[str, list[float]] = {name: [] for name in ASSERTIONS}
    for _ in range(max(3, int(ROUNDS * script.options.scale))):
        for name, call in ASSERTIONS.items():
            found[name].append(min(timeit.repeat(call, number=CALLS, repeat=BATCHES)) / CALLS)
    with script.case("workbench", ASSERTION, replicas=0) as case:
        case.samples = max(found.values(), key=np.median)


def turns(script: Script, what: str, steps: Callable[[], None]) -> None:
    """Steps with checks and without, each pair side by side, in turns."""

    def seconds(checked: bool) -> float:
        if checked:
            debugging.enable_check_numerics()
        try:
            steps()  # covers one-time preparation and compilation
            start = time.perf_counter()
            steps()
            return time.perf_counter() - start
        finally:
            debugging.disable_check_numerics()

    if not script.wants(what):
        return
    with script.case("workbench", what, unit="×", scale=1.0) as case:
        pairs = [(seconds(False), seconds(True)) for _ in range(max(3, int(TURNS * script.options.scale)))]
        case.samples = [checked / without for without, checked in pairs]


def training(strategy: Any) -> Callable[[], None]:
    """Steps of the network in NumPy, on two replicas."""
    with strategy.scope():
        weights = [wb.Variable(w) for w in network.parameters()]
    source = wb.data.Dataset.from_tensor_slices(network.data())
    batches: Iterator[Any] = iter(
        strategy.distribute_dataset(source.repeat().batch(network.BATCH, drop_remainder=True))
    )

    @wb.function
    def train(batch: Any) -> float:
        images, labels = batch
        arrays = [np.asarray(weight) for weight in weights]
        gradients = [np.empty_like(array) for array in arrays]
        loss = network.loss_and_gradients(arrays, images, labels, gradients)
        totals = wb.distribute.get_replica_context().all_reduce("sum", gradients)
        for weight, total in zip(weights, totals, strict=True):
            weight.assign_sub(total * np.float32(network.RATE))
        return loss

    def steps() -> None:
        for _ in range(STEPS):
            result = strategy.run(train, (next(batches),))
        strategy.reduce("SUM", result, axis=None)

    return steps


def traced(strategy: Any) -> Callable[[], None]:
    """Steps of a compiled program, on two emulated cores."""
    import jax.numpy as jnp

    with strategy.scope():
        weight = wb.Variable(np.full((256, 256), 1e-3, np.float32))
    x = np.ones((256, 256), np.float32)

    @wb.function
    def step(x: Any) -> Any:
        out = jnp.tanh(x @ jnp.asarray(weight))
        weight.assign_sub(1e-6 * (x.T @ out))
        return out.mean()

    def steps() -> None:
        for _ in range(STEPS // 3):
            result = strategy.run(step, (x,))
        strategy.reduce("SUM", result, axis=None)

    return steps


def main() -> None:
    """Measures assertions, then steps in NumPy, then steps of a compiled program."""
    script = Script("debugging", __doc__)
    assertions(script)
    with wb.connect(replicas=2):
        turns(script, STEP, training(wb.MirroredStrategy()))
    with wb.connect(tpu=2, replace=True):
        turns(script, TRACED, traced(wb.TPUStrategy()))


if __name__ == "__main__":
    main()
