"""Listeners for the progress of saves and restores.

The code that shows them depends on checkpoints. It adds itself here before the rest of this package is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

listeners: Final[list[Callable[[Any], object]]] = []
"""Each is called with a `Transfer` when it begins, at each progress, and when it has ended; from any thread."""
