"""The model of collectives: the feed's snapshot, and bandwidth over size."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.telemetry.feed.sweeps import sweeps
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.messages import Collectives


def collectives_model(snapshot: Snapshot, *, status: str, silent: Sequence[str] = ()) -> Collectives:
    """What the views of collectives draw.

    Args:
      snapshot: Of a feed or a recorded run.
      status: One word.
      silent: Addresses of workers whose newest collectives are missing.
    """
    return Collectives(status, tuple(silent), snapshot, sweeps(snapshot.table))
