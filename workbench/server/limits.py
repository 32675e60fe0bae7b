"""The limits of a Jupyter server, set in its configuration; see `extension.WorkbenchApp`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for everybody who uses the server.

    Attributes:
      clusters: How many clusters started from the panel may run at the same time.
      replicas: The most workers of each of them.
      idle_minutes: Minutes without a notebook after which their workers are stopped; 0 for never.
      start_seconds: How long workers may take to start.
      ended_clusters: How many ended clusters are listed.
      pages: How many browser pages may be connected at the same time.
      updates_per_second: The most updates per second for each of them.
      run_bytes: The largest recorded run that panes open.
    """

    clusters: int = 8
    replicas: int = 256
    idle_minutes: float = 0.0
    start_seconds: float = 60.0
    ended_clusters: int = 4
    pages: int = 64
    updates_per_second: float = 10.0
    run_bytes: int = 1024**3


USUAL: Final = Limits()
"""The limits without a configuration."""
