"""The network trained data-parallel on two replicas: fed from a distributed dataset, driven by `strategy.run`."""

from __future__ import annotations

from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import network
from tests.benchmarks.measure import Script


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
            images, labels = batch
            arrays = [np.asarray(weight) for weight in weights]
            gradients = [np.empty_like(array) for array in arrays]
            loss = network.loss_and_gradients(arrays, images, labels, gradients)
            totals = wb.distribute.get_replica_context().all_reduce("sum", gradients)
            for weight, total in zip(weights, totals, strict=True):
                total *= np.float32(network.RATE)
                weight.assign_sub(total)
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


if __name__ == "__main__":
    main()
