"""The cluster that a call refers to: the given one, that of a given strategy, or the current one."""

from __future__ import annotations

from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import FailedPreconditionError
from workbench.runtime import Cluster, current_cluster


def cluster_of(
    of: Strategy | Cluster | None, call: str, *, takes: str = "a strategy or a cluster"
) -> Cluster:
    """The cluster that a call refers to.

    Args:
      of: The caller's argument.
      call: The call as text, with `{}` for the strategy, such as "wb.topology({})".
      takes: Which arguments are possible, for errors.

    Raises:
      FailedPreconditionError: if there is none yet, or `of` is the default strategy, which needs none.
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
