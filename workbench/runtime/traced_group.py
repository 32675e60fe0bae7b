"""GroupPrograms: what a worker with TPUs keeps of one group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.errors import StaleGeneration
from workbench.runtime.wire import Ref

if TYPE_CHECKING:
    from workbench.backends.jax import ReplicaMesh, Rows
    from workbench.backends.jax_program import Compiled
    from workbench.runtime.env import ReplicaEnv


@dataclass(slots=True)
class GroupPrograms:
    """What one group has here.

    Attributes:
      mesh: The devices of its replicas.
      local: (rank, device index) of this worker's replicas, in rank order.
      ranks: The replicas of this worker.
      programs: Compiled programs by function, structure and shapes.
      largest: Per function and leaf of its arguments, the most rows seen, to which partial batches are padded.
      agreed: The fewest and the most rows on any replica, of values that hosts have read, once they have told.
    """

    mesh: ReplicaMesh
    local: list[tuple[int, int]]
    ranks: tuple[int, ...]
    programs: dict[Any, Compiled] = field(default_factory=dict)
    largest: dict[Any, int] = field(default_factory=dict)
    agreed: dict[Ref, tuple[int, int]] = field(default_factory=dict)

    @property
    def alone(self) -> bool:
        """Whether all replicas are here, so that there is no other host to agree with."""
        return self.mesh.size == len(self.local)

    def rows_of(self, envs: Sequence[ReplicaEnv], name: Any) -> Rows:
        """A variable as the program takes it: as it was left by the last step, or put together."""
        from workbench.backends.jax import Row

        components = [env.store.kept(name) for env in envs]
        first = components[0]
        if type(first) is Row and all(type(c) is Row and c.rows is first.rows for c in components):
            rows = first.rows
        else:
            rows = self.mesh.stack(components)
        if rows.array.is_deleted():
            raise StaleGeneration(
                "the value of a variable went with a step that failed after it had been started; restore a checkpoint, "
                "or assign the variable anew"
            )
        return rows

    def padded(self, key: Any, rows: int) -> int:
        """To how many rows an argument is padded: to the most that there were."""
        self.largest[key] = max(rows, self.largest.get(key, 0))
        return self.largest[key]
