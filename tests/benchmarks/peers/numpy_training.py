"""The network in NumPy alone: one process, BLAS on all cores, no replicas, no all_reduce."""

from __future__ import annotations

import os

_THREADS = str(len(os.sched_getaffinity(0)))
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = _THREADS  # must precede the import: NumPy loads its BLAS then

import numpy as np  # noqa: E402

from tests.benchmarks import network  # noqa: E402
from tests.benchmarks.measure import Script  # noqa: E402


def main() -> None:
    """Measures steps per second, a new batch each."""
    script = Script("training", __doc__)
    images, labels = network.data()
    weights = network.parameters()
    gradients = [np.zeros_like(w) for w in weights]

    def step(number: int) -> float:
        low = number % network.BATCHES * network.BATCH
        high = low + network.BATCH
        loss = network.loss_and_gradients(weights, images[low:high], labels[low:high], gradients)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= np.float32(network.RATE) * gradient
        return loss

    with script.case("NumPy alone", network.WHAT, unit="steps/s", scale=1, replicas=0) as case:
        case.samples = network.steps_per_second(step, float, 0.8 * script.options.scale)


if __name__ == "__main__":
    main()
