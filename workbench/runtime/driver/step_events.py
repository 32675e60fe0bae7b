"""Events for the log about lost replicas and failed steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from workbench.errors import CollectiveMismatch, DeadlineExceededError, NotFinite
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.driver.replicas import Replicas
from workbench.runtime.driver.step import Step
from workbench.runtime.user_code.notebook_cells import last_site
from workbench.telemetry.events import Event

_FAILURES: Final = {
    f"{kind.__module__}.{kind.__qualname__}": name
    for name, kind in {
        "nan": NotFinite,
        "mismatch": CollectiveMismatch,
        "timeout": DeadlineExceededError,
    }.items()
}


def replicas_lost(worker: WorkerLink, groups: Iterable[Replicas]) -> Iterator[Event]:
    """One alert for each replica on a lost worker, or one for the worker if it has none.

    Strategies that share the worker lose replicas of the same number in one alert, or in one each if their groups
    were rebuilt a different number of times.

    Args:
      worker: The lost worker.
      groups: The groups of the strategies in use.
    """
    now = time.monotonic_ns()
    message = f"worker {worker.name} (pid {worker.pid}) {worker.lost}"
    lost: dict[tuple[int, int], list[Replicas]] = {}
    for group in groups:
        for rank in group.ranks_of(worker.name):
            lost.setdefault((rank, group.generation), []).append(group)
    for (rank, generation), theirs in sorted(lost.items()):
        newest = max(theirs, key=lambda group: group.id)
        yield Event(
            "alert",
            "replica_lost",
            f"{', '.join(dict.fromkeys(group.label for group in theirs))}: {message}",
            now,
            severity="error",
            replica=rank,
            host=worker.host,
            step=newest.number - 1,
            generation=generation,
            group=newest.name if len(theirs) == 1 else "",
        )
    if not lost:
        yield Event("alert", "worker_lost", message, now, severity="error", host=worker.host)


def step_failed(step: Step) -> Iterator[Event]:
    """A line for a failed step, and an alert if replicas were out of step or numbers not finite.

    Errors of the user's code concern only the caller, who gets them; `replicas_lost` reports lost replicas.
    """
    yield Event(
        "lifecycle",
        "step_failed",
        f"{step.group.label}: {_failure(step)}",
        time.monotonic_ns(),
        replica=-1 if step.error is None else getattr(step.error, "replica", -1),
        step=step.number,
        site=step.site,
        generation=step.group.generation,
        group=step.group.name,
    )
    causes = sorted(
        (failure for failure in step.failures if not failure.secondary), key=lambda failure: failure.rank
    )
    told = next((failure for failure in causes if failure.type_name in _FAILURES), None)
    if told is not None:
        group = step.group
        yield Event(
            "alert",
            _FAILURES[told.type_name],
            f"{group.label}: {told.text.partition(chr(10))[0]}",
            time.monotonic_ns(),
            severity="error",
            replica=told.rank,
            host=group.devices[told.rank].host,
            step=step.number,
            site=step.site,
            generation=group.generation,
            group=group.name,
        )


def step_succeeded(step: Step) -> Event:
    """A line for the first step that succeeded after a failure, which is then no longer news."""
    return Event(
        "lifecycle",
        "step_succeeded",
        f"{step.group.label}: step {step.number} succeeded",
        time.monotonic_ns(),
        step=step.number,
        site=step.site,
        generation=step.group.generation,
        group=step.group.name,
    )


def _failure(step: Step) -> str:
    """Such as "step 65 failed on replica 3: ValueError at In[1]:14"."""
    which = f"step {step.number} failed" if step.number >= 0 else f"{step.name!r} failed"
    if step.lost:
        return f"{which}: replica {min(step.lost)} was lost"
    causes = [failure for failure in step.failures if not failure.secondary]
    if not causes:
        return which
    first = min(causes, key=lambda failure: failure.rank)
    site = last_site(first.traceback)
    kind = first.type_name.rpartition(".")[2]
    return f"{which} on replica {first.rank}: {kind}{f' at {site}' if site else ''}"
