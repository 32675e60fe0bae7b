"""`wb.topology`, `wb.devices` and `wb.log`: the present state of a cluster, its use, and what happened on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from workbench.distribute.strategies.strategy import Strategy
from workbench.runtime import Cluster
from workbench.telemetry.formatting import NOTHING, SIGNS, percent, printable, size_text
from workbench.telemetry.snapshot import Snapshot
from workbench.telemetry.verdicts import Verdict, verdicts
from workbench.telemetry.verdicts.words import count_text
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.cluster.cluster_model import DeviceHistory, as_stopped, topology_model
from workbench.ui.models.cluster import Devices, Topology
from workbench.ui.render import html
from workbench.ui.render.text_table import aligned
from workbench.ui.render.verdict_lines import verdict_lines
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.collectives import CollectivesSource
from workbench.ui.widgets.sources import Polled, Source

_MAX_ROWS: Final = 32
_MAX_SAID: Final = 5
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
    return ClusterView(cluster, topology_source(cluster), lambda: _topology_table(topology_model(cluster)))


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
    return ClusterView(cluster, source, lambda: _devices_table(DeviceHistory(cluster).model()))


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
    return ClusterView(cluster, source, lambda: _log_table(cluster.feed.snapshot(), ended=cluster.closed))


class Table(NamedTuple):
    """What a view prints: a title, a table, and statements about the run in between."""

    title: str
    headings: list[str]
    rows: list[list[str]]
    said: Sequence[Verdict] = ()


def _topology_table(model: Topology) -> Table:
    rows = []
    for host in model.hosts:
        for worker in host.workers:
            memory = NOTHING if worker.memory_bytes is None else _mebibytes(worker.memory_bytes)
            facts = [host.name, worker.name, str(worker.pid), worker.status, memory]
            for device in worker.devices:
                rows += [
                    [*facts, device.name, node.group, f"r{node.replica}", node.doing]
                    for node in device.replicas
                ] or [[*facts, device.name, NOTHING, NOTHING, worker.detail]]
            if worker.detail and worker.status != "lost" and worker.devices:
                rows.append([*facts, NOTHING, NOTHING, NOTHING, worker.detail])
    headings = ["host", "worker", "pid", "status", "memory", "device", "strategy", "replica", "now"]
    return Table(f"Cluster, run {model.run}", headings, _bounded(rows))


def _devices_table(model: Devices) -> Table:
    rows = [
        [
            use.host,
            use.name,
            use.kind,
            use.status,
            NOTHING if use.use_percent is None else percent(use.use_percent / 100),
            _mebibytes(use.memory_bytes),
            _mebibytes(use.memory_limit_bytes),
        ]
        for use in model.devices
    ]
    return Table(
        f"Devices, run {model.run}",
        ["host", "device", "kind", "status", "use", "memory", "of"],
        _bounded(rows),
    )


def _log_table(snapshot: Snapshot, *, ended: bool) -> Table:
    events = snapshot.events
    start = events[0].t_ns if events else 0
    rows = [
        [
            f"{(event.t_ns - start) / 1e9:.3f} s",
            " ".join(part for part in (SIGNS.get(event.severity, ""), event.name) if part),
            NOTHING if event.replica < 0 else f"r{event.replica}{event.host and '@'}{event.host}",
            NOTHING if event.step < 0 else str(event.step),
            event.message,
        ]
        for event in events[-_MAX_ROWS:]
    ]
    headings = ["after", "what", "replica", "step", "message"]
    said = [verdict for verdict in verdicts(snapshot)[:_MAX_SAID] if verdict.code != "watching"]
    return Table(_log_title(snapshot, ended=ended), headings, rows, said)


def _log_title(snapshot: Snapshot, *, ended: bool) -> str:
    count, dropped = len(snapshot.events), snapshot.counters.dropped_events
    if not count:
        return "Log: nothing happened" if ended else "Log: nothing happened yet"
    lines = f"the newest {_MAX_ROWS} of {count} lines" if count > _MAX_ROWS else count_text(count, "line")
    alerts = sum(event.kind == "alert" for event in snapshot.events)
    older = f", {dropped:,} older ones dropped" if dropped else ""
    return f"Log: {lines}, {count_text(alerts, 'alert')}{older}"


def _bounded(rows: list[list[str]]) -> list[list[str]]:
    if len(rows) <= _MAX_ROWS:
        return rows
    more = [f"… {len(rows) - _MAX_ROWS} more", *([""] * (len(rows[0]) - 1))]
    return [*rows[:_MAX_ROWS], more]


def _mebibytes(size_bytes: int | None) -> str:
    return NOTHING if size_bytes is None else size_text(round(size_bytes / (1 << 20)) << 20)
