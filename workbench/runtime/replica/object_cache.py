"""Functions and structures that a host has received, by id."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from workbench.runtime.comm.messages import loads


class ShippedObjects:
    """Unpickles each object once, at its first use, so that errors belong to the step that uses it."""

    def __init__(self) -> None:
        self._pickled: dict[int, bytes] = {}
        self._loaded: dict[int, Any] = {}
        self._lock = threading.Lock()

    def add(self, object_id: int, pickled: bytes) -> None:
        """Keeps the bytes of an object."""
        self._pickled[object_id] = pickled

    def drop(self, object_ids: Iterable[int]) -> None:
        """Drops objects that no further step uses."""
        with self._lock:
            for object_id in object_ids:
                self._pickled.pop(object_id, None)
                self._loaded.pop(object_id, None)

    def get(self, object_id: Any) -> Any:
        """The object with this id. If the driver is in this process, `object_id` is the object itself."""
        if type(object_id) is not int:
            return object_id
        try:
            return self._loaded[object_id]
        except KeyError:
            with self._lock:  # replicas of one process may need it at once, and only one may exist
                if object_id not in self._loaded:
                    self._loaded[object_id] = loads(self._pickled[object_id])
                    del self._pickled[object_id]
                return self._loaded[object_id]
