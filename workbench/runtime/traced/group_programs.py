"""GroupPrograms: the state of one group on a worker with TPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from workbench.errors import StaleGeneration
from workbench.runtime.comm.messages import Ref
from workbench.runtime.traced.row_store import Begun, RowStore, place, share, shared

if TYPE_CHECKING:
    from workbench.backends.jax.mesh import ReplicaMesh, Rows
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.compiled_step import ReadyProgram


_NEVER = Begun(-1, -1, -1, -1)


@dataclass(slots=True)
class GroupPrograms:
    """The state of one group on this worker.

    Attributes:
      mesh: The devices of its replicas.
      local: (rank, device index) of this worker's replicas, in rank order.
      programs: Compiled programs, by function, structure and shapes.
      largest: By function and leaf of its arguments, the most rows so far, to which partial batches are padded.
      agreed: For values that hosts have read, the fewest and the most rows on any replica, once exchanged.
      ranks: The replicas of this worker.
      positions: device index -> position among them.
      begun: The current step of traced programs.
    """

    mesh: ReplicaMesh
    local: list[tuple[int, int]]
    programs: dict[Any, ReadyProgram] = field(default_factory=dict)
    largest: dict[Any, int] = field(default_factory=dict)
    agreed: dict[Ref, tuple[int, int]] = field(default_factory=dict)
    ranks: tuple[int, ...] = field(init=False)
    positions: dict[int, int] = field(init=False)
    begun: Begun = _NEVER
    _stores: list[RowStore] = field(default_factory=list)
    _told: bool = True
    _undoable: bool = True

    def __post_init__(self) -> None:
        self.ranks = tuple(rank for rank, _ in self.local)
        self.positions = {device: position for position, (_, device) in enumerate(self.local)}

    @property
    def alone(self) -> bool:
        """Whether all replicas are here, so that no agreement with other hosts is needed."""
        return self.mesh.size == len(self.local)

    def joined(self, group: LocalGroup) -> None:
        """Called when the replicas exist, for the first time or again."""
        self.agreed.clear()  # a host may have failed after the others had agreed with it
        self._stores = [cast(RowStore, group.envs[rank].store) for rank in self.ranks]

    def begin(self, serial: int, step: int, committed: int) -> None:
        """Begins a traced step. Informs the stores only while they have an undo log."""
        latest = step if step >= 0 else self.begun.latest_step
        self.begun = Begun(serial, step, latest, committed)
        self._told = False
        if self._undoable:
            self._tell_stores()
            self._undoable = any(store.has_log for store in self._stores)

    def hand_over(self) -> None:
        """Allows the replicas' own programs to use their stores from now on."""
        self._tell_stores()
        self._undoable = True

    def _tell_stores(self) -> None:
        # Only once after a traced step: later, a program may be using them.
        if not self._told:
            self._told = True
            for store in self._stores:
                store.commit(self.begun.committed)
                store.begin(self.begun.serial, self.begun.step)

    def rows_of(self, name: Any, *, given_away: bool) -> Rows:
        """The rows of a variable for the program: as the last step left them, or assembled.

        Args:
          name: The name of the variable.
          given_away: Whether the program will overwrite the rows; their sources must then stay, in case it fails.
        """
        variable = shared(self._stores, name)
        if variable is None:
            rows = self.mesh.stack([store[name] for store in self._stores])
            if not given_away and rows.dtype == self._stores[0][name].dtype:  # and has no fewer bits
                place(self._stores, name, rows)
        else:
            rows = variable.rows
        if rows.array.is_deleted():
            raise StaleGeneration(
                "the value of a variable was lost with a step that failed after it had been started; assign a value to "
                "the variable, or create it again"
            )
        return rows

    def assign(self, name: Any, rows: Rows) -> None:
        """Sets a variable after the current step."""
        variable = shared(self._stores, name)
        if variable is None:
            self.hand_over()
            share(self._stores, name, rows)
        else:
            variable.replace(rows, self.begun)

    def shapes(self) -> dict[Any, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and dtype of each variable that a program may use."""
        return {
            name: (tuple(value.shape), np.dtype(value.dtype))
            for name, value in self._stores[
                0
            ].items()  # in stored form, so that reading shapes copies nothing to the host
            if hasattr(value, "shape") and hasattr(value, "dtype") and value.dtype != object
        }

    def padded(self, key: Any, rows: int) -> int:
        """The number of rows to which an argument is padded: the most so far."""
        self.largest[key] = max(rows, self.largest.get(key, 0))
        return self.largest[key]
