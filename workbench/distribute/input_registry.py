"""InputRegistry: the distributed datasets of a strategy, and what of them the replicas may forget."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.distribute.input import DistributedDataset

Name = tuple[str, str | None]


class InputRegistry:
    """Knows the distributed datasets that are in use, without keeping them."""

    def __init__(self) -> None:
        self._datasets: weakref.WeakValueDictionary[str, DistributedDataset] = weakref.WeakValueDictionary()
        self._forgotten: list[Name] = []

    @property
    def datasets(self) -> tuple[DistributedDataset, ...]:
        """The distributed datasets that are in use."""
        return tuple(self._datasets.values())

    def add(self, name: str, dataset: DistributedDataset) -> None:
        """Remembers a dataset for as long as it lives."""
        self._datasets[name] = dataset
        # The replicas are told with a later message: a finaliser may run at any point of any thread.
        weakref.finalize(dataset, self._forgotten.append, (name, None)).atexit = False

    def forget(self, dataset: str, iterator: str) -> None:
        """Notes that an iterator has ended."""
        self._forgotten.append((dataset, iterator))

    def take_forgotten(self) -> tuple[Name, ...]:
        """(dataset, iterator) pairs that the replicas were not told of yet; a whole dataset with None."""
        forgotten = self._forgotten
        return tuple([forgotten.pop(0) for _ in range(len(forgotten))]) if forgotten else ()
