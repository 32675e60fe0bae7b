"""`wb.topology`, `wb.devices` and `wb.log`: the present state of a cluster, its use, and what happened on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.distribute.strategies.strategy import Strategy
from workbench.runtime import Cluster
from workbench.telemetry.formatting import printable
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.cluster.cluster_model import DeviceHistory, as_stopped, topology_model
from workbench.ui.cluster.tables import Table, devices_table, log_table, topology_table
from workbench.ui.models.cluster import Topology
from workbench.ui.render import html
from workbench.ui.render.text_table import aligned
from workbench.ui.render.verdict_lines import verdict_lines
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.collectives import CollectivesSource
from workbench.ui.widgets.sources import Polled, Source

_PLACES: Final = ("host", "worker", "device", "strategy", "replica", "status", "kind", "what", "message")


class ClusterView:
    """A view of a cluster: prints as a table, and updates itself in a notebook.

    Attributes:
      cluster: The cluster that it shows.
    """

    def __init__(self, cluster: Cluster, source: Source, table: Callable[[], Table]) -> None:
        self.cluster = cluster
        self._source = source
        self._table = table

    def to_dict(self) -> dict[str, Any]:
        """What is shown now, as JSON-able values."""
        return self._source.model()

    def __repr__(self) -> str:
        return self._text(self._table())

    def _repr_html_(self) -> str:
        return self._html(self._table())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        table = self._table()  # once, because the model of devices asks Dask's scheduler
        return mimebundle(self._source, text=self._text(table), html=self._html(table), include=include)

    def _text(self, table: Table) -> str:
        title, headings, rows, said = table
        one_host = len({row[0] for row in rows}) < 2  # otherwise it distinguishes rows
        expendable = ("pid", "worker", "kind", "strategy", *(["host"] if one_host else ["memory"]))
        lines = aligned(headings, rows, left=(*_PLACES, "now"), expendable=expendable, wrapped="message")
        first = [f"{printable(title)}, {self.cluster.status}"]
        for verdict in said:
            first += verdict_lines(verdict.severity, verdict.sentence, verdict.evidence)
        return "\n".join([*first, *(lines if rows else [])])

    def _html(self, table: Table) -> str:
        title, headings, rows, said = table
        left = sum(heading in _PLACES for heading in headings)
        parts = [html.verdict(verdict.severity, verdict.sentence, verdict.evidence) for verdict in said]
        parts += [html.table(headings, rows, left=left)] if rows else []
        return html.card(title, word=self.cluster.status, parts=parts)


def topology(of: Strategy | Cluster | None = None) -> ClusterView:
    """Shows hosts, workers, devices and replicas, and what each of them does, as of the last heartbeats.

    Args:
      of: A cluster, or a strategy: its cluster; by default the current one.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      TypeError: if `of` is something else.
    """
    cluster = cluster_of(of, "wb.topology({})")
    return ClusterView(cluster, topology_source(cluster), lambda: topology_table(topology_model(cluster)))


def topology_source(cluster: Cluster) -> Source:
    """The source of a topology view. After the cluster is closed, it keeps the last state."""
    last: Topology | None = None

    def make() -> Topology:
        nonlocal last
        found = topology_model(cluster)
        # Checked afterwards: a model created while the cluster was closing does not show a live one.
        if cluster.closed:
            return found if last is None else as_stopped(last)
        last = found
        return found

    return Polled("topology", make, interval_seconds=0.5, ended=lambda: cluster.closed)


def devices(of: Strategy | Cluster | None = None) -> ClusterView:
    """Shows how much of each worker's processor, memory and GPUs is in use, as its last heartbeat said.

    Dask measures processor and memory. NVIDIA's management library (NVML) measures the use of a GPU by all processes.
    If it is missing, only the GPU's memory is known, and the GPU's name says so.

    Args:
      of: See `topology`.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      TypeError: if `of` is something else.
    """
    cluster = cluster_of(of, "wb.devices({})")
    history = DeviceHistory(cluster)
    source = Polled("devices", history.model, interval_seconds=1.0, ended=lambda: cluster.closed)
    return ClusterView(cluster, source, lambda: devices_table(DeviceHistory(cluster).model()))


def log(of: Strategy | Cluster | None = None) -> ClusterView:
    """Shows what happened besides collectives: alerts, such as lost replicas, and the lines that replicas printed.

    Args:
      of: See `topology`.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      TypeError: if `of` is something else.
    """
    cluster = cluster_of(of, "wb.log({})")
    source = CollectivesSource("log", cluster.feed.snapshot, lambda: cluster.status)
    return ClusterView(cluster, source, lambda: log_table(cluster.feed.snapshot(), ended=cluster.closed))
