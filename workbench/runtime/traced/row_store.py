"""Stores of replicas on a worker with TPUs: traced programs replace variables for all replicas at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.runtime.replica.replica_store import NEVER, ReplicaStore, Written

if TYPE_CHECKING:
    import numpy as np

    from workbench.backends.jax.mesh import Rows


class Begun(NamedTuple):
    """The current step of a group's traced programs.

    Attributes:
      serial: Its number.
      step: Its number among the user's steps, or -1.
      latest_step: The latest user's step that has begun.
      committed: The last step that cannot be undone any more; see `ReplicaStore.commit`.
    """

    serial: int
    step: int
    latest_step: int
    committed: int


class VariableRows:
    """One variable of all replicas of a worker; a traced step replaces it here instead of in each store.

    Like the stores, it has its own undo log.

    Attributes:
      rows: The components.
      written: The history of the components.
      whole: True if no store has replaced its component. False means that this is unknown.
    """

    __slots__ = ("__weakref__", "_log", "rows", "whole", "written")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.written = NEVER
        self.whole = True
        self._log: deque[tuple[int, Rows, Written]] = deque()

    def replace(self, rows: Rows, begun: Begun) -> None:
        """Sets the components after the current step."""
        log = self._log
        while log and log[0][0] <= begun.committed:
            log.popleft()
        log.append((begun.serial, self.rows, self.written))
        self.rows = rows
        self.written = self.written.again(begun.step, begun.latest_step)

    def rollback(self, serial: int) -> None:
        """Undoes everything since before step `serial`."""
        self.whole = False
        while self._log and self._log[-1][0] >= serial:
            _, self.rows, self.written = self._log.pop()


class StoredRow:
    """A replica's component of `VariableRows`. A step replaces these rows, unlike those of a `Row`.

    Attributes:
      of: The variable with the components of all replicas.
      position: Position of this component among those of this worker.
    """

    __slots__ = ("of", "position")

    def __init__(self, of: VariableRows, position: int) -> None:
        self.of = of
        self.position = position

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.of.rows.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of its elements."""
        return self.of.rows.dtype

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        return self.of.rows.component(self.position)


class RowStore(ReplicaStore):
    """A store whose values may be components of `VariableRows`; reading one returns a NumPy array."""

    def __getitem__(self, key: Hashable) -> Any:
        value = super().__getitem__(key)
        return value.numpy() if type(value) is StoredRow else value

    def __setitem__(self, key: Hashable, value: Any) -> None:
        self._leave(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Hashable) -> None:
        self._leave(key)
        super().__delitem__(key)

    def _leave(self, key: Hashable) -> None:
        old = self.get(key)  # in its stored form
        if type(old) is StoredRow:
            old.of.whole = False
            self._written[key] = old.of.written

    def written(self, key: Hashable) -> Written:
        """As `ReplicaStore.written`."""
        value = self.get(key)
        return value.of.written if type(value) is StoredRow else super().written(key)

    def rollback(self, serial: int) -> None:
        """As `ReplicaStore.rollback`."""
        before = self._shared()
        super().rollback(serial)
        for variable in before | self._shared():
            variable.rollback(serial)

    def _shared(self) -> set[VariableRows]:
        return {value.of for value in self.values() if type(value) is StoredRow}


def shared(stores: Sequence[RowStore], key: Hashable) -> VariableRows | None:
    """The variable, if all of these stores have components of the same rows, else None.

    Raises:
      KeyError: if a store does not have it.
    """
    first = dict.__getitem__(stores[0], key)
    if type(first) is not StoredRow:
        return None
    if not first.of.whole:
        for store in stores:
            own = dict.__getitem__(store, key)
            if type(own) is not StoredRow or own.of is not first.of:
                return None
        first.of.whole = True
    return first.of


def place(stores: Sequence[RowStore], key: Hashable, rows: Rows) -> None:
    """Replaces equal components by `rows`, for the next program. This does not count as an assignment."""
    variable = VariableRows(rows)
    variable.written = stores[0].written(key)
    for position, store in enumerate(stores):
        dict.__setitem__(store, key, StoredRow(variable, position))


def share(stores: Sequence[RowStore], key: Hashable, rows: Rows) -> None:
    """Assigns the components of `rows`, one in each store; from now on they can be replaced together."""
    variable = VariableRows(rows)
    for position, store in enumerate(stores):
        store[key] = StoredRow(variable, position)
    variable.written = ReplicaStore.written(stores[0], key)
