"""Informs listeners about what a user inspects: values and sharding, which are only found on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from workbench.data import explanation
from workbench.data.service import watching
from workbench.distribute.servers import watching as watching_servers
from workbench.ui.widgets.live_sources import data_service_source, input_source, servers_source
from workbench.ui.widgets.sources import Source

listeners: Final[list[Callable[[str, Callable[[], Source]], object]]] = []
"""Each is called with a view, and a function that creates another source for it. They must return at once."""


def tell(view: str, make: Callable[[], Source]) -> None:
    """Informs the listeners about a finding.

    Args:
      view: Name of the view that draws it.
      make: Creates a source for it; called by each listener that wants one.
    """
    for listener in tuple(listeners):
        listener(view, make)


# Datasets explain themselves without knowing any view.
explanation.listeners.append(lambda explained: tell("input", lambda: input_source(explained)))
# So do data services and parameter servers.
watching.listeners.append(lambda watched: tell("data_service", lambda: data_service_source(watched)))
watching_servers.listeners.append(lambda watched: tell("servers", lambda: servers_source(watched)))
