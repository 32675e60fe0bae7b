"""Which machine the figures are of."""

from __future__ import annotations

import datetime
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.environments import Environment


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, on a day.

    Attributes:
      date: A date such as 2026-01-31.
      cpu: The processor's name.
      cores: Logical ones that this process may use.
      memory_gib: The memory of the whole machine.
      kernel: Name and release.
      load: Its load average of the last minute, before anything was measured.
      versions: Environment -> distribution -> version.
    """

    date: str
    cpu: str
    cores: int
    memory_gib: int
    kernel: str
    load: float
    versions: dict[str, dict[str, str]]

    @classmethod
    def this(cls, found: dict[str, Environment]) -> Machine:
        """The one that runs this."""
        return cls(
            date=datetime.date.today().isoformat(),
            cpu=_cpu(),
            cores=len(os.sched_getaffinity(0)),
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
            kernel=f"{platform.system()} {platform.release()}",
            load=os.getloadavg()[0],
            versions={
                name: environment.versions for name, environment in found.items() if environment.python
            },
        )

    @property
    def slug(self) -> str:
        """A short name for files, such as "amd-epyc-2-cores"."""
        name = re.sub(r"[^a-z0-9]+", "-", self.cpu.lower()).strip("-")
        return f"{name}-{self.cores}-cores"

    def text(self) -> str:
        """Two lines for the head of a report."""
        versions = "; ".join(
            f"{name}: " + ", ".join(f"{library} {version}" for library, version in found.items())
            for name, found in self.versions.items()
        )
        return (
            f"{self.cpu}, {self.cores} cores, {self.memory_gib} GiB, {self.kernel}; load before: {self.load:.2f}.\n\n"
            f"Versions. {versions}."
        )


def _cpu() -> str:
    match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return match.group(1) if match else platform.machine()
