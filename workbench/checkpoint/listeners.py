"""Listeners for the progress of saves and restores.

What shows them is built on checkpoints and adds itself here, before anything else of checkpoints is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

listeners: Final[list[Callable[[Any], object]]] = []
"""Each is called with a `Transfer` when it begins, after each movement, and when it has ended; from any thread."""
