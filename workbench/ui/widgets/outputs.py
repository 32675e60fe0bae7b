"""Tracks which views the outputs of cells show, to free those that a front end has cleared.

ipywidgets keeps every widget until it is closed, because it cannot know whether it is still shown. For our widgets, the
kernel knows that they are gone when their cell runs again, when the output is cleared, or when `update_display`
replaces them. A front end says which cell it runs; if it does not, or if the user clears an output by hand, they stay
until the kernel ends.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import ipywidgets

if TYPE_CHECKING:
    from workbench.ui.widgets.widget import ViewWidget

WIDGET: Final = "application/vnd.jupyter.widget-view+json"


class Outputs:
    """The displayed views, by place: a cell, or an `ipywidgets.Output`. Closes those that are gone."""

    def __init__(self, shell: Any) -> None:
        """Starts watching what the IPython shell of a kernel runs and displays."""
        self._kernel = shell.kernel
        self._shown: dict[str, list[ViewWidget]] = {}
        self._displays: dict[str, str] = {}  # display id -> the widget that it shows
        # Closed only after their replacement was sent, so that something is always visible.
        self._leaving: list[ViewWidget] = []
        shell.events.register("pre_run_cell", self._on_cell)
        shell.events.register("post_run_cell", self._on_end)
        shell.display_pub.register_hook(self._on_message)

    def add(self, widget: ViewWidget) -> None:
        """Adds a view that is about to be shown."""
        if place := self._place():
            self._shown.setdefault(place, []).append(widget)

    def _place(self) -> str:
        """The place where the running code's output goes; "" if it is unknown."""
        parent = self._kernel.get_parent() or {}
        message = parent.get("header", {}).get("msg_id", "")
        # Only the front end knows where messages go, except that an Output says which ones it takes.
        for widget in tuple(getattr(ipywidgets.widgets.widget, "_instances", {}).values()):
            if isinstance(widget, ipywidgets.Output) and message and widget.msg_id == message:
                return f"output {widget.model_id}"
        return str(parent.get("metadata", {}).get("cellId") or "")

    def _on_cell(self, info: Any) -> None:
        self._leave(self._place())  # the front end has cleared its content
        self._close()

    def _on_end(self, result: Any) -> None:
        self._close()

    def _on_message(self, message: dict[str, Any]) -> dict[str, Any]:
        self._close()
        content = message["content"]
        match message["header"]["msg_type"]:
            case "clear_output":
                self._leave(self._place())
            case "display_data" | "update_display_data":
                display = content["transient"].get("display_id")
                view = content["data"].get(WIDGET, {}).get("model_id", "")
                if display is not None:
                    self._replace(self._displays.pop(display, ""))
                    if view:
                        self._displays[display] = view
        return message

    def _leave(self, place: str) -> None:
        self._leaving.extend(self._shown.pop(place, ()))

    def _replace(self, id: str) -> None:
        for widgets in tuple(self._shown.values()):  # a thread may display, too
            for widget in widgets:
                if widget.model_id == id:
                    widgets.remove(widget)
                    self._leaving.append(widget)
                    return

    def _close(self) -> None:
        # All in one operation, because another thread that displays may close some of them.
        leaving, self._leaving = self._leaving, []
        for widget in leaving:
            widget.close()


@cache
def outputs() -> Outputs:
    """The `Outputs` of this kernel."""
    return Outputs(sys.modules["IPython"].get_ipython())
