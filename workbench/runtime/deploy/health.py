"""Finds out from outside why a worker is silent or gone: by its process, its heartbeats, and Dask."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from workbench.runtime.deploy.embedded import WorkerExit
from workbench.runtime.deploy.succession import Succession
from workbench.runtime.deploy.worker_link import EndKind, WorkerEnd, WorkerLink
from workbench.runtime.process.forking_context import TELL_SECONDS
from workbench.runtime.process.gpus import STUCK_EXIT_CODE
from workbench.runtime.process.process_state import process_state
from workbench.runtime.process.stack_dump import user_calls

_STUCK: Final = {
    "GPU": "its GPU had failed, or a replica was stuck in NCCL",
    "TPU": "a replica was stuck in a traced program",
}
"""Kind of device -> why a worker with such devices ends itself. On CPUs, only user code sets an exit code."""

_CLOSED_SECONDS: Final = 1.0
"""How long a process may live after its connection has ended."""


def kernel_memory_kills() -> int:
    """How many processes the kernel has killed for lack of memory, on this machine or in this container."""
    count = 0
    for file in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        with contextlib.suppress(OSError):
            for line in Path(file).read_text().splitlines():
                if line.startswith("oom_kill "):
                    count += int(line.split()[1])
    return count


class Health(Protocol):
    """What a gang's cluster knows about its workers, and can do with them."""

    def examine(self, worker: WorkerLink) -> WorkerEnd | None:
        """Why a worker that is still connected must be given up, else None."""

    def end_of(self, worker: WorkerLink) -> WorkerEnd:
        """How a worker ended, after its connection ended."""

    def kill(self, worker: WorkerLink) -> None:
        """Ends a worker's process, which must not continue."""

    def give_up(self, worker: WorkerLink) -> None:
        """Ends a worker's process if it may be stuck; one that is only unreachable may come back."""

    def replacement(self, worker: WorkerLink) -> WorkerLink:
        """Connects to the successor of a lost worker; waits while there is a sign that one will come.

        Raises:
          ReplicaLost: if there is none.
        """

    def is_back(self, worker: WorkerLink, settled_seconds: float) -> bool:
        """Whether a lost worker has a successor that has answered for at least `settled_seconds`."""


def _lost(what: str, detail: str = "") -> WorkerEnd:
    return WorkerEnd(EndKind.LOST, what, detail)


def _stalled(silent_seconds: float, why: str) -> WorkerEnd:
    return WorkerEnd(EndKind.STALLED, "stalled", f"no heartbeat for {silent_seconds:.0f} s, {why}")


class LocalHealth:
    """Watches the processes of workers on this machine, and only the heartbeats of others.

    Args of the constructor:
      worker_exit: (pid, timeout in seconds) -> how it ended, or None if unknown.
      succession: Finds the successors of lost workers.
      stall_seconds: Silence after which a worker is given up.
    """

    def __init__(
        self,
        *,
        worker_exit: Callable[[int, float], WorkerExit | None],
        succession: Succession,
        stall_seconds: float,
    ) -> None:
        self._worker_exit = worker_exit
        self._succession = succession
        self.stall_seconds = stall_seconds
        self._kernel_kills = kernel_memory_kills()

    def examine(self, worker: WorkerLink) -> WorkerEnd | None:
        """Why a worker that is still connected must be given up, else None."""
        silent = time.monotonic() - worker.last_beat
        if silent < self.stall_seconds:
            return None
        if not worker.local:
            return _stalled(silent, "nor can its process be seen from here")
        match process_state(worker.pid):
            case "T" | "t":
                why = "its process is stopped (state T)"
            case "" | "Z":
                return self.end_of(worker)
            case "D":
                why = "its process waits for a device or disk (state D)"
            case _:
                why = "its process is inside C code that holds Python's lock"
                if calls := user_calls(worker.pid):
                    why += f", called by {' ← '.join(f'{call.function} ({call.place})' for call in calls)}"
        return _stalled(silent, f"{why}; it was ended")

    def end_of(self, worker: WorkerLink) -> WorkerEnd:
        """How a worker ended, after its connection ended."""
        ended = self._worker_exit(worker.pid, _CLOSED_SECONDS) if worker.local else None
        alive = worker.local and process_state(worker.pid) not in ("", "Z")
        if ended is None and worker.local and not alive:
            # The process has ended, so its exit code will be reported.
            ended = self._worker_exit(worker.pid, 2 * TELL_SECONDS)
        if ended is None:
            return _lost("closed its connection" if alive else "was lost (its connection ended)")
        code = ended.code
        if ended.over_memory:
            return _lost("was ended", "out of memory, over the limit of its worker")
        if code == STUCK_EXIT_CODE and worker.device_kind in _STUCK:
            return _lost("ended itself", _STUCK[worker.device_kind])
        if code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
            hint = {"SIGSEGV": " (a crash in C code)", "SIGABRT": " (C code gave up)"}.get(name, "")
            if name == "SIGKILL" and self._kernel_kills != (kills := kernel_memory_kills()):
                self._kernel_kills = kills
                hint = " (out of memory: the kernel ended it)"
            return _lost(f"was killed by {name}{hint}")
        return _lost(
            f"exited with code {code}" + (" (shut down, restarted or scaled down)" if code == 0 else "")
        )

    def kill(self, worker: WorkerLink) -> None:
        """Ends a worker's process, even a stopped one; Dask ends those of other machines and users."""
        if not _killed(worker):
            self._succession.dismiss(worker)

    def give_up(self, worker: WorkerLink) -> None:
        """As `kill`, but spares a worker of another machine or user that nothing would restart."""
        if not _killed(worker):
            self._succession.give_up(worker)

    def replacement(self, worker: WorkerLink) -> WorkerLink:
        """Connects to the successor of a lost worker."""
        return self._succession.replacement(worker)

    def is_back(self, worker: WorkerLink, settled_seconds: float) -> bool:
        """Whether a lost worker has a successor that has answered for at least `settled_seconds`."""
        return self._succession.is_back(worker, settled_seconds)


def _killed(worker: WorkerLink) -> bool:
    """Ends a process of this machine if it still runs; False for another user's process."""
    if worker.pid == os.getpid():
        return True
    if worker.local:
        try:
            os.kill(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:
            return False  # it belongs to another user
        return True
    return False
