"""Shipment: functions and per-worker objects, as workers get them: each worker each once."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from workbench import by_value
from workbench.distribute.coordinator.call_queue import Call, CallQueue
from workbench.distribute.coordinator.per_worker import PerWorkerValues
from workbench.distribute.function import Function, plain_function
from workbench.distribute.servers.hosting import Hosting
from workbench.errors import CaptureError
from workbench.runtime.comm.codec import PICKLED
from workbench.runtime.shipping.function_registry import Prepared, Shipping


class Shipment:
    """What travels besides calls. Any thread.

    Attributes:
      stream: In whose name the functions update variables.
    """

    def __init__(self, stream: str, hosting: Hosting, queue: CallQueue) -> None:
        self.stream = stream
        self._hosting = hosting
        self._queue = queue
        self._shipping = Shipping(PICKLED)
        self._functions: weakref.WeakKeyDictionary[Function, Prepared] = weakref.WeakKeyDictionary()
        self._recipes: dict[str, bytes] = {}
        self._deleted: dict[str, int] = {}  # id -> the first call that cannot need it
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # a finaliser may run while it is held

    def prepare(self, fn: Any) -> Prepared:
        """Pickles a function: a `wb.function` once, another one if what it captures has changed.

        Raises:
          TypeError: if it is no function, or calling it would run nothing of it.
          CaptureError: if it cannot travel; the text names the variable.
        """
        if type(fn) is Function and (known := self._functions.get(fn)) is not None:
            return known
        plain = plain_function(fn, "coordinator.schedule")
        prepared = self._shipping.prepare(plain, plain)
        if type(fn) is Function:
            self._functions[fn] = prepared
        return prepared

    def per_worker(self, dataset: bytes) -> PerWorkerValues:
        """An iterator on each worker, of a dataset, or of what a function returns, pickled."""
        values = PerWorkerValues(f"iterator {next(self._numbers)}")
        with self._lock:
            self._recipes[values.id] = dataset
        weakref.finalize(values, self._delete, values.id).atexit = False
        return values

    def _delete(self, id: str) -> None:
        """The notebook has let an iterator go; calls that were scheduled before may still take it."""
        self._deleted[id] = self._queue.scheduled

    def request(self, calls: list[Call], known: set[Any]) -> dict[str, Any]:
        """What a worker lacks for these calls.

        Args:
          calls: To run.
          known: Ids that the worker has; brought up to date.
        """
        pickled = self._shipping.pickled
        first_open = self._queue.first_open
        for id in [id for id, number in list(self._deleted.items()) if number <= first_open]:
            self._recipes.pop(id, None)
            self._deleted.pop(id, None)
        functions = {
            call.function.function: pickled[call.function.function]
            for call in calls
            if call.function.function not in known
        }
        recipes = dict(self._recipes)
        resources = {id: data for id, data in recipes.items() if id not in known}
        forgotten = [id for id in known if (id not in recipes if type(id) is str else id not in pickled)]
        known.update(functions, resources)
        known.difference_update(forgotten)
        return {
            "stream": self.stream,
            "first_open": first_open,
            "addresses": self._hosting.client.addresses,
            "functions": functions,
            "resources": resources,
            "forgotten_resources": [id for id in forgotten if type(id) is str],
            "forgotten_functions": [id for id in forgotten if type(id) is int],
        }

    def restore(self, server: int) -> None:
        """A worker could not reach a parameter server; from now on all go where it is.

        Raises:
          UnavailableError: if it cannot be started again.
        """
        client = self._hosting.client
        address = self._hosting.restored(server, client.addresses[server])
        client.move(server, address)


def pickled_dataset(dataset: Any) -> bytes:
    """A dataset, or a function that returns one.

    Raises:
      CaptureError: if it cannot travel.
    """
    try:
        data: bytes = by_value.dumps(dataset)
    except Exception as error:
        raise CaptureError(
            f"create_per_worker_dataset: {dataset!r:.80} cannot travel to the workers: {error}"
        ) from error
    return data
