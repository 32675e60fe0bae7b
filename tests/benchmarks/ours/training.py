"""The network trained data-parallel on two replicas: fed from a distributed dataset, driven by `strategy.run`."""

from __future__ import annotations

import time
from time import perf_counter_ns as _now
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import marks, network
from tests.benchmarks.measure import Script

PARTS = ("step: arithmetic", "step: all_reduce", "step: assigning", "step: between two")
ALL_REDUCE_ALONE = "step: all_reduce, median"
DRIVER = "step: on the driver's thread"


def laps() -> Any:
    """What the replica has noted, shape `(steps, 4)`, in ns."""
    noted = np.array(marks.laps)
    marks.laps.clear()
    return noted


def main() -> None:
    """Measures steps per second."""
    script = Script("training", __doc__, threads=0)
    threads = bool(script.options.threads)
    with wb.connect(replicas=2, processes=not threads):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = [wb.Variable(w) for w in network.parameters()]

        @wb.function
        def train(batch: Any) -> float:
            began = _now()
            images, labels = batch
            arrays = [np.asarray(weight) for weight in weights]
            gradients = [np.empty_like(array) for array in arrays]
            loss = network.loss_and_gradients(arrays, images, labels, gradients)
            computed = _now()
            totals = wb.distribute.get_replica_context().all_reduce("sum", gradients)
            reduced = _now()
            for weight, total in zip(weights, totals, strict=True):
                total *= np.float32(network.RATE)
                weight.assign_sub(total)
            marks.laps.append((began, computed, reduced, _now()))
            return loss

        source = wb.data.Dataset.from_tensor_slices(network.data())
        batches = iter(strategy.distribute_dataset(source.repeat().batch(network.BATCH, drop_remainder=True)))

        def loss_of(result: Any) -> float:
            return float(strategy.reduce("SUM", result, axis=None))

        who = "workbench, threads" if threads else "workbench"
        with script.case(who, network.WHAT, unit="steps/s", scale=1, replicas=0) as case:
            case.samples = network.steps_per_second(
                lambda _number: strategy.run(train, (next(batches),)), loss_of, 0.8 * script.options.scale
            )
        if not threads:
            strategy.run(laps)
            steps = max(100, int(1500 * script.options.scale))
            began = time.thread_time()
            for _ in range(steps):
                result = strategy.run(train, (next(batches),))
            driver = time.thread_time() - began
            loss_of(result)
            _profile(script, strategy.local_results(strategy.run(laps)), driver / steps)


def _profile(script: Script, noted: list[Any], driver: float) -> None:
    """How a step's time is spent: means that add up to it, plus the time of an all_reduce without a late replica."""
    parts = [np.diff(each, axis=1) for each in noted]
    between = [each[1:, 0] - each[:-1, 3] for each in noted]
    for number, what in enumerate(PARTS):
        with script.case("workbench", what, replicas=0) as case:
            if number < len(PARTS) - 1:
                case.samples = [each[:, number].mean() / 1e9 for each in parts]
            else:
                case.samples = [each.mean() / 1e9 for each in between]
    with script.case("workbench", ALL_REDUCE_ALONE, replicas=0) as case:
        case.samples = [float(ns) / 1e9 for each in parts for ns in each[:, 1]]
    with script.case("workbench", DRIVER, replicas=0) as case:
        case.samples = [driver]


if __name__ == "__main__":
    main()
