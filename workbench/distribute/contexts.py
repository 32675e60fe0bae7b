"""The current strategy and context of each thread.

A thread is in one of three contexts: the *default* one (where every thread starts: a replica context of one replica),
the *cross-replica* context (inside `scope`, a merge function or an update), or the *replica* context of a strategy
(inside `run`, also of the default strategy). The state is one reference per thread; functions that change it restore
the old one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.replica.env import ReplicaEnv


class EnteredStrategy(Protocol):
    """A strategy from the point of view of contexts."""

    is_default: bool

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas."""

    @property
    def group(self) -> Group:
        """The replicas, in the runtime."""

    def divided(self, *args: Any, **kwargs: Any) -> Any:
        """The variable that `wb.Variable(...)` makes in the scope if it is divided, else None."""

    def run_collective(self, program: Callable[..., Any], args: tuple[Any, ...] = ()) -> Any:
        """Runs an internal program that communicates."""


class EnteredReplica(Protocol):
    """The ReplicaContext of a replica function, from the point of view of contexts."""

    strategy: Any

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Pauses all replicas and calls a function in cross-replica context."""


_S = TypeVar("_S", bound=EnteredStrategy)
Entered = Literal["scope", "set", "merge", "update"]


@dataclass(frozen=True, slots=True)
class CrossReplica:
    """The thread sees all replicas of `strategy` at once.

    Attributes:
      strategy: The current strategy.
      by: Who entered it: a `scope`, `experimental_set_strategy`, a merge function or an update function.
      scope: The scope that entered it.
      outer: The context around that scope.
    """

    strategy: EnteredStrategy
    by: Entered
    scope: Scope[Any] | None = None
    outer: EnteredReplica | CrossReplica | None = None


class _Thread(threading.local):
    """The calling thread's context; None is the default context, in which new threads start."""

    context: EnteredReplica | CrossReplica | None = None


thread = _Thread()


def entered_strategy() -> EnteredStrategy | None:
    """The strategy whose scope or replica function the thread is in, else None."""
    context = thread.context
    return None if context is None else context.strategy


def has_strategy() -> bool:
    """Whether a strategy other than the default one is current; also inside `run` and merge functions."""
    strategy = entered_strategy()
    return strategy is not None and not strategy.is_default


def entered_replica() -> EnteredReplica | None:
    """The ReplicaContext of the running replica function, else None."""
    context = thread.context
    return None if isinstance(context, CrossReplica) else context


def in_replica_function() -> bool:
    """Whether the thread runs a replica function of a strategy other than the default one."""
    context = thread.context
    return context is not None and type(context) is not CrossReplica and not context.strategy.is_default


def in_cross_replica_context() -> bool:
    """Whether the thread is in cross-replica context; exactly then `get_replica_context()` is None.

    >>> with strategy.scope():
    ...     wb.distribute.in_cross_replica_context()
    True
    >>> strategy.run(wb.distribute.in_cross_replica_context).values
    (False, False)
    """
    return type(thread.context) is CrossReplica


def merging_env() -> ReplicaEnv | None:
    """The traced replica in whose merge function the calling thread is, else None."""
    env = current_env()
    context = thread.context
    if env is None or not env.traced:
        return None
    return env if type(context) is CrossReplica and context.by != "update" else None


def experimental_set_strategy(strategy: EnteredStrategy | None) -> None:
    """Makes `strategy` current for this thread without a `with` block; None ends that.

    Raises:
      RuntimeError: inside a `strategy.scope()` block, a replica function or a merge function.
    """
    context = thread.context
    if context is not None and not (type(context) is CrossReplica and context.by == "set"):
        where = "a replica function" if type(context) is not CrossReplica else _PLACES[context.by]
        raise RuntimeError(
            f"experimental_set_strategy was called inside {where}; call it outside, at the top level of the program"
        )
    thread.context = None if strategy is None or strategy.is_default else CrossReplica(strategy, "set")


_PLACES: dict[Entered, str] = {
    "scope": "a strategy.scope() block",
    "set": "the scope of experimental_set_strategy",
    "merge": "a merge function",
    "update": "an update function",
}


def cross_replica(strategy: EnteredStrategy, by: Entered) -> AbstractContextManager[None]:
    """Puts the thread into the cross-replica context of `strategy` for the block."""
    return entered(CrossReplica(strategy, by))


@contextmanager
def entered(context: EnteredReplica | CrossReplica | None) -> Iterator[None]:
    """Puts the thread into `context` for the block, None for the default one."""
    outer = thread.context
    thread.context = context
    try:
        yield
    finally:
        thread.context = outer


class AnyScope(ContextDecorator, AbstractContextManager[_S, None]):
    """The result of `strategy.scope()`: a reusable context manager and decorator of functions."""


class Scope(AnyScope[_S]):
    """`strategy.scope()`, a reusable and reentrant context manager that several threads may enter.

    Args:
      strategy: The strategy that it makes current.
    """

    def __init__(self, strategy: _S) -> None:
        self._strategy = strategy

    def __enter__(self) -> _S:
        require_cross_replica(self._strategy, "strategy.scope()")
        thread.context = CrossReplica(self._strategy, "scope", self, thread.context)
        return self._strategy

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        try:
            thread.context = _without(self, thread.context)
        except RuntimeError:
            # This error would hide the block's own, for example in a generator that another thread closes.
            if kind is None:
                raise


def _without(
    scope: Scope[Any], context: EnteredReplica | CrossReplica | None
) -> EnteredReplica | CrossReplica | None:
    """The context after leaving `scope`, even if a scope entered inside it is still open."""
    if type(context) is not CrossReplica or context.scope is None:
        raise RuntimeError("this thread left a strategy.scope() that it is not in")
    if context.scope is scope:
        return context.outer
    return replace(context, outer=_without(scope, context.outer))


def require_cross_replica(strategy: EnteredStrategy, what: str) -> None:
    """Refuses `what` unless the thread is outside replica functions and other strategies' scopes.

    A replica function of the default strategy does not count here, because it runs in the program's thread.

    Raises:
      RuntimeError: if it is inside a replica function, or inside the scope of another strategy.
    """
    context = thread.context
    if context is None or (context.strategy.is_default and context.strategy is not strategy):
        return
    if type(context) is not CrossReplica:
        raise RuntimeError(
            f"{what} was called inside a replica function, where only this replica's values exist; call it outside "
            f"of `run`, use get_replica_context().all_reduce or all_gather, or call it in a merge function "
            f"(get_replica_context().merge_call)"
        )
    if context.strategy is not strategy:
        raise RuntimeError(
            f"{what} was called on {strategy!r} in the scope of another strategy, {context.strategy!r}; leave that "
            f"scope first (a program may use several strategies, one after the other)"
        )
