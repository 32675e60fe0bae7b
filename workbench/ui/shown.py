"""Tells who wants to know what a person has looked at: values and sharding, which nobody can look at unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from workbench.ui.plain import plain

listeners: Final[list[Callable[[str, dict[str, Any]], object]]] = []
"""Each is called with a view and its model; it must return at once."""


def tell(view: str, model: Callable[[], Any]) -> None:
    """Tells of what was found.

    Args:
      view: Name of the view that draws it.
      model: Makes its model; not called where nobody listens.
    """
    if listeners:
        found = plain(model())
        for listener in tuple(listeners):
            listener(view, found)
