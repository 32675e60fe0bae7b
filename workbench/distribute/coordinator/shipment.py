"""Shipment: functions and per-worker objects, which each worker gets once."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from typing import Any, Final

from workbench import by_value
from workbench.distribute.coordinator.call_queue import Call, CallQueue
from workbench.distribute.coordinator.per_worker import PerWorkerValues
from workbench.distribute.function import Function, plain_function
from workbench.distribute.servers.hosting import Hosting
from workbench.errors import CaptureError, InvalidArgumentError
from workbench.runtime.comm.codec import PICKLED
from workbench.runtime.shipping.function_registry import Prepared, Shipping

# Unique over all coordinators, so that another coordinator does not know an iterator that is passed to it.
_numbers: Final = itertools.count()


class Shipment:
    """Everything that travels besides calls. Any thread.

    Attributes:
      stream: The stream under which the functions update variables.
    """

    def __init__(self, stream: str, hosting: Hosting, queue: CallQueue) -> None:
        self.stream = stream
        self._hosting = hosting
        self._queue = queue
        self._shipping = Shipping(PICKLED)
        self._functions: weakref.WeakKeyDictionary[Function, Prepared] = weakref.WeakKeyDictionary()
        self._recipes: dict[str, bytes] = {}
        self._deleted: deque[tuple[str, int]] = deque()  # ids, each with the first call that cannot need it
        self._lock = threading.RLock()  # a finalizer may run while this thread holds it

    def prepare(self, fn: Any) -> Prepared:
        """Pickles a function: a `wb.function` once, others again if what they capture has changed.

        Raises:
          TypeError: if it is not a function, or calling it would not run its body.
          CaptureError: if it cannot travel; the message names the variable.
        """
        if type(fn) is Function and (known := self._functions.get(fn)) is not None:
            return known
        plain = plain_function(fn, "coordinator.schedule")
        prepared = self._shipping.prepare(plain, plain)
        if type(fn) is Function:
            self._functions[fn] = prepared
        return prepared

    def per_worker(self, dataset: bytes) -> PerWorkerValues:
        """An iterator on each worker over a dataset, given pickled or as a pickled function that returns it."""
        values = PerWorkerValues(f"iterator {next(_numbers)}")
        with self._lock:
            self._recipes[values.id] = dataset
        weakref.finalize(values, self._delete, values.id).atexit = False
        return values

    def require_own(self, values: PerWorkerValues) -> None:
        """Refuses objects on the workers of another coordinator.

        Raises:
          InvalidArgumentError: if it is one; names it.
        """
        if values.id not in self._recipes:
            raise InvalidArgumentError(
                f"coordinator.schedule: {values!r} is of another coordinator and its workers; pass an iterator of this "
                f"one, iter(coordinator.create_per_worker_dataset(dataset))"
            )

    def _delete(self, id: str) -> None:
        """Called when the notebook has dropped an iterator; calls scheduled earlier may still use it."""
        self._deleted.append((id, self._queue.scheduled))

    def request(self, calls: list[Call], known: set[Any]) -> dict[str, Any]:
        """The functions and objects that a worker lacks for these calls.

        Args:
          calls: The calls to run.
          known: Ids that the worker has; updated.
        """
        pickled = self._shipping.pickled
        first_open = self._queue.first_open
        with self._lock:
            while self._deleted and self._deleted[0][1] <= first_open:
                del self._recipes[self._deleted.popleft()[0]]
            recipes = dict(self._recipes)
        functions = {
            call.function.function: pickled[call.function.function]
            for call in calls
            if call.function.function not in known
        }
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
        """Restores a parameter server that a worker could not reach; from now on all use its new address.

        Raises:
          UnavailableError: if it cannot be restarted.
        """
        client = self._hosting.client
        address = self._hosting.restored(server, client.addresses[server])
        client.move(server, address)


def pickled_dataset(dataset: Any) -> bytes:
    """Pickles a dataset, or a function that returns one.

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
