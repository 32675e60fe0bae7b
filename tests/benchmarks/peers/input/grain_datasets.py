"""Grain, with as many threads as suit a case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grain
import numpy as np

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script

_IMAGES = np.random.default_rng(0).integers(0, 256, (cases.EXAMPLES, 784), dtype=np.uint8)


def _read(dataset: Any, threads: int) -> Iterable[Any]:
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=threads)
    return dataset.to_iter_dataset(options)  # type: ignore[no-any-return]


def _doubled(batch: Any) -> Any:
    return batch * 2 + 1


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    numbers = grain.MapDataset.range(cases.NUMBERS).shuffle(seed=0).batch(cases.BATCH, drop_remainder=True)
    images = grain.MapDataset.source(_IMAGES).shuffle(seed=0).batch(cases.BATCH, drop_remainder=True)
    paths = cases.record_files()

    def records() -> Iterable[Any]:
        files = [grain.experimental.TFRecordIterDataset(path) for path in paths]
        merged = grain.experimental.InterleaveIterDataset(files, cycle_length=8)
        return merged.batch(cases.BATCH, batch_fn=list)  # type: ignore[no-any-return]

    for who, what, unit, make in (
        ("Grain", cases.RANGE, "elements/s", lambda: _read(numbers.map(_doubled), 0)),
        ("Grain", cases.SHUFFLED, "examples/s", lambda: _read(images, 0)),
        ("Grain, 16 threads", cases.SHUFFLED, "examples/s", lambda: _read(images, 16)),
        ("Grain, without checksums", cases.RECORDS, "records/s", records),
    ):
        cases.measure_rate(script, who, what, make, per_item=cases.BATCH, unit=unit)
    cases.measure_first(script, "Grain", lambda: _read(images, 0))


if __name__ == "__main__":
    main()
