"""What a test module must not leave behind: threads, child processes, shared memory, descriptors."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.runtime.process import fork_server

SETTLE_SECONDS = 10.0
"""How long threads and processes that are already ending may take to be gone."""

PERMANENT_THREADS = ("Dask-Offload",)
"""distributed's pool for large messages: made once, kept for the life of the process."""

PERMANENT_PROCESSES = ("multiprocessing.resource_tracker", "workbench.runtime.process.fork_preload")
"""Started by this process with the first one that it spawns or forks, and kept likewise."""

WATCHED_DESCRIPTORS = ("socket", "anon_inode:[eventfd]", "/memfd", "/dev/shm")


@dataclass(frozen=True, slots=True)
class Resources:
    """What this process holds at one moment.

    Attributes:
      threads: The living threads.
      processes: Pids of all descendants.
      segments: Names in /dev/shm.
      descriptors: How many open descriptors there are of each watched kind.
    """

    threads: frozenset[threading.Thread]
    processes: frozenset[int]
    segments: frozenset[str]
    descriptors: Counter[str]

    @classmethod
    def now(cls) -> Resources:
        """Looks at the process as it is."""
        return cls(
            threads=frozenset(t for t in threading.enumerate() if not t.name.startswith(PERMANENT_THREADS)),
            processes=frozenset(p.pid for p in psutil.Process().children(recursive=True) if _counts(p)),
            segments=frozenset(path.name for path in Path("/dev/shm").iterdir())
            if _has_shm()
            else frozenset(),
            descriptors=_descriptors(),
        )


def leaked_since(before: Resources, settle_seconds: float = SETTLE_SECONDS) -> list[str]:
    """What is there now and was not `before`, in words; waits for what is just ending."""
    deadline = time.monotonic() + settle_seconds
    while left := _difference(before, Resources.now()):
        if time.monotonic() > deadline:
            return left
        gc.collect()  # the garbage collector closes sockets and events in reference cycles
        time.sleep(0.05)
    return []


def _difference(before: Resources, now: Resources) -> list[str]:
    threads = [f"thread {thread.name!r}" for thread in now.threads - before.threads if thread.is_alive()]
    processes = [f"process {pid}: {_command(pid)}" for pid in now.processes - before.processes]
    new_segments = now.segments - before.segments
    segments = [f"shared memory /dev/shm/{name}" for name in new_segments - _used_elsewhere(new_segments)]
    more = now.descriptors - before.descriptors
    return [*threads, *processes, *segments, *(f"{count} more open {kind}" for kind, count in more.items())]


def _counts(process: psutil.Process) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # Processes that the fork server has forked have its command line, too, but another parent.
        command = " ".join(process.cmdline()) if process.ppid() == os.getpid() else ""
        return not any(name in command for name in PERMANENT_PROCESSES)
    except psutil.NoSuchProcess:
        return False


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:200]
    except psutil.NoSuchProcess:
        return "just ended"


def _has_shm() -> bool:
    return os.path.isdir("/dev/shm")


def _used_elsewhere(segments: frozenset[str]) -> set[str]:
    """Files that a process outside of this one's tree maps: /dev/shm is shared by all programs on the machine."""
    if not segments:
        return set()
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    maps = []
    for pid in set(psutil.pids()) - own:
        try:
            maps.append(Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace"))
        except OSError:  # it has just ended, or belongs to another user
            continue
    text = "\n".join(maps)
    return {name for name in segments if f"/dev/shm/{name}" in text}


def _descriptors() -> Counter[str]:
    kinds: Counter[str] = Counter()
    for entry in os.scandir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        if int(entry.name) == fork_server.server.fileno():
            continue  # kept, as the process at the other end
        try:
            target = os.readlink(entry.path)
        except FileNotFoundError:  # scandir's own descriptor
            continue
        kinds.update(kind for kind in WATCHED_DESCRIPTORS if target.startswith(kind))
    return kinds
