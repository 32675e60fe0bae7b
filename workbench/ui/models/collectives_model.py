"""The model of collectives: the feed's snapshot, bandwidth over size, and the run at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.telemetry.feed.sweeps import sweeps
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.collectives import Collectives
from workbench.ui.models.overview_model import overview_model
from workbench.ui.render.plain_values import plain


def collectives_model(snapshot: Snapshot, *, status: str, silent: Sequence[str] = ()) -> Collectives:
    """What the views of collectives draw.

    Args:
      snapshot: The snapshot of a feed or a recorded run.
      status: The status, in one word.
      silent: Addresses of workers whose newest collectives are missing.
    """
    return Collectives(
        status, tuple(silent), snapshot, sweeps(snapshot.table), overview_model(snapshot, status=status)
    )


def collectives_frame(snapshot: Snapshot, *, status: str, silent: Sequence[str] = ()) -> dict[str, Any]:
    """As `collectives_model`, JSON-able and without the snapshot, whose changes are sent separately."""
    return {
        "status": status,
        "silent": list(silent),
        "sweeps": [plain(sweep) for sweep in sweeps(snapshot.table)],
        "overview": plain(overview_model(snapshot, status=status)),
    }
