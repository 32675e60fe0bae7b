"""What went wrong: lost replicas, stuck collectives, failed steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workbench.telemetry.formatting import replicas_text
from workbench.telemetry.snapshot import EventItem, GroupView, LastSeen, Stuck
from workbench.telemetry.verdicts.verdict import Verdict
from workbench.telemetry.verdicts.words import duration, evidence, sentence, without_label


def recovered_ns(group: str, events: Iterable[EventItem]) -> int:
    """When the newest step succeeded after a failed one, by the driver's clock; -1 if none did.

    Events of replicas are compared with it by time: an alert about a lost replica concerns all strategies on its
    worker, and each of them counts its own steps.

    Args:
      group: The group that ran the step.
      events: The log.
    """
    times = (event.t_ns for event in events if event.name == "step_succeeded" and event.group == group)
    return max(times, default=-1)


def gone(group: GroupView, events: Sequence[EventItem]) -> Iterator[Verdict]:
    """Lost replicas of this generation, until a later generation has run something.

    Args:
      group: The group that had the replicas.
      events: The group's entries in the log.
    """
    since = recovered_ns(group.group, events)  # nothing else is recorded for a step without collectives
    lost = {
        event.replica: event
        for event in events
        if event.name == "replica_lost" and event.replica >= 0 and event.t_ns > since
    }
    waited = group.stuck if group.stuck is not None and group.stuck.state == "lost" else None
    if waited is not None and waited.since_ns <= since:
        waited = None
    if lost:
        first = min(lost.values(), key=lambda event: event.t_ns)
        replicas, told, step = sorted(lost), without_label(first.message), first.step
    elif waited is not None:  # newer events have displaced older ones
        replicas, told, step = list(waited.missing), "", waited.step
    else:
        return
    who = f"{replicas_text(replicas)} {'is' if len(replicas) == 1 else 'are'} gone"
    at = f" at step {step}" if step >= 0 else ""
    hosts = " and ".join(dict.fromkeys(event.host for event in lost.values() if event.host))
    stopped = f"{who}: {hosts} stopped answering{at}" if hosts else f"{who}{at}"
    seen = [] if waited is None else [last for last in waited.last if last.replica in replicas]
    yield Verdict(
        "error",
        "gone",
        sentence(stopped, f"{who}{at}"),
        evidence(told, *(_last_text(last, step) for last in seen[:2])),
        "log",
        replicas[0] if len(replicas) == 1 else None,
        step if step >= 0 else None,
    )


def stuck(group: GroupView, last_step: int) -> Iterator[Verdict]:
    """A collective that some replicas wait in.

    Args:
      group: The group of the replicas.
      last_step: The newest step that ran, as far as known.
    """
    found = group.stuck
    if found is None or found.state not in ("waiting", "failed"):
        return
    who = replicas_text(found.missing)
    if found.state == "waiting":
        how = f"stuck for {duration(found.seconds)}: {found.op} waits for {who}"
    elif found.step < last_step:
        return  # later steps have run since
    else:
        how = f"step {found.step} failed: {found.op} waited for {who} too long"
    entered = f" at {found.site}" if found.site else ""
    yield Verdict(
        "error",
        "stuck",
        sentence(how),
        evidence(
            *(_last_text(last, found.step) for last in found.last[:2]),
            f"{replicas_text(found.waiting)} entered {_collective(found)}{entered}",
        ),
        "lanes",
        found.missing[0] if len(found.missing) == 1 else None,
        found.step,
    )


def failed(events: Sequence[EventItem], last_step: int) -> Iterator[Verdict]:
    """The newest step, if it failed: because replicas called different collectives, or for another reason.

    Args:
      events: The group's entries in the log.
      last_step: See `stuck`.
    """
    current = [event for event in events if event.step >= max(0, last_step)]
    for event in reversed(current):
        replica = event.replica if event.replica >= 0 else None
        if event.name == "mismatch":
            wording = f"replicas call different collectives at step {event.step}"
            told = evidence(without_label(event.message))
            yield Verdict("error", "mismatch", sentence(wording), told, "lanes", replica, event.step)
        elif event.name == "step_failed":
            told = evidence("the notebook got the error", f"called at {event.site}" if event.site else "")
            wording = sentence(without_label(event.message))
            yield Verdict("error", "failed", wording, told, "log", replica, event.step)


def _collective(stuck: Stuck) -> str:
    return f"{stuck.op} #{stuck.seq + 1} of step {stuck.step}"


def _last_text(last: LastSeen, step: int) -> str:
    """What a replica did last, and where it is now if known."""
    parts = [f"is at {last.now}"] if last.now else []
    if last.op:
        where = f" at {last.site}" if last.site else ""
        when = "" if last.step == step else f"step {last.step} "
        parts.append(f"last did {when}{last.op} #{last.seq + 1}{where}")
    elif not parts:
        parts.append("has recorded no collective")
    return f"replica {last.replica} {' and '.join(parts)}"
