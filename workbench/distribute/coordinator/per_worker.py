"""PerWorkerValues: an object on each worker, such as the iterator of its dataset."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from workbench.distribute.coordinator.worker_resources import WorkerResources, as_worker, resource_here
from workbench.distribute.copied_by_reference import CopiedByReference
from workbench.errors import WorkbenchError


class PerWorkerValues:
    """An object on each worker (as tf.distribute.coordinator.PerWorkerValues). As an argument, it is the worker's own.

    `iter(coordinator.create_per_worker_dataset(...))` returns one. A worker creates its object when a function first
    needs it; so does a worker that replaces a lost one.

    Attributes:
      id: The workers' id for it.
    """

    def __init__(self, id: str) -> None:
        self.id = id

    def __iter__(self) -> PerWorkerValues:
        return self

    def __next__(self) -> NoReturn:
        self.get_next()

    def get_next(self, name: str | None = None) -> NoReturn:
        """Refuses, because each worker has its own object.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "next() of iterators on workers: each worker has its own; call it in a function, "
            "coordinator.schedule(lambda it: next(it), args=(iterator,))"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return resource_here, (self.id,)

    def __repr__(self) -> str:
        return f"<PerWorkerValues {self.id}: one on each worker>"


class PerWorkerDataset(CopiedByReference):
    """A dataset on each worker; `iter` returns new iterators, one on each worker."""

    def __init__(self, dataset_fn: Any, make_iterator: Callable[[], PerWorkerValues]) -> None:
        self._dataset_fn = dataset_fn
        self._make_iterator = make_iterator

    @functools.cached_property
    def element_spec(self) -> Any:
        """The element spec on a worker, as `Dataset.element_spec`.

        A function that returns the dataset is called here once, as if worker 0 called it; no element is read.
        """
        with as_worker(WorkerResources(0)):
            made = self._dataset_fn() if callable(self._dataset_fn) else self._dataset_fn
        return made.element_spec

    def __iter__(self) -> PerWorkerValues:
        return self._make_iterator()

    def __repr__(self) -> str:
        made = getattr(self._dataset_fn, "__name__", repr(self._dataset_fn))
        return f"<PerWorkerDataset of {made}: one on each worker>"

    def __reduce__(self) -> NoReturn:
        raise WorkbenchError(
            "a dataset of workers cannot travel itself; pass an iterator of it, "
            "coordinator.schedule(fn, args=(iter(per_worker_dataset),))"
        )
