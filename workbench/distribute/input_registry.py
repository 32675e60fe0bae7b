"""InputRegistry: the distributed datasets of a strategy, and what of them the replicas may forget."""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workbench.data.dataset import Dataset
    from workbench.data.progress import InputProgress
    from workbench.distribute.input import DistributedDataset
    from workbench.distribute.input_progress import Trail

Name = tuple[str, str | None]
_TRAILS: Final = 64
"""Newest distributed datasets of which it is known how far replicas came, also when they are gone."""


class InputRegistry:
    """Knows the distributed datasets that are in use, without keeping them."""

    def __init__(self) -> None:
        self._datasets: weakref.WeakValueDictionary[str, DistributedDataset] = weakref.WeakValueDictionary()
        self._trails: deque[tuple[weakref.ref[Dataset], Trail]] = deque(maxlen=_TRAILS)
        self._forgotten: list[Name] = []

    @property
    def datasets(self) -> tuple[DistributedDataset, ...]:
        """The distributed datasets that are in use."""
        return tuple(self._datasets.values())

    def add(self, name: str, dataset: DistributedDataset) -> None:
        """Remembers a dataset for as long as it lives."""
        self._datasets[name] = dataset
        if dataset.source is not None:
            self._trails.append((weakref.ref(dataset.source), dataset.trail))
        # The replicas are told with a later message: a finaliser may run at any point of any thread.
        weakref.finalize(dataset, self._forgotten.append, (name, None)).atexit = False

    def progress_of(self, source: Dataset) -> InputProgress | None:
        """How far replicas are in what was distributed last of `source`, in use or not; None where nobody has begun."""
        trails = (trail.now() for known, trail in reversed(self._trails.copy()) if known() is source)
        return next((progress for progress in trails if progress is not None), None)

    def forget(self, dataset: str, iterator: str) -> None:
        """Notes that an iterator has ended."""
        self._forgotten.append((dataset, iterator))

    def take_forgotten(self) -> tuple[Name, ...]:
        """(dataset, iterator) pairs that the replicas were not told of yet; a whole dataset with None."""
        forgotten = self._forgotten
        return tuple([forgotten.pop(0) for _ in range(len(forgotten))]) if forgotten else ()
