"""Finds what a dashboard shows from the user's argument: nothing, a job, or a recorded run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from workbench.dashboards.recordings import Recordings
from workbench.errors import DataCorruption, NotFoundError
from workbench.runtime.deploy.registry import Entry, Registry


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of this user on this machine.

    Attributes:
      id: The job to show; "" for the only one, or a choice among several.
    """

    id: str = ""


def find(what: str | os.PathLike[str] | None, registry: Registry) -> Jobs | Recordings:
    """The jobs or recordings that `what` refers to.

    Args:
      what: Nothing for the jobs of this user on this machine; the name or id of a job, or the address of the scheduler
        that it uses; or the file of a recorded run, or a folder of them.
      registry: Where jobs register.

    Raises:
      NotFoundError: if there is no such thing; the message lists what exists.
      DataCorruption: if the file is damaged or not a recorded run.
    """
    if what is None:
        return Jobs()
    if not isinstance(what, str) or what.endswith(".parquet") or (what and Path(what).is_dir()):
        return Recordings(what)
    jobs = [entry for entry in registry.entries() if entry.kind == "driver"]
    found = [entry for entry in jobs if what in (entry.id, entry.name)]
    found = found or [entry for entry in jobs if entry.scheduler and _place(what) == _place(entry.scheduler)]
    if len(found) == 1:
        return Jobs(found[0].id)
    if found:
        raise NotFoundError(f"several of your jobs are called {what!r}; name one by its id: {_listed(found)}")
    there = f"your jobs: {_listed(jobs)}" if jobs else "no job of yours runs on this machine"
    if what and Path(what).exists() and not what.endswith(".py"):
        try:
            return Recordings(what)
        except DataCorruption as error:  # the user may have meant the name of a job
            raise DataCorruption(f"{error}; and no job has that name; {there}") from error
    raise NotFoundError(
        f"{what!r} is not a recorded run, and no job has that name, id or scheduler address; {there}"
    )


def _place(text: str) -> str:
    """Host and port, in any notation."""
    return text.rpartition("://")[2].replace("localhost", "127.0.0.1")


def _listed(entries: list[Entry]) -> str:
    return ", ".join(f"{entry.name!r} ({entry.id}, process {entry.pid})" for entry in entries)
