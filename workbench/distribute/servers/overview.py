"""The state of parameter servers and of the functions on their workers, as data and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from workbench.runtime.placement_text import WIDTH, counted
from workbench.telemetry.formatting import printable, significant, size_text


@dataclass(frozen=True, slots=True)
class HeldVariable:
    """A variable, or a shard of one, on a parameter server.

    Attributes:
      name: Its name, such as "table/part_0".
      dtype: Name of its dtype.
      shape: The shape of this shard.
      size_bytes: The size of its values.
      slot_bytes: The size of its optimizer state.
      updates: Number of its updates.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    slot_bytes: int
    updates: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A parameter server.

    Attributes:
      name: Such as "ps:0".
      host: Its host.
      address: Its address.
      state: "live"; "stalled" if it does not answer; "lost" if its process has ended and was not yet replaced; or
        "stopped".
      detail: How its process ended, or "".
      restarts: How often its process was replaced.
      variables: Its variables, the largest first, at most 32.
      hidden_variables: Number of its other variables.
      size_bytes: Memory of all variables and their optimizer state.
      updates: Number of applied updates.
      updates_per_second: Recent rate of updates.
      repeated: Number of repeated updates, which were not applied again.
      left_out: Number of updates that were skipped as too stale.
      newest_staleness: Number of updates of a variable between the time when a scheduled function read it and the
        arrival of that function's own update, for the latest one; None before the first.
      typical_staleness: The median of the last 64.
    """

    name: str
    host: str
    address: str
    state: str
    detail: str
    restarts: int
    variables: tuple[HeldVariable, ...]
    hidden_variables: int
    size_bytes: int
    updates: int
    updates_per_second: float
    repeated: int
    left_out: int
    newest_staleness: int | None
    typical_staleness: int | None


@dataclass(frozen=True, slots=True)
class WorkerFunctions:
    """A worker, and the functions that it runs.

    Attributes:
      name: Such as "worker:0".
      host: Its host.
      state: "live", "lost" or "stopped"; see `ServerStatus`.
      detail: How its process ended, or "".
      restarts: How often its process was replaced.
      done: Number of functions that it has run.
      functions_per_second: Recent rate of functions.
      running: The current function, or "".
      running_together: Number of short functions that it received together; 0 if it runs none.
      running_seconds: How long it has been running them.
    """

    name: str
    host: str
    state: str
    detail: str
    restarts: int
    done: int
    functions_per_second: float
    running: str
    running_together: int
    running_seconds: float


_Process = TypeVar("_Process", ServerStatus, WorkerFunctions)


@dataclass(frozen=True, slots=True)
class FunctionQueue:
    """Numbers of scheduled functions.

    Attributes:
      waiting: Functions that wait for a worker.
      blocked: Functions that wait for results of others.
      running: Functions on workers.
      done: Functions that have returned.
      failed: Functions that have raised.
      cancelled: Functions that will not run.
      run_again: How often a function ran again, because its worker or a server was lost.
      capacity: How many can wait before `schedule` waits.
      error: The error of a function, until `schedule`, `join` or `done` raises it; or "".
    """

    waiting: int
    blocked: int
    running: int
    done: int
    failed: int
    cancelled: int
    run_again: int
    capacity: int
    error: str


@dataclass(frozen=True, slots=True)
class ServersStatus:
    """Parameter servers and their workers at one moment. `str` and the notebook show it as tables.

    Attributes:
      servers: The servers, by number.
      workers: The workers, by number; empty before there is a `ClusterCoordinator`.
      queue: Its functions; None before there is one.
      status: "live" or "stopped".
      sentence: What they do, or what prevents that.
      advice: The remedy, or what happens automatically; else "".
    """

    servers: tuple[ServerStatus, ...]
    workers: tuple[WorkerFunctions, ...]
    queue: FunctionQueue | None
    status: str
    sentence: str
    advice: str

    @classmethod
    def of(
        cls,
        servers: tuple[ServerStatus, ...],
        workers: tuple[WorkerFunctions, ...],
        queue: FunctionQueue | None,
        status: str,
    ) -> ServersStatus:
        """Creates a status with its sentence; the arguments are the attributes."""
        return cls(servers, workers, queue, status, *_verdict(servers, workers, queue, status))

    def __str__(self) -> str:
        lines = [_title(self)]
        for rows in self.tables():
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines.append("")
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                for row in rows
            ]
        return "\n".join(lines)

    def tables(self) -> list[list[list[str]]]:
        """Servers, variables, workers and queue as tables with headings; only those that have rows."""
        return _tables(self)


def _verdict(
    servers: tuple[ServerStatus, ...],
    workers: tuple[WorkerFunctions, ...],
    queue: FunctionQueue | None,
    status: str,
) -> tuple[str, str]:
    """The verdict on the servers and workers, and the remedy; the worst problem has priority."""
    if status == "stopped":
        ran = "" if queue is None else f" after {_functions(queue.done)}"
        return f"These parameter servers have ended{ran}.", ""
    if queue is not None and queue.error:
        return f"A function has failed: {queue.error}.", "the next schedule, join or done raises it"
    for server in servers:
        if server.state == "lost":
            return (
                f"{server.name} is lost: {server.detail}.",
                "the next function that needs it starts it again, with every answered update",
            )
        if server.state == "stalled":
            return f"{server.name} does not answer.", "functions that need it wait"
    lost = [worker for worker in workers if worker.state == "lost"]
    if lost:
        others = f"{len(lost)} of {counted(len(workers), 'worker')} are" if lost[1:] else f"{lost[0].name} is"
        return f"{others} lost: {lost[0].detail}.", "its functions run again on another worker"
    if queue is None:
        return f"{_held(servers)}; no ClusterCoordinator schedules functions yet.", ""
    under_way = queue.waiting + queue.blocked + queue.running
    if under_way:
        rate = significant(sum(worker.functions_per_second for worker in workers))
        return f"{_functions(under_way)} under way, {rate} functions/s.", ""
    if queue.done:
        return f"{_functions(queue.done)} done, none under way.", ""
    return f"{_held(servers)}; nothing was scheduled yet.", ""


def _functions(count: int) -> str:
    return f"{count:,} function{'' if count == 1 else 's'}"


def _held(servers: tuple[ServerStatus, ...]) -> str:
    size = size_text(sum(server.size_bytes for server in servers))
    return f"{size} of variables on {counted(len(servers), 'server')}"


def _title(found: ServersStatus) -> str:
    advice = f" {found.advice[0].upper()}{found.advice[1:]}." if found.advice else ""
    return textwrap.fill(f"{found.sentence}{advice}", WIDTH)


def _tables(found: ServersStatus) -> list[list[list[str]]]:
    tables = [_listed(_SERVERS, found.servers, _server_row)]
    held = [
        [server.name, *_variable_cells(variable)] for server in found.servers for variable in server.variables
    ]
    if held:
        hidden = sum(server.hidden_variables for server in found.servers) + len(held[_MOST_VARIABLES:])
        tables.append([_VARIABLES, *held[:_MOST_VARIABLES], *_more(hidden, _VARIABLES)])
    if found.workers:
        tables.append(_listed(_WORKERS, found.workers, _worker_row))
    if found.queue is not None:
        queue = found.queue
        counts = (queue.waiting, queue.blocked, queue.running, queue.done, queue.failed, queue.cancelled)
        tables.append([_QUEUE, [f"{count:,}" for count in (*counts, queue.run_again, queue.capacity)]])
    return tables


def _listed(
    headings: list[str], many: tuple[_Process, ...], row: Callable[[_Process], list[str]]
) -> list[list[str]]:
    """A row for each; of more than fit, for those first that are not live."""
    ordered = sorted(many, key=lambda one: one.state == "live") if len(many) > _MOST_ROWS else list(many)
    rows: list[list[str]] = [row(one) for one in ordered[:_MOST_ROWS]]
    return [headings, *rows, *_more(len(many) - len(rows), headings)]


def _more(hidden: int, headings: list[str]) -> list[list[str]]:
    return [[f"{hidden} more", *[""] * (len(headings) - 1)]] if hidden else []


_MOST_ROWS = 32
_MOST_VARIABLES = 128
_SERVERS = ["server", "host", "state", "restarts", "holds", "updates", "updates/s", "staleness", "left out"]
_VARIABLES = ["on", "variable", "dtype", "shape", "size", "slots", "updates"]
_WORKERS = ["worker", "host", "state", "restarts", "functions", "functions/s", "runs"]
_QUEUE = ["waiting", "for results", "running", "done", "failed", "cancelled", "run again", "capacity"]


def _server_row(server: ServerStatus) -> list[str]:
    newest, typical = server.newest_staleness, server.typical_staleness
    return [
        server.name,
        server.host,
        server.state,
        f"{server.restarts:,}",
        size_text(server.size_bytes),
        f"{server.updates:,}",
        significant(server.updates_per_second),
        "–" if newest is None else f"{newest:,} (median {typical:,})",
        f"{server.left_out:,}",
    ]


def _variable_cells(variable: HeldVariable) -> list[str]:
    return [
        printable(variable.name),
        variable.dtype,
        f"({', '.join(map(str, variable.shape))})",
        size_text(variable.size_bytes),
        size_text(variable.slot_bytes),
        f"{variable.updates:,}",
    ]


def _worker_row(worker: WorkerFunctions) -> list[str]:
    return [
        worker.name,
        worker.host,
        worker.state,
        f"{worker.restarts:,}",
        f"{worker.done:,}",
        significant(worker.functions_per_second),
        _running_text(worker),
    ]


def _running_text(worker: WorkerFunctions) -> str:
    """Describes what a worker runs: "step for 3.2 s", "step and 7 more", "nothing"."""
    if not worker.running_together:
        return "nothing"
    more = f" and {worker.running_together - 1} more" if worker.running_together > 1 else ""
    return f"{printable(worker.running)}{more} for {significant(worker.running_seconds)} s"
