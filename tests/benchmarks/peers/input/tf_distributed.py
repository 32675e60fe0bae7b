"""Batches of 256x784 float32 for the two logical CPUs of a MirroredStrategy: asked for, and used by a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.tf_mirrored import mirrored

_FEATURES = np.zeros((cases.DISTRIBUTED_ROWS, 784), np.float32)


def main() -> None:
    """Measures both."""
    script = Script("input", __doc__)
    tf, strategy = mirrored(2)
    rows = tf.data.Dataset.from_tensor_slices(_FEATURES).repeat()
    batches = strategy.experimental_distribute_dataset(rows.batch(cases.GLOBAL_BATCH, drop_remainder=True))

    @tf.function
    def step(batch: Any) -> Any:
        return strategy.run(lambda part: tf.reduce_sum(part[0]), (batch,))

    def results() -> Iterable[Any]:
        for batch in batches:
            yield step(batch)

    next(iter(results()))  # compiles
    for what, make in ((cases.ITERATED, lambda: batches), (cases.RUN, results)):
        cases.measure_rate(script, "TF MirroredStrategy", what, make, unit="steps/s", skip=20)


if __name__ == "__main__":
    main()
