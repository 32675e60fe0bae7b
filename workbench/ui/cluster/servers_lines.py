"""The lines of `wb.diagnose` about parameter servers and the functions on their workers."""

from __future__ import annotations

from typing import Final

from workbench.distribute.servers.overview import FunctionQueue, ServerStatus, WorkerFunctions
from workbench.runtime.placement_text import counted
from workbench.telemetry.formatting import significant, size_text
from workbench.ui.cluster.reports import ServersReport

_MOST_LISTED: Final = 4


def headline(report: ServersReport) -> str:
    """What they do, or what prevents them, and what helps."""
    status = report.status
    return (
        f"{status.sentence} {status.advice[0].upper()}{status.advice[1:]}."
        if status.advice
        else status.sentence
    )


def servers_lines(report: ServersReport) -> list[str]:
    """What each server holds, and what waits and runs."""
    status = report.status
    servers = zip(status.servers, report.journals, strict=True)
    lines = [_listed([_server(server, *journal) for server, journal in servers])]
    if status.queue is not None:
        lines.append(_listed([_queue(status.queue), *map(_worker, status.workers)]))
    return lines


def _server(server: ServerStatus, journal_folder: str, journal_bytes: int) -> str:
    count = len(server.variables) + server.hidden_variables
    text = f"{server.name} holds {size_text(server.size_bytes)} in {counted(count, 'variable')}"
    if server.state != "live":
        text = f"{server.name} ({server.state}) held {size_text(server.size_bytes)} in {counted(count, 'variable')}"
    parts = [text, counted(server.updates, "update")]
    if server.typical_staleness is not None:
        parts.append(f"staleness {server.newest_staleness:,} (median {server.typical_staleness:,})")
    if journal_folder:
        parts.append(f"journal {size_text(journal_bytes)} in {journal_folder}")
    if server.restarts:
        parts.append(f"started again {counted(server.restarts, 'time')}")
    return ", ".join(parts)


def _queue(queue: FunctionQueue) -> str:
    waits = f"{queue.waiting:,} wait for a worker and {queue.blocked:,} for results, {queue.running:,} run"
    again = f", {queue.run_again:,} ran again" if queue.run_again else ""
    return f"functions: {waits}, {queue.done:,} done{again}"


def _worker(worker: WorkerFunctions) -> str:
    if worker.state == "lost":
        return f"{worker.name} is lost: {worker.detail}"
    runs = f", runs {worker.running} for {significant(worker.running_seconds)} s" if worker.running else ""
    return f"{worker.name} {worker.done:,} done, {significant(worker.functions_per_second)}/s{runs}"


def _listed(parts: list[str]) -> str:
    more = len(parts) - _MOST_LISTED
    return "; ".join([*parts[:_MOST_LISTED], *([f"and {more} more: see .details"] if more > 0 else [])])
