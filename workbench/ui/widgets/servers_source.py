"""The parameter servers of a strategy, as the live source of a view."""

from __future__ import annotations

from typing import Final

from workbench.distribute.servers.watching import Watched
from workbench.ui.widgets.sources import Polled, Source

_INTERVAL_SECONDS: Final = 0.5


def servers_source(watched: Watched) -> Source:
    """The source of a view of parameter servers."""
    return Polled("servers", watched.now, interval_seconds=_INTERVAL_SECONDS, ended=lambda: watched.ended)
