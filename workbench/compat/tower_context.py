"""TowerContext: what a tower function can query and do; a tower is a replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench import tree
from workbench.compat.modern_spelling import tell
from workbench.compat.tower_values import collapsed
from workbench.distribute.replica.replica_context import ReplicaContext


@dataclass(frozen=True, slots=True)
class TowerContext:
    """One tower in its function (as tf.contrib.distribute's TowerContext); see `get_tower_context()`.

    Attributes:
      replica_context: The replica context, with all of today's methods.
      distribution_of: Returns the distribution strategy of a strategy.
    """

    replica_context: ReplicaContext
    distribution_of: Callable[[Any], Any]

    @property
    def tower_id(self) -> int:
        """Which tower this is, from 0 to `num_towers - 1`."""
        tell("tower_id", "get_replica_context().replica_id_in_sync_group")
        return self.replica_context.replica_id_in_sync_group

    @property
    def num_towers(self) -> int:
        """Number of towers that run together."""
        tell("TowerContext.num_towers", "get_replica_context().num_replicas_in_sync")
        return self.replica_context.num_replicas_in_sync

    @property
    def is_single_tower(self) -> bool:
        """Whether there is only one tower."""
        tell("TowerContext.is_single_tower", "get_replica_context().num_replicas_in_sync == 1")
        return self.replica_context.num_replicas_in_sync == 1

    @property
    def device(self) -> str:
        """Full name of the tower's device."""
        tell("TowerContext.device", "get_replica_context().devices[0]")
        return self.replica_context.devices[0]

    @property
    def distribution_strategy(self) -> Any:
        """The strategy that runs the tower."""
        tell("distribution_strategy", "get_replica_context().strategy")
        return self.distribution_of(self.replica_context.strategy)

    def merge_call(self, merge_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Pauses all towers, and calls `merge_fn(distribution, *args, **kwargs)` once in cross-tower context.

        Args:
          merge_fn: Takes arguments with one component per tower; `distribution.unwrap` lists the components. A plain
            Python value that all towers pass is that value.
          *args: Arguments of this tower.
          **kwargs: Keyword arguments of this tower.

        Returns:
          The result of `merge_fn`; for values with a component per tower, this tower's component.
        """
        tell(
            "merge_call(merge_fn, *args, **kwargs)",
            "get_replica_context().merge_call(merge_fn, args=(...), kwargs={...})",
        )
        return self.replica_context.merge_call(_TowerMerge(merge_fn, self.distribution_of), args, kwargs)


@dataclass(frozen=True, slots=True)
class _TowerMerge:
    """Adapts a merge function of towers, which expects the distribution instead of the strategy, to replicas."""

    fn: Callable[..., Any]
    distribution_of: Callable[[Any], Any]

    def __call__(self, strategy: Any, *args: Any, **kwargs: Any) -> Any:
        own, named = tree.map(collapsed, (args, kwargs))
        return self.fn(self.distribution_of(strategy), *own, **named)
