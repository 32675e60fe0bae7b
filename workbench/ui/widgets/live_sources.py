"""Live sources of views: input pipelines, data services, parameter servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workbench.ui.widgets.sources import Fixed, Polled, Source

if TYPE_CHECKING:
    from workbench.data.explanation import InputExplanation
    from workbench.data.service.watching import Watched as WatchedService
    from workbench.distribute.servers.watching import Watched as WatchedServers

_INPUT_SECONDS: Final = 0.25
_SERVICE_SECONDS: Final = 0.5


def input_source(explanation: InputExplanation) -> Source:
    """The source of a view of what input pipelines cost: live while replicas read them."""
    if explanation.ended:
        return Fixed("input", explanation.now())
    return Polled("input", explanation.now, interval_seconds=_INPUT_SECONDS, ended=lambda: explanation.ended)


def data_service_source(watched: WatchedService) -> Source:
    """The source of a view of a data service whose dispatcher is in this process."""
    return Polled("data_service", watched.now, interval_seconds=_SERVICE_SECONDS, ended=lambda: watched.ended)


def servers_source(watched: WatchedServers) -> Source:
    """The source of a view of the parameter servers of a strategy."""
    return Polled("servers", watched.now, interval_seconds=_SERVICE_SECONDS, ended=lambda: watched.ended)
