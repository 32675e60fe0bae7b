"""ReadyProgram: a compiled program in its group, with everything that all of its steps share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from workbench.runtime.comm.messages import INLINE_BYTES, DoneForRanks, JoinGroup, RemoteLeaf, RowsLeaf
from workbench.runtime.traced.slices import SlicesRows
from workbench.telemetry.records import Signature

if TYPE_CHECKING:
    from workbench.backends.jax.program import Compiled
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.host import TracingHost


class ReadyProgram:
    """A program that a worker has compiled for one group, and how its steps are reported.

    A step may take only a millisecond. Looking up the constant parts of records and results of 16 replicas in each step
    would add a tenth to that.

    Attributes:
      compiled: The program.
      site: The user's function.
    """

    __slots__ = (
        "_generation",
        "_host",
        "_moved",
        "_ranks",
        "_remote",
        "_small",
        "_structure_key",
        "_write",
        "compiled",
        "site",
    )

    def __init__(self, host: TracingHost, ranks: tuple[int, ...], compiled: Compiled, site: str) -> None:
        """Sends the structure of the results to the driver."""
        self.compiled = compiled
        self.site = site
        self._host = host
        self._ranks = ranks
        self._structure_key = host.structure_key(compiled.structure[0])
        self._remote: DoneForRanks | None = None
        self._moved = compiled.collectives, compiled.collective_bytes
        self._small: list[int] = []
        self._write: Callable[..., None] | None = None
        self._generation = -1

    def outcome(self, leaves: Sequence[Any], *, awaited: bool) -> DoneForRanks:
        """The outcome of the step on the local ranks.

        Args:
          leaves: The leaves of the result: `Rows`, `SlicesRows`, or values that are the same in every step.
          awaited: Whether the notebook may read it soon; if so, small values are included.
        """
        if self._remote is None:
            described = [_described(leaf) for leaf in leaves]
            self._remote = DoneForRanks(self._ranks, self._structure_key, described)
            self._small = [
                index for index, leaf in enumerate(leaves) if _is_rows(leaf) and leaf.nbytes <= INLINE_BYTES
            ]
        if not awaited or not self._small:
            return self._remote
        shown = list(self._remote.leaves)
        for index in self._small:
            shown[index] = RowsLeaf(leaves[index].bring_home())
        return self._remote._replace(leaves=shown)

    def record(self, group: LocalGroup, step: int, started_ns: int, begin: int, end: int) -> None:
        """Records the whole step for all replicas, with the bytes that its collectives move according to the compiler.

        Args:
          group: The group whose step it was.
          step: Number among the user's steps.
          started_ns: When it was started, by `time.monotonic_ns`.
          begin: When its computation began.
          end: When its computation ended.
        """
        if self._generation != group.join.generation:  # the group was rebuilt, and with it its rings
            self._generation = group.join.generation
            self._write = self._opened(group.join)
        if self._write is not None:
            self._write(step, 0, *self._moved, started_ns, begin, end)

    def _opened(self, join: JoinGroup) -> Callable[..., None] | None:
        ring = self._host.rings.shared(join)
        if ring is None:
            return None
        signature = Signature(join.generation, join.name, "step", "", "", "traced", 0, "xla", site=self.site)
        return functools.partial(ring.write, ring.number(signature))


def _described(leaf: Any) -> Any:
    if type(leaf) is SlicesRows:
        return RemoteLeaf("IndexedSlices", leaf.values.dtype.name, leaf.fixed.dense_shape, 0)
    if _is_rows(leaf):
        return RemoteLeaf("jax.Array", leaf.dtype.name, leaf.shape, leaf.nbytes)
    return (leaf,)


def _is_rows(leaf: Any) -> bool:
    return type(leaf).__name__ == "Rows"  # its module imports JAX
