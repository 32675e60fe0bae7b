"""Batches of 256x784 float32 for two replicas in processes of their own: asked for, and used by a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script

_FEATURES = np.zeros((cases.DISTRIBUTED_ROWS, 784), np.float32)


def main() -> None:
    """Measures both."""
    script = Script("input", __doc__)
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        rows = wb.data.Dataset.from_tensor_slices(_FEATURES).repeat()
        batches = strategy.distribute_dataset(rows.batch(cases.GLOBAL_BATCH, drop_remainder=True))

        @wb.function
        def step(batch: Any) -> Any:
            return batch[0].sum()

        def results() -> Iterable[Any]:
            for batch in batches:
                yield strategy.run(step, (batch,))

        for what, make in ((cases.ITERATED, lambda: batches), (cases.RUN, results)):
            cases.measure_rate(script, "workbench", what, make, unit="steps/s", skip=20)


if __name__ == "__main__":
    main()
