"""What replicas of a worker with TPUs keep between steps: variables that traced programs replace for all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.runtime.replica.replica_store import NEVER, ReplicaStore, Written

if TYPE_CHECKING:
    import numpy as np

    from workbench.backends.jax.mesh import Rows


class Begun(NamedTuple):
    """The step that traced programs of a group are in.

    Attributes:
      serial: Its number.
      step: The number that the user knows, -1 if it is none of the user's.
      latest_step: Which of the user's steps has begun last.
      committed: Steps up to here cannot be undone any more; see `ReplicaStore.commit`.
    """

    serial: int
    step: int
    latest_step: int
    committed: int


class VariableRows:
    """One variable of all replicas of a worker; a traced step replaces it here, instead of in the store of each.

    Has an undo log of its own, as the stores have.

    Attributes:
      rows: The components.
      written: How they came to be.
      whole: No store has another component in the place of its own here. That is not known to be so when False.
    """

    __slots__ = ("__weakref__", "_log", "rows", "whole", "written")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.written = NEVER
        self.whole = True
        self._log: deque[tuple[int, Rows, Written]] = deque()

    def replace(self, rows: Rows, begun: Begun) -> None:
        """The components after the step that has begun."""
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
    """What a replica's store has of `VariableRows`: a `Row` is of rows that stay, here a step replaces them.

    Attributes:
      of: The components of all replicas.
      position: Number of this one among those of this worker.
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
    """A store whose values may be components of `VariableRows`; looked at, they are NumPy's."""

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
    """The variable, if all of these stores have it as components of the same rows.

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
    """Puts `rows` in the place of equal components, which is not an assignment: the next program finds them there."""
    variable = VariableRows(rows)
    variable.written = stores[0].written(key)
    for position, store in enumerate(stores):
        dict.__setitem__(store, key, StoredRow(variable, position))


def share(stores: Sequence[RowStore], key: Hashable, rows: Rows) -> None:
    """Assigns the components of `rows`, one in each store; they can be replaced together from now on."""
    variable = VariableRows(rows)
    for position, store in enumerate(stores):
        store[key] = StoredRow(variable, position)
    variable.written = ReplicaStore.written(stores[0], key)
