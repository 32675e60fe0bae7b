"""Makes the one error that the user gets from the reports of the replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optree import PyTreeSpec

from workbench.errors import (
    CaptureError,
    CollectiveAborted,
    InvalidArgumentError,
    ReplicaLost,
    WorkbenchError,
)
from workbench.runtime.comm.failure_report import FailureReport, rebuild
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.driver.step import Step, Wait
from workbench.runtime.user_code.notebook_cells import last_site, with_cell_names
from workbench.telemetry.formatting import MOST_NAMED, replicas_text


def step_error(step: Step, root: BaseException | None) -> BaseException:
    """The error of a failed step.

    Failures that are only effects of others are omitted. If all other failures have one type, this is the error of
    the first replica; otherwise a group of errors, in the order of the replicas.

    Args:
      step: The step; it has ended.
      root: The error of the step that made this one fail, if there was one before it.
    """
    if step.lost:
        return _lost_error(step)
    own = [failure for failure in step.failures if not failure.secondary]
    if not own:
        return root or _rebuilt(step, min(step.failures, key=lambda f: f.rank))
    return failures_error(step, own)


def failures_error(step: Step, failures: Sequence[FailureReport]) -> BaseException:
    """The error for replicas that failed independently; see `step_error`.

    Args:
      step: The step; it has ended.
      failures: Their reports.
    """
    own = sorted(failures, key=lambda failure: failure.rank)
    if len({f.type_name for f in own}) > 1:
        errors = [_rebuilt(step, failure) for failure in own]
        return ExceptionGroup(f"{len(own)} replicas failed differently in step {step.number}", errors)
    error = _rebuilt(step, own[0])
    others = [f for f in own[1:] if f.text != own[0].text]
    for failure in others[:8]:
        error.add_note(f"also on replica {failure.rank}: {failure.type_name}: {failure.text}")
    if len(others) > 8:
        error.add_note(f"and on {len(others) - 8} more replicas")
    return error


def is_effect(step: Step) -> bool:
    """Whether a step's failure is only the effect of another step's."""
    return not step.lost and step.merge_error is None and all(failure.secondary for failure in step.failures)


def _rebuilt(step: Step, failure: FailureReport) -> WorkbenchError:
    if failure.type_name == "SystemExit":
        return _exited(step, failure)
    group = step.group
    worker, _ = group.place(failure.rank)
    fields: dict[str, Any] = {
        "run": group.gang.run_id,
        "generation": group.generation,
        "worker": worker.address,
        "pid": worker.pid,
        "step": step.number,
    }
    error = rebuild(failure, **fields)
    # The error may concern another replica than the one that reported it.
    if 0 <= error.replica < group.size:
        worker, _ = group.place(error.replica)
        fields |= {"worker": worker.address, "pid": worker.pid}
    for name, value in fields.items():  # a workbench error already has the fields that its replica knew
        if getattr(error, name) in ("", -1, 0):
            setattr(error, name, value)
    if error.replica < 0:
        error.replica = failure.rank
    if step.site:
        error.add_note(f"in {step.name!r}, which {step.site} ran")
    return error


def _lost_error(step: Step) -> WorkbenchError:
    """A ReplicaLost or ReplicaStalled: which replica, why, its last position, who waited, and what happens next."""
    group = step.group
    rank, end = min(step.lost.items())
    worker, _ = group.place(rank)
    others = [r for r in range(group.size) if r not in step.lost]
    wait = _waited(step)
    collective, last = _last_position(step, rank, worker, wait)
    released = "; no replica survived"
    if others:
        released = f"; {replicas_text(others, MOST_NAMED)} {'was' if len(others) == 1 else 'were'} released"
    if others and wait is not None:
        released += f" from {wait.collective}" + (f" ({wait.site})" if wait.site else "")
    at = f"at step {step.number}" if step.number >= 0 else f"in {step.name!r}"
    detail = f": {end.detail}" if end.detail else ""
    more = f" (and {replicas_text(sorted(step.lost)[1:], MOST_NAMED)})" if len(step.lost) > 1 else ""
    return end.error_type(
        f"replica {rank}{more} (worker {worker.address}, pid {worker.pid}) {end.what} {at}{last}{detail}"
        f"{released}. "
        f"{group.committed_text}. Run {group.gang.run_id} generation {group.generation} "
        f"→ the next step recovers as {group.generation + 1}. Details: wb.diagnose()",
        run=group.gang.run_id,
        generation=group.generation,
        replica=rank,
        worker=worker.address,
        pid=worker.pid,
        step=step.number,
        collective=collective or (wait.collective if wait else ""),
        cause=str(end),
    )


def _last_position(step: Step, rank: int, worker: WorkerLink, wait: Wait | None) -> tuple[str, str]:
    """The collective that a lost replica was in ("" for none), and its place in words ("" if unknown).

    Args:
      step: The step in which it was lost.
      rank: The replica.
      worker: Its worker.
      wait: The collective in which others waited for it; None if none did.
    """
    group = step.group
    flight = group.gang.flights.of(group.id, rank, worker.pid)
    if flight is not None and flight.step == step.number:
        in_it = wait is not None and wait.number == flight.seq + 1
        name = wait.collective if wait is not None and in_it else f"its collective #{flight.seq + 1}"
        if flight.inside:
            return name, f" while in {name}"
        if wait is not None:
            return "", f" before it came to {wait.collective}"
        return "", f" after {name}" if flight.seq >= 0 else " before its first collective"
    rows = {row.rank: row for row in worker.statuses if row.group == group.id}
    last = rows.get(rank)
    if last is None or not last.busy or not last.op or last.step != step.number:
        return "", ""  # the last heartbeat belongs to an earlier step
    name = f"{last.op} #{last.seq + 1}" if last.seq >= 0 else last.op
    return name, f" while in {name}" + (f" ({with_cell_names(last.site)})" if last.site else "")


def where_others_wait(step: Step) -> Wait | None:
    """The collective in which a survivor waits for a lost replica, else None."""
    for name in step.group.worker_names:
        for row in step.group.gang.workers[name].statuses:
            here = row.group == step.group.id and row.step == step.number and row.rank not in step.lost
            if here and row.busy and row.phase == "waiting":
                return Wait(row.op, row.seq + 1, with_cell_names(row.site) if row.site else "")
    return None


def _waited(step: Step) -> Wait | None:
    """The result of `where_others_wait` at the time of the loss, or a survivor's later report."""
    if step.waited is not None:
        return step.waited
    for failure in sorted(step.failures, key=lambda f: f.rank):
        error = rebuild(failure)
        if isinstance(error, (CollectiveAborted, ReplicaLost)) and error.collective:
            return Wait.read(error.collective, last_site(failure.traceback))
    return None


def _exited(step: Step, failure: FailureReport) -> WorkbenchError:
    """The ReplicaLost for a program that called `sys.exit`. The process continues; only the step is lost."""
    group = step.group
    worker, _ = group.place(failure.rank)
    return ReplicaLost(
        f"replica {failure.rank} exited with code {failure.text or 0} at step {step.number}: its program called "
        f"sys.exit\n\n{failure.traceback}".rstrip(),
        run=group.gang.run_id,
        generation=group.generation,
        replica=failure.rank,
        worker=worker.address,
        pid=worker.pid,
        step=step.number,
        cause=f"exited with code {failure.text or 0}",
    )


def structure_error(step: Step) -> WorkbenchError | None:
    """The error if a step's replicas returned different structures, or a different one than in earlier runs.

    Also if a structure has classes that this process lacks.
    """
    structures, promised = step.structures, step.promised
    as_promised = promised is None or promised is structures[0]
    if (
        as_promised
        and type(structures[0]) is PyTreeSpec
        and structures.count(structures[0]) == len(structures)
    ):
        return None  # the case for nearly all steps
    known = [(rank, structure) for rank, structure in enumerate(step.structures) if structure is not None]
    if not known:
        return None
    first_rank, first = known[0]
    if type(first) is CaptureError:
        return first
    for rank, structure in known[1:]:
        if structure is not first and structure != first:
            return InvalidArgumentError(
                f"{step.name!r} returned different structures: {_structure(first)} on replica {first_rank}, "
                f"{_structure(structure)} on replica {rank}; return the same nested structure on every replica",
                replica=rank,
                step=step.number,
            )
    if step.promised is not None and first is not step.promised and first != step.promised:
        return InvalidArgumentError(
            f"{step.name!r} returned {_structure(first)}, and {_structure(step.promised)} in its first run: a "
            f"@wb.function returns the same nested structure in every step, because others continue with it "
            f"before it is known; return that, or leave the decorator out",
            step=step.number,
        )
    return None


def _structure(spec: Any) -> str:
    """A nested structure in the notation of a result, with * for each value."""
    text = str(spec)
    return text[len("PyTreeSpec(") :].rpartition(")")[0] if text.startswith("PyTreeSpec(") else text
