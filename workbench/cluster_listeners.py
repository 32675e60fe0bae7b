"""Listeners that learn of every cluster: one from `connect`, or from a strategy that connects by itself.

The runtime opens clusters and must not know what shows them, and whatever shows them must not be loaded before there
is one. So the package itself (`workbench/__init__.py`) adds the listener that loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

listeners: Final[list[Callable[[Any], object]]] = []
"""Each is called with the cluster, as soon as it can be used."""
