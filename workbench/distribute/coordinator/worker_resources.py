"""Objects that stay on a worker between functions: iterators of datasets."""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Iterator
from typing import Any

from workbench.errors import FailedPreconditionError


class WorkerResources:
    """Makes iterators when they are first needed, and keeps them.

    Attributes:
      worker: Number of the worker.
    """

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self._recipes: dict[str, bytes] = {}
        self._made: dict[str, Any] = {}

    def describe(self, recipes: dict[str, bytes]) -> None:
        """Adds recipes: id -> a pickled function that returns a dataset."""
        self._recipes.update(recipes)

    def get(self, id: str) -> Any:
        """The object; creates it if necessary."""
        if id not in self._made:
            if id not in self._recipes:
                raise FailedPreconditionError(
                    f"{id} is not known here: the notebook has deleted it, or another coordinator made it; call iter() "
                    f"on a dataset of this one"
                )
            self._made[id] = _iterator(pickle.loads(self._recipes[id]))
        return self._made[id]

    def forget(self, id: str) -> None:
        """Ends an object that is no longer needed."""
        self._recipes.pop(id, None)
        made = self._made.pop(id, None)
        if (close := getattr(made, "close", None)) is not None:
            with contextlib.suppress(Exception):  # an error at the end of a user's iterator is of no use
                close()

    def close(self) -> None:
        """Ends all objects."""
        for id in list(self._recipes):
            self.forget(id)


def _iterator(recipe: Any) -> Any:
    """An iterator over a dataset, or over the dataset that a function returns."""
    made = recipe() if callable(recipe) else recipe
    if not hasattr(made, "__iter__"):
        raise TypeError(
            f"create_per_worker_dataset: {getattr(recipe, '__name__', 'the function')} returned "
            f"{type(made).__name__}: {made!r:.80}, not a dataset"
        )
    return iter(made)


class _Thread(threading.local):
    resources: WorkerResources | None = None


thread = _Thread()
"""The resources of the worker whose functions the calling thread runs."""


@contextlib.contextmanager
def as_worker(resources: WorkerResources) -> Iterator[None]:
    """Within this context, the calling thread runs functions of the worker with these resources."""
    before, thread.resources = thread.resources, resources
    try:
        yield
    finally:
        thread.resources = before


def on_worker() -> bool:
    """Whether the calling thread runs functions of a worker."""
    return thread.resources is not None


def resource_here(id: str) -> Any:
    """The worker's own object for an argument `PerWorkerValues`."""
    if thread.resources is None:
        raise FailedPreconditionError(
            "an object of workers can only be used in a function that ClusterCoordinator.schedule runs"
        )
    return thread.resources.get(id)


def experimental_get_current_worker_index() -> int:
    """Number of the worker that runs this function or creates this dataset (as in tf.distribute.coordinator).

    Raises:
      RuntimeError: outside of functions that a `ClusterCoordinator` runs on a worker.
    """
    if thread.resources is None:
        raise RuntimeError(
            "experimental_get_current_worker_index was called outside of a worker; call it in a function that "
            "ClusterCoordinator.schedule runs, or in the dataset_fn of create_per_worker_dataset"
        )
    return thread.resources.worker
