"""What one Jupyter server allows; its configuration sets it, see `extension.WorkbenchApp`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for everybody who uses the server.

    Attributes:
      clusters: How many clusters that were started from the panel run at the same time.
      replicas: How many workers each of them has at most.
      idle_minutes: After how many minutes without a notebook their workers are stopped; 0 for never.
      start_seconds: How long workers may take to start.
      ended_clusters: How many clusters that have ended are listed.
      pages: How many pages of browsers are connected at the same time.
      updates_per_second: How often each of them gets news at most.
      run_bytes: How large a recorded run is that panes open.
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
