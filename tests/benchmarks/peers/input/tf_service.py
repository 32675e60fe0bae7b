"""tf.data service: a dispatcher and two workers in this process, which also reads."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from typing import Any

import tensorflow as tf

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script


def main() -> None:
    """Measures elements that come one by one, and in batches."""
    script = Script("input", __doc__)
    tf.get_logger().setLevel("ERROR")
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    config = service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])
    _workers = [service.WorkerServer(config) for _ in range(2)]  # they serve while a reference exists

    def shared(dataset: Any) -> Any:
        distribute = service.distribute(processing_mode="distributed_epoch", service=dispatcher.target)
        return dataset.apply(distribute)

    numbers = tf.data.Dataset.range(cases.NUMBERS)
    for what, per_item, make in (
        (cases.SERVICE_SINGLE, 1, lambda: shared(numbers)),
        (cases.SERVICE_BATCHED, cases.BATCH, lambda: shared(numbers.batch(cases.BATCH, drop_remainder=True))),
    ):
        cases.measure_rate(
            script, "tf.data service", what, make, per_item=per_item, unit="elements/s", skip=1
        )
    os._exit(0)  # the servers' threads would delay the exit


if __name__ == "__main__":
    main()
