"""The five lines of `wb.diagnose`: the most important first."""

from __future__ import annotations

from typing import Final

from workbench.runtime.driver.membership import size_text
from workbench.runtime.placement_text import counted
from workbench.runtime.process.beside import BesideStatus
from workbench.telemetry.feed.stuck import stuck_text
from workbench.telemetry.formatting import printable
from workbench.telemetry.formatting import size_text as amount_text
from workbench.telemetry.snapshot import LastSeen, Stuck
from workbench.telemetry.verdicts.words import verdict_text
from workbench.ui.cluster.reports import Findings, GroupReport, ReplicaReport, WorkerReport
from workbench.ui.cluster.servers_lines import headline, servers_lines

_MAX_LINES: Final = 5
_SILENT_SECONDS: Final = 2.0
_STATES: Final = {
    "T": "its process is stopped (state T)",
    "t": "its process is stopped by a debugger (state t)",
    "Z": "its process has ended",
    "D": "its process waits for a device or disk (state D)",
    "": "",
}


def verdict(found: Findings) -> tuple[str, ...]:
    """At most five lines: the most important statement, the general state, then lost, silent or slow workers."""
    if found.status == "stopped":
        return tuple(
            map(printable, (verdict_text(found.said[0]), f"run {found.run}: the cluster was closed"))
        )
    lines = [line for group in found.groups for line in _stuck_lines(group, found)]
    # Workers that answer know more about a hang than their records show.
    first = found.said[0].sentence if lines else verdict_text(found.said[0])
    lines += [
        f"{size_text(group.label, len(group.replicas), list(group.missing))} until their workers are back"
        for group in found.groups
        if group.missing
    ]
    lines += [line for servers in found.servers for line in servers_lines(servers)]
    lines += [line for worker in found.workers if (line := _worker_line(worker))]
    lines += [line for group in found.groups for line in _slow_lines(group)]
    lines += [beside_text(BesideStatus(**status)) for worker in found.workers for status in worker.beside]
    lines = [first, _general(found), *dict.fromkeys(lines)]
    if len(lines) > _MAX_LINES:
        hidden = len(lines) - _MAX_LINES + 1
        lines = [*lines[: _MAX_LINES - 1], f"… and {counted(hidden, 'more line')}: see .details"]
    return tuple(map(printable, lines))


def _general(found: Findings) -> str:
    servers = " ".join(map(headline, found.servers))
    active = [group for group in found.groups if group.in_flight]
    if not active:
        last = max((group.committed_step for group in found.groups), default=-1)
        done = f", step {last} was the last" if last >= 0 else ""
        if failed := [group.failed for group in found.groups if group.failed]:
            done += f"; {'; '.join(failed)}"
        steps = f"idle{done}" if done or not servers else ""
    else:
        steps = "; ".join(
            f"{group.label} runs step {group.committed_step + 1} ({counted(group.in_flight, 'step')} on the way), "
            f"generation {group.generation}"
            for group in active
        )
    return f"run {found.run}: {'. '.join(filter(None, (steps, servers)))}"


def _stuck_lines(group: GroupReport, found: Findings) -> list[str]:
    """Which replicas wait in which collective, for which others, and what those do instead."""
    waiting = [
        replica for replica in group.replicas if replica.busy and replica.op and replica.phase == "waiting"
    ]
    if not waiting:
        return []
    first = min(waiting, key=_position)
    missing = [replica for replica in group.replicas if _position(replica) < _position(first)]
    if not missing:
        return []
    answered = {worker.name for worker in found.workers if worker.answered}
    stuck = Stuck(
        step=first.step,
        seq=first.seq,
        op=first.op,
        site=first.site,
        waiting=tuple(replica.replica for replica in waiting),
        missing=tuple(replica.replica for replica in missing),
        since_ns=0,
        last=tuple(_last_seen(replica, answered) for replica in missing),
    )
    # If a replica's worker does not answer, the first line says everything.
    return [stuck_text(stuck), *(_doing(replica) for replica in missing[:3] if replica.worker in answered)]


def _doing(replica: ReplicaReport) -> str:
    if not replica.busy:
        return (
            f"replica {replica.replica} runs nothing: it has ended step {replica.step}, or not begun the next"
        )
    where = f" at {replica.place}" if replica.place else ""
    what = {"paused": f"waits in {replica.op}", "running": "runs user code"}.get(
        replica.phase, f"is in {replica.op}"
    )
    return f"replica {replica.replica} {what}{where}"


def _slow_lines(group: GroupReport) -> list[str]:
    """The positions of replicas, if none of them waits for another."""
    busy = [replica for replica in group.replicas if replica.busy]
    if any(replica.phase == "waiting" for replica in busy):
        return []
    return [_doing(replica) for replica in busy]


def _worker_line(worker: WorkerReport) -> str:
    who = f"worker {worker.name} ({worker.host}, pid {worker.pid})"
    if worker.lost:
        return f"{who} is lost: {worker.lost}; a step recovers as soon as a worker is there in its place"
    age = worker.heartbeat_age_seconds
    if worker.answered and age < _SILENT_SECONDS:
        return ""
    if worker.answered:
        return f"{who} is slow: its last heartbeat came {age:.1f} s ago"
    why = _STATES.get(worker.process_state, "its process is inside C code, or the machine is overloaded")
    return f"{who} does not answer: {', '.join(filter(None, (why, f'last heartbeat {age:.1f} s ago')))}"


def beside_text(status: BesideStatus) -> str:
    """One line on what an additional process of a worker does."""
    replicas = " ".join(map(str, status.replicas))
    line = f"{status.purpose} process (pid {status.pid}) feeds replicas {replicas}, {amount_text(status.given_bytes)}"
    if state := _STATES.get(status.state, ""):
        line += f"; {state}"
    if status.starts > 1:
        line += f"; started {status.starts} times, as it has ended before"
    return line


def _last_seen(replica: ReplicaReport, answered: set[str]) -> LastSeen:
    now = "" if replica.worker in answered else replica.place
    if not replica.flight:
        # It does not answer. Its last heartbeat has the number of its latest collective, but not its kind.
        op = "collective" if replica.seq >= 0 else ""
        return LastSeen(replica.replica, replica.step, replica.seq, op, "", now)
    # Workbench's own measurements in between belong to no user step, and would be misleading.
    last = next((each for each in reversed(replica.flight) if each["step"] >= 0), replica.flight[-1])
    return LastSeen(replica.replica, last["step"], last["seq"], last["op"], last["site"], now)


def _position(replica: ReplicaReport) -> tuple[int, int]:
    return replica.step, replica.seq
