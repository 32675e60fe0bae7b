"""PyTorch's DataLoader, in the process of the loop and with two workers, whichever suits a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.input.python_loops import lines, records
from tests.benchmarks.python_work import work

_IMAGES = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (cases.EXAMPLES, 784), dtype=np.uint8))


class _Range(Dataset[int]):
    def __len__(self) -> int:
        return cases.NUMBERS

    def __getitem__(self, index: int) -> int:
        return index


class _Images(Dataset[Any]):
    def __len__(self) -> int:
        return cases.EXAMPLES

    def __getitem__(self, index: Any) -> Any:
        return _IMAGES[index]


class _Called(Dataset[Any]):
    """The results of a function."""

    def __init__(self, function: Callable[[int], Any]) -> None:
        self.function = function

    def __len__(self) -> int:
        return cases.NUMBERS

    def __getitem__(self, index: int) -> Any:
        return self.function(index)


class _Stream(IterableDataset[bytes]):
    def __init__(self, opened: Callable[[Any], Iterator[bytes]], path: Any) -> None:
        self.opened, self.path = opened, path

    def __iter__(self) -> Iterator[bytes]:
        return self.opened(self.path)


def _as_it_is(batch: Any) -> Any:
    return batch


def _doubled(batch: list[int]) -> Any:
    return np.array(batch) * 2 + 1


def _slow(index: int) -> int:
    time.sleep(cases.SLOW_SECONDS)
    return index


def _image_batches() -> DataLoader[Any]:
    """Indexes a whole batch at once: four times as fast as the default, which collates picture by picture."""
    sampler = BatchSampler(RandomSampler(_Images()), cases.BATCH, drop_last=True)
    return DataLoader(_Images(), sampler=sampler, batch_size=None)


def _numbers(workers: int) -> DataLoader[Any]:
    return DataLoader(
        _Range(), cases.BATCH, shuffle=True, collate_fn=_doubled, num_workers=workers, drop_last=True
    )


def _stream(opened: Callable[[Any], Iterator[bytes]], path: Any, size: int) -> DataLoader[Any]:
    return DataLoader(_Stream(opened, path), size, collate_fn=_as_it_is, drop_last=True)


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    paths, text = cases.record_files(), cases.file("lines.txt")
    for who, what, per_item, unit, make in (
        ("DataLoader", cases.RANGE, cases.BATCH, "elements/s", lambda: _numbers(0)),
        ("DataLoader, 2 workers", cases.RANGE, cases.BATCH, "elements/s", lambda: _numbers(2)),
        ("DataLoader", cases.SHUFFLED, cases.BATCH, "examples/s", _image_batches),
        ("DataLoader", cases.LINES, 1024, "lines/s", lambda: _stream(lines, text, 1024)),
        ("DataLoader", cases.RECORDS, cases.BATCH, "records/s", lambda: _stream(records, paths, cases.BATCH)),
    ):
        cases.measure_rate(script, who, what, make, per_item=per_item, unit=unit)
    for who, what, make in (
        (
            "DataLoader, 8 workers",
            cases.PARALLEL,
            lambda: DataLoader(_Called(_slow), None, num_workers=8),
        ),
        (
            "DataLoader, 2 workers",
            cases.PYTHON_BOUND,
            lambda: DataLoader(_Called(work), None, num_workers=2),
        ),
    ):
        cases.measure_rate(script, who, what, make, unit="elements/s", skip=cases.STARTED)
    cases.measure_first(script, "DataLoader", _image_batches)


if __name__ == "__main__":
    main()
