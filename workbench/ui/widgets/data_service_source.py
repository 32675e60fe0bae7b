"""A data service whose dispatcher is in this process, as the live source of a view."""

from __future__ import annotations

from typing import Final

from workbench.data.service.watching import Watched
from workbench.ui.widgets.sources import Polled, Source

_INTERVAL_SECONDS: Final = 0.5


def data_service_source(watched: Watched) -> Source:
    """The source of a view of a data service."""
    return Polled(
        "data_service", watched.now, interval_seconds=_INTERVAL_SECONDS, ended=lambda: watched.ended
    )
