"""What the views of a cluster print: of many replicas and devices, those first that stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from workbench.telemetry.formatting import NOTHING, SIGNS, percent, size_text
from workbench.telemetry.snapshot import Snapshot
from workbench.telemetry.verdicts import Verdict, verdicts
from workbench.telemetry.verdicts.words import count_text
from workbench.ui.models.cluster import Devices, DeviceUse, ReplicaNode, Topology, WorkerNode
from workbench.ui.render.outliers import FENCE, distances
from workbench.ui.render.text_table import MAX_ROWS, odd_first

_MAX_SAID: Final = 5
_QUIET: Final = frozenset(("live", "stopped"))


class Table(NamedTuple):
    """What a view prints: a title, a table, and what is said of the run between them."""

    title: str
    headings: list[str]
    rows: list[list[str]]
    said: Sequence[Verdict] = ()


class _Line(NamedTuple):
    """A row of the topology, its replica, and whether it stands out."""

    cells: list[str]
    replica: ReplicaNode | None
    is_odd: bool


def topology_table(model: Topology) -> Table:
    """A row for each replica, device without replicas, and worker without devices."""
    lines = [line for host in model.hosts for worker in host.workers for line in _lines(host.name, worker)]
    headings = ["host", "worker", "pid", "status", "memory", "device", "strategy", "replica", "now"]
    lines = odd_first(lines, lambda line: line.is_odd)
    rows = [line.cells for line in lines[:MAX_ROWS]]
    if rest := lines[MAX_ROWS:]:
        doing = Counter("busy" if line.replica.busy else "idle" for line in rest if line.replica)
        said = ", ".join(f"{count} {what}" for what, count in doing.most_common())
        rows.append([f"… {len(rest)} more", *[""] * (len(headings) - 2), said])
    return Table(f"Cluster, run {model.run}", headings, rows)


def _lines(host: str, worker: WorkerNode) -> list[_Line]:
    memory = _mebibytes(worker.memory_bytes)
    facts = [host, worker.name, str(worker.pid), worker.status, memory]
    is_odd = worker.status not in _QUIET
    lines = []
    for device in worker.devices:
        lines += [
            _Line(
                [*facts, device.name, node.group, f"r{node.replica}", _doing(node)],
                node,
                is_odd or bool(node.news),
            )
            for node in device.replicas
        ] or [_Line([*facts, device.name, NOTHING, NOTHING, worker.detail], None, is_odd)]
    if worker.detail and worker.status != "lost" and worker.devices:
        lines.append(_Line([*facts, NOTHING, NOTHING, NOTHING, worker.detail], None, is_odd))
    return lines


def _doing(node: ReplicaNode) -> str:
    return " · ".join(filter(None, (node.news, node.doing)))


def devices_table(model: Devices) -> Table:
    """A row for each device."""
    columns = [use.use_percent for use in model.devices], [_percent_full(use) for use in model.devices]
    far = np.maximum(*map(_far, columns)).tolist()
    odd = {use.key for use, at in zip(model.devices, far, strict=True) if at > FENCE}
    uses = odd_first(model.devices, lambda use: use.key in odd or use.status not in _QUIET)
    rows = [
        [
            *(use.host, use.name, use.kind, use.status),
            _use(use.use_percent),
            _mebibytes(use.memory_bytes),
            _mebibytes(use.memory_limit_bytes),
        ]
        for use in uses[:MAX_ROWS]
    ]
    if rest := uses[MAX_ROWS:]:
        sums = (
            _range([use.use_percent for use in rest], _use),
            _range([use.memory_bytes for use in rest], _mebibytes),
            _range([use.memory_limit_bytes for use in rest], _mebibytes),
        )
        rows.append([f"… {len(rest)} more", "", "", "", *sums])
    headings = ["host", "device", "kind", "status", "use", "memory", "of"]
    return Table(f"Devices, run {model.run}", headings, rows)


def _far(percents: list[float | None]) -> np.ndarray:
    """How far each is from the others; less than a percent tells nothing."""
    return distances(np.array(percents, float), 1.0)


def _percent_full(use: DeviceUse) -> float | None:
    if use.memory_bytes is None or not use.memory_limit_bytes:
        return None
    return 100 * use.memory_bytes / use.memory_limit_bytes


def log_table(snapshot: Snapshot, *, ended: bool) -> Table:
    """The newest lines, and the verdict on the run; `ended`: nothing more comes."""
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
        for event in events[-MAX_ROWS:]
    ]
    headings = ["after", "what", "replica", "step", "message"]
    said = [verdict for verdict in verdicts(snapshot)[:_MAX_SAID] if verdict.code != "watching"]
    return Table(_log_title(snapshot, ended=ended), headings, rows, said)


def _log_title(snapshot: Snapshot, *, ended: bool) -> str:
    count, dropped = len(snapshot.events), snapshot.counters.dropped_events
    if not count:
        return "Log: nothing happened" if ended else "Log: nothing happened yet"
    lines = f"the newest {MAX_ROWS} of {count} lines" if count > MAX_ROWS else count_text(count, "line")
    alerts = sum(event.kind == "alert" for event in snapshot.events)
    older = f", {dropped:,} older ones dropped" if dropped else ""
    return f"Log: {lines}, {count_text(alerts, 'alert')}{older}"


def _range(values: Sequence[float | None], text: Callable[[float | None], str]) -> str:
    """The lowest and the highest of some figures."""
    known = [value for value in values if value is not None]
    ends = [text(min(known, default=None)), text(max(known, default=None))]
    return " to ".join(dict.fromkeys(ends))


def _use(use_percent: float | None) -> str:
    return NOTHING if use_percent is None else percent(use_percent / 100)


def _mebibytes(size_bytes: float | None) -> str:
    return NOTHING if size_bytes is None else size_text(round(size_bytes / (1 << 20)) << 20)
