"""Finds out from outside where the replicas of a silent worker are, because the worker cannot report it."""

from __future__ import annotations

import os
import time
from typing import Final

from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.process.process_state import process_state
from workbench.runtime.process.stack_dump import user_calls

SILENT_SECONDS: Final = 2.0
"""Four heartbeats. A worker that misses them executes no Python."""
_WHY: Final = {
    "T": "its process is stopped (state T)",
    "t": "a debugger has stopped its process (state t)",
    "D": "its process waits for a device or disk (state D)",
}
_HELD: Final = "inside C code that holds Python's lock, or without a core to run on"


def is_silent(worker: WorkerLink) -> bool:
    """Whether a worker that still exists has sent no heartbeat for `SILENT_SECONDS`."""
    return not worker.lost and time.monotonic() - worker.last_beat > SILENT_SECONDS


def whereabouts(worker: WorkerLink) -> str:
    """The line of user code where a silent worker's replica is, such as "train.py:84 in step".

    The process writes its stacks without executing Python; this takes up to half a second.

    Returns:
      The place, or "an unknown line" and why it is unknown.
    """
    if not worker.local:
        return "an unknown line (its process is not on this machine)"
    # This process cannot query itself, and a stopped process would write its stacks only when it continues.
    if worker.pid == os.getpid() or process_state(worker.pid) in _WHY:
        return "an unknown line"
    calls = user_calls(worker.pid)
    return f"{calls[0].place} in {calls[0].function}" if calls else "an unknown line"


def silence_text(worker: WorkerLink, place: str) -> str:
    """The text for banners about a silent worker's replicas: `place` from `whereabouts`, for how long, and why."""
    why = _WHY.get(process_state(worker.pid), _HELD) if worker.local else ""
    silent = f"silent for {time.monotonic() - worker.last_beat:.0f} s"
    return f"{place}, {silent}: {why}" if why else f"{place}, {silent}"
