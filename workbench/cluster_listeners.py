"""Listeners that learn about every cluster, from `connect` or from a strategy that connects automatically.

The runtime opens clusters and must not depend on the code that shows them, and that code must not be loaded before
there is a cluster. So the package itself (`workbench/__init__.py`) adds the listener that loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

listeners: Final[list[Callable[[Any], object]]] = []
"""Each is called with the cluster, as soon as it is usable."""
