"""The default strategy: one replica in the calling thread, without a cluster; and the current strategy and context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench import tree
from workbench.distribute import contexts
from workbench.distribute.arrays.plain_device import HERE
from workbench.distribute.function import checked_arguments, plain_function
from workbench.distribute.replica.replica_context import DefaultReplicaContext, ReplicaContext
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.strategy_description import StrategyDescription
from workbench.distribute.value_context import RunOptions
from workbench.distribute.values.distributed_values import PerReplica, select
from workbench.distribute.variables.on_replicas import placement_of


class DefaultStrategy(Strategy):
    """The current strategy outside all others: the same methods, with one replica in the calling thread.

    Attributes:
      replica_context: The result of `get_replica_context()` outside all strategies.
    """

    is_default = True

    def __init__(self) -> None:
        description = StrategyDescription(
            id="default",
            kind=DefaultStrategy,
            devices=(HERE,),
            placement_of=placement_of,
            options=None,
            cross_device_ops=None,
        )
        self._describe(description, None)
        self.replica_context = DefaultReplicaContext(self)

    def scope(self) -> contexts.AnyScope[Strategy]:
        """Does nothing, because the default strategy is already current.

        Raises:
          RuntimeError: when it is entered, inside the scope of another strategy, or in a replica function.
        """
        return _DefaultScope()

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Calls `fn` in this process; returns the result's structure with a one-component `PerReplica` for each leaf.

        Args:
          fn: A function or a `wb.function`.
          args: Its arguments; distributed values are replaced by their component.
          kwargs: Its keyword arguments, likewise.
          options: Accepted, without effect here.

        Raises:
          RuntimeError: in a replica function, or in the scope of another strategy.
          TypeError: if `fn` is not a function, or one with `yield` or `async def`.
        """
        contexts.require_cross_replica(self, "strategy.run")
        plain, args = plain_function(fn), checked_arguments(args, kwargs)
        with contexts.entered(self.replica_context):
            result = plain(*(select(value, 0) for value in args), **select(kwargs or {}, 0))
        return tree.map(lambda leaf: PerReplica((leaf,)), result)


class _DefaultScope(contexts.AnyScope[Strategy]):
    """The scope of the default strategy, which is current outside all others."""

    def __enter__(self) -> Strategy:
        if contexts.has_strategy():
            raise RuntimeError(
                f"the scope of the default strategy was entered inside {get_strategy()!r}; leave that first"
            )
        return DEFAULT_STRATEGY

    def __exit__(self, *raised: object) -> None:
        pass


DEFAULT_STRATEGY = DefaultStrategy()


def get_strategy() -> Strategy:
    """The current strategy; outside any strategy, the default one (one replica, always the same object).

    >>> with strategy.scope():
    ...     wb.distribute.get_strategy() is strategy
    True
    """
    strategy = contexts.entered_strategy()
    assert strategy is None or isinstance(strategy, Strategy)
    return strategy or DEFAULT_STRATEGY


def get_replica_context() -> ReplicaContext | None:
    """The ReplicaContext of the running replica function, or None in cross-replica context.

    Outside all scopes it is that of the default strategy: one replica, whose collectives return their input.

    >>> def step():
    ...     return wb.distribute.get_replica_context().replica_id_in_sync_group
    >>> strategy.run(step).values
    (0, 1)
    """
    if contexts.in_cross_replica_context():
        return None
    context = contexts.entered_replica()
    assert context is None or isinstance(context, ReplicaContext)
    return context or DEFAULT_STRATEGY.replica_context
