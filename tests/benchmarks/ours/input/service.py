"""The data service: a dispatcher and two workers in this process, which also reads."""

from __future__ import annotations

from contextlib import ExitStack

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from workbench.data import Dataset, service


def main() -> None:
    """Measures elements that come one by one, and in batches."""
    script = Script("input", __doc__)
    with ExitStack() as stack:
        dispatcher = stack.enter_context(service.DispatchServer())
        for _ in range(2):
            stack.enter_context(service.WorkerServer(service.WorkerConfig(dispatcher.target)))

        def shared(dataset: Dataset) -> Dataset:
            return dataset.apply(service.distribute("distributed_epoch", dispatcher.target))

        numbers = Dataset.range(cases.NUMBERS)
        for what, per_item, make in (
            (cases.SERVICE_SINGLE, 1, lambda: shared(numbers)),
            (
                cases.SERVICE_BATCHED,
                cases.BATCH,
                lambda: shared(numbers.batch(cases.BATCH, drop_remainder=True)),
            ),
        ):
            cases.measure_rate(script, "workbench", what, make, per_item=per_item, unit="elements/s", skip=1)


if __name__ == "__main__":
    main()
