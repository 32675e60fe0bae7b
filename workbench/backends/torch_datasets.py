"""PyTorch's two kinds of datasets, over elements from another source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from workbench import tree
from workbench.errors import LibraryMissing

try:
    import torch
except ImportError as error:
    raise LibraryMissing("PyTorch is not installed: pip install torch") from error

from torch.utils.data import Dataset, IterableDataset, get_worker_info

_NUMBERS = "biufc"


class Passes(Protocol):
    """Elements that can be iterated over repeatedly."""

    def __len__(self) -> int: ...

    def whole(self) -> Iterator[Any]:
        """Starts the next pass."""

    def part(self, index: int, count: int, seed: int) -> Iterator[Any]:
        """Starts a pass over part `index` of `count`; all parts with the same `seed` share one order.

        Args:
          index: Number of the part, from 0.
          count: Number of parts.
          seed: Seed of the order.
        """


class Rows(Protocol):
    """Elements that can be reached by position."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


class IterableStyle(IterableDataset[Any]):  # type: ignore[misc, unused-ignore]  # untyped where torch is missing
    """Elements in order, as tensors. The worker processes of a `DataLoader` share them, so that none occurs twice."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._begun = 0

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            return map(as_tensors, self._passes.whole())
        # The loader forks new workers for each epoch, or keeps them. They only share the loader's seed, which changes
        # with the epoch, and the number of times that they have started since.
        seed = worker.seed - worker.id + self._begun
        self._begun += 1
        return map(as_tensors, self._passes.part(worker.id, worker.num_workers, seed))

    def __len__(self) -> int:
        return len(self._passes)


class MapStyle(Dataset[Any]):  # type: ignore[misc, unused-ignore]
    """Elements by position, as tensors."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getitem__(self, index: int) -> Any:
        return as_tensors(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)


def as_tensors(element: Any) -> Any:
    """The element with tensors instead of its arrays and numbers; text, bytes and dates stay unchanged."""
    return tree.map(_tensor, element)


def _tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in _NUMBERS:
        return value
    array = np.asarray(value)
    if not (array.flags.writeable and array.flags.c_contiguous):
        array = array.copy()  # a tensor's memory is always writable
    return torch.from_numpy(array)
