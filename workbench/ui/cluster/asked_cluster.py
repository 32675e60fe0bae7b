"""The cluster that a call is about: one that the caller gives, that of a strategy, or the current one."""

from __future__ import annotations

from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import FailedPreconditionError
from workbench.runtime import Cluster, current_cluster


def cluster_of(
    of: Strategy | Cluster | None, call: str, *, takes: str = "a strategy or a cluster"
) -> Cluster:
    """The cluster that a call is about.

    Args:
      of: What the caller gave.
      call: How to write the call, with `{}` for the strategy that it takes, such as "wb.topology({})".
      takes: What may be given.

    Raises:
      FailedPreconditionError: if there is none yet, or `of` is the strategy that needs none.
      TypeError: if `of` is not a strategy or cluster.
    """
    current = call.format("").replace(", )", ")")
    if of is not None and not isinstance(of, Strategy | Cluster):
        raise TypeError(
            f"{current} takes {takes}, got {type(of).__name__}; write {call.format('strategy')}, or "
            f"{current} for the current cluster"
        )
    if isinstance(of, Strategy) and of.is_default:
        raise FailedPreconditionError(
            f"the default strategy computes in the notebook, without a cluster; write {current} for the current one"
        )
    cluster = of.gang.cluster if isinstance(of, Strategy) else of or current_cluster()
    if cluster is None:
        raise FailedPreconditionError(
            f"there is no cluster for {current}: call wb.connect(...), or make a strategy and run something"
        )
    return cluster
