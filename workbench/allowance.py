"""The cores and memory that this process may use: the machine's, or less if a container or a batch job limits it.

A container sees all cores and all memory of its machine; the limits are those of its control groups. Linux has two
versions of these, with different files and different words for "no limit".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

_FILES = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def cores() -> int:
    """How many cores this process may use at once, rounded up."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cores_quota(_FILES, _membership())
    return seen if quota is None else min(seen, max(1, math.ceil(quota)))


def memory_bytes() -> int:
    """How much memory all processes of this process's container may use together."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(installed, memory_limit_bytes(_FILES, _membership()) or installed)


def cores_quota(files: Path, membership: str) -> float | None:
    """The lowest limit of cores in the control groups of the process, such as 0.5; None without a limit.

    Args:
      files: Where the control groups are mounted, /sys/fs/cgroup.
      membership: The content of /proc/self/cgroup, which lists the process's groups.
    """
    return min(_limits(files, membership, "cpu", _quota), default=None)


def memory_limit_bytes(files: Path, membership: str) -> int | None:
    """The lowest memory limit in the control groups of the process; None without a limit.

    Args:
      files: Where the control groups are mounted, /sys/fs/cgroup.
      membership: The content of /proc/self/cgroup, which lists the process's groups.
    """
    limit = min(_limits(files, membership, "memory", _memory), default=None)
    return None if limit is None else int(limit)


def _limits(files: Path, membership: str, controller: str, read: Callable[[Path], float]) -> Iterator[float]:
    for folder in _groups(files, membership, controller):
        try:
            limit = read(folder)
        except (OSError, ValueError):  # no such group or file, or the word "max"
            continue
        if limit > 0:  # cgroup version 1 writes -1 for "no limit"
            yield limit


def _groups(files: Path, membership: str, controller: str) -> Iterator[Path]:
    """The cgroup of the process and all its ancestors; each may set its own limit.

    Inside a container, version 1 lists the path that the group has on the machine. That path does not exist in the
    container, which mounts its own group at the top.
    """
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            top = files / controllers if (files / controllers).is_dir() else files / controller
        elif not controllers:  # cgroup version 2
            top = files
        else:
            continue
        group = top / path.strip("/")
        yield from (group, *(folder for folder in group.parents if folder.is_relative_to(top)))


def _quota(folder: Path) -> float:
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
    else:
        quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
        period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
    return int(quota) / int(period)


def _memory(folder: Path) -> float:
    name = "memory.max" if (folder / "memory.max").exists() else "memory.limit_in_bytes"
    return int((folder / name).read_text(encoding="ascii"))


def _membership() -> str:
    try:
        return _MEMBERSHIP.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on Linux
        return ""
