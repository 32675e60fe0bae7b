"""Pipelines over data in memory, beside bare NumPy loops that do the same work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from workbench.data import Dataset

_IMAGES = np.random.default_rng(0).integers(0, 256, (cases.EXAMPLES, 784), dtype=np.uint8)


def _bare_reservoir() -> Iterable[Any]:
    generator = np.random.default_rng(0)
    held, following, size = np.arange(10_000), 10_000, 10_000
    rest = np.empty(0, np.int64)
    while following < cases.NUMBERS:
        count = min(1000, cases.NUMBERS - following)
        slots = generator.permutation(size)[:count]
        rest = np.concatenate([rest, held[slots]])
        held[slots] = np.arange(following, following + count)
        following += count
        full = len(rest) // cases.BATCH * cases.BATCH
        for batch in rest[:full].reshape(-1, cases.BATCH):
            yield batch * 2 + 1
        rest = rest[full:]


def _bare_batches() -> Iterable[Any]:
    order = np.random.default_rng(0).permutation(cases.EXAMPLES)
    for start in range(0, cases.EXAMPLES - cases.BATCH + 1, cases.BATCH):
        yield _IMAGES.take(order[start : start + cases.BATCH], axis=0)


def _doubled(x: Any) -> Any:
    return x * 2 + 1


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    numbers = Dataset.range(cases.NUMBERS)
    shuffled = numbers.shuffle(10_000).batch(cases.BATCH, drop_remainder=True).map(_doubled)
    mapped = numbers.map(_doubled).batch(cases.BATCH, drop_remainder=True)
    images = Dataset.from_tensor_slices(_IMAGES)
    batches = images.shuffle(cases.EXAMPLES).batch(cases.BATCH, drop_remainder=True)
    small = images.shuffle(10_000).batch(cases.BATCH, drop_remainder=True)
    for who, what, unit, make in (
        ("workbench", cases.RANGE, "elements/s", lambda: shuffled),
        ("NumPy", cases.RANGE, "elements/s", _bare_reservoir),
        ("workbench", cases.RANGE_MAP, "elements/s", lambda: mapped),
        ("workbench", cases.SHUFFLED, "examples/s", lambda: batches),
        ("NumPy", cases.SHUFFLED, "examples/s", _bare_batches),
        ("workbench", cases.SMALL_BUFFER, "examples/s", lambda: small),
    ):
        cases.measure_rate(script, who, what, make, per_item=cases.BATCH, unit=unit)
    cases.measure_first(script, "workbench", lambda: batches)
    cases.measure_first(script, "NumPy", _bare_batches)


if __name__ == "__main__":
    main()
