"""`wb.collectives`: the timings of a cluster, with functions that measure and predict them."""

from __future__ import annotations

from workbench.arguments import flag
from workbench.distribute.strategies.strategy import Strategy
from workbench.runtime import Cluster
from workbench.telemetry.cost_model import LinkCost
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.collectives.limits import measure_limits
from workbench.ui.collectives.sweep import sweep
from workbench.ui.collectives.timings import Timings
from workbench.ui.collectives.what_if import what_if


class Collectives:
    """`wb.collectives(…)` shows the timings; `.sweep` and `.what_if` measure and predict them."""

    LinkCost = LinkCost
    sweep = staticmethod(sweep)
    what_if = staticmethod(what_if)

    def __call__(self, of: Strategy | Cluster | None = None, *, internal: bool = False) -> Timings:
        """Shows how long collectives took so far, as a table with exports for other tools.

        While a step hangs in another thread, it shows which replicas the others wait for. When replicas are idle, it
        measures the limit of bandwidths once (`lim%`, see `telemetry.limits.Limit`).

        Args:
          of: A strategy, or a cluster for all of its strategies; by default the current cluster.
          internal: Also show collectives of workbench itself, such as those that distribute input.

        Raises:
          FailedPreconditionError: if there is no cluster yet.
          TypeError: if `of` is something else.
        """
        internal = flag(internal, "wb.collectives: internal")
        cluster = cluster_of(of, "wb.collectives({})")
        group = of.group.name if isinstance(of, Strategy) else ""
        silent: tuple[str, ...] = ()
        if not cluster.closed:
            measure_limits(cluster, group)
            silent = cluster.flush_telemetry()
        return Timings(
            cluster.feed,
            group=group,
            internal=internal,
            status=cluster.status,
            silent=silent,
            cluster=cluster,
        )

    def __reduce__(self) -> str:
        return "collectives"  # a global here: functions that refer to it are sent to replicas


collectives = Collectives()
