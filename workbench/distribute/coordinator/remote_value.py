"""RemoteValue: the future result of a scheduled function."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn

from workbench.distribute.copied_by_reference import CopiedByReference
from workbench.errors import CancelledError, WorkbenchError

_CHECK_SECONDS: Final = 1.0


class RemoteValue(CopiedByReference):
    """The future result of a scheduled function (as tf.distribute.coordinator.RemoteValue).

    `ClusterCoordinator.schedule` returns it. It can be an argument of further functions, which then wait for it.
    """

    __slots__ = ("__weakref__", "_changed", "_error", "_ready", "_then", "_value", "name")

    def __init__(self, changed: threading.Condition, name: str) -> None:
        self.name = name
        self._changed = changed
        self._ready = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._then: list[Callable[[], object]] = []

    @property
    def ready(self) -> bool:
        """Whether its function has ended, so that `fetch` does not wait."""
        return self._ready

    @property
    def failed(self) -> bool:
        """Whether its function has ended without a result."""
        return self._error is not None

    def fetch(self) -> Any:
        """Waits for the function and returns its result.

        Raises:
          CancelledError: if it was cancelled because another one had failed.
          Exception: the error of the function; it is also a `ReplicaError`.
        """
        with self._changed:
            while not self._ready:
                self._changed.wait(_CHECK_SECONDS)
            if self._error is not None:
                raise self._error
            value = self._value
        if type(value) is not _Pickled:
            return value
        loaded = value.load()  # unpickling runs code of the result's class, so no lock is held
        with self._changed:
            if self._value is value:  # no other thread was faster
                self._value = loaded
            return self._value

    get = fetch

    def set(self, pickled: bytes) -> None:
        """Sets the result. Call it with `changed` held."""
        self._value = _Pickled(pickled)
        self._end()

    def fail(self, error: BaseException) -> None:
        """Sets the error of a function that raised or will never run. Call it with `changed` held."""
        self._error = error
        self._end()

    def cancel(self, why: str) -> None:
        """Marks the function as cancelled. Call it with `changed` held."""
        self.fail(
            CancelledError(
                f"{self.name} was cancelled and has not run: {why}; schedule it again if it is still wanted"
            )
        )

    def then(self, call: Callable[[], object]) -> bool:
        """Registers `call()`, called with `changed` held when the result is ready; False if it already is."""
        if self._ready:
            return False
        self._then.append(call)
        return True

    def _end(self) -> None:
        self._ready = True
        calls, self._then = self._then, []
        for call in calls:
            call()

    def __reduce__(self) -> NoReturn:
        raise WorkbenchError(
            f"{self!r} cannot travel inside another object; pass it as an argument, schedule(fn, args=(value,)), or "
            f"pass what it holds, value.fetch()"
        )

    def __repr__(self) -> str:
        state = "failed" if self.failed else "ready" if self._ready else "pending"
        return f"<RemoteValue of {self.name}: {state}>"


class _Pickled:
    """A result as received; most results are never unpickled."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def load(self) -> Any:
        return pickle.loads(self._data)
