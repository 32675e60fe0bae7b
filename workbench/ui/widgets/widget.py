"""The widget that shows a view, and the one of a kernel that holds the views' code."""

from __future__ import annotations

import contextlib
import threading
from functools import cache
from typing import Any

import anywidget
import ipywidgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.ui.widgets.built import STATIC
from workbench.ui.widgets.sources import Message, Source


class ViewCode(ipywidgets.Widget):  # type: ignore[misc]  # ipywidgets has no annotations
    """Holds the views as one ES module, so that not every widget includes them.

    The module that exports views to files is sent when a front end requests it.

    Attributes:
      text: The views.
      field_terms: Whether views use the field's terms; None for the page's setting.
    """

    text = traitlets.Unicode().tag(sync=True)
    field_terms = traitlets.Bool(None, allow_none=True).tag(sync=True)

    def __init__(self) -> None:
        super().__init__(text=_module("widget"))
        _answer_while_a_cell_runs(self)
        self.on_msg(self._on_message)

    def _on_message(self, widget: Any, content: Message, buffers: Any) -> None:
        if content.get("kind") == "exports":
            self.send({"kind": "exports", "text": _module("exports")})


@cache
def view_code() -> ViewCode:
    """The `ViewCode` of this kernel."""
    return ViewCode()


def _module(name: str) -> str:
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


@cache
def _digest() -> str:
    return (STATIC / "sources.sha256").read_text(encoding="ascii").strip()


class ViewWidget(anywidget.AnyWidget):
    """Shows a `Source` in a notebook output.

    Attributes:
      view: Name of the view.
      model: What it draws, as of when the front end requested it; later changes are sent as messages.
      code: The widget with the code of the views.
      digest: Identifies this code.
      watched: False if no view of it is visible.
    """

    _esm = STATIC / "loader.js"

    view = traitlets.Unicode().tag(sync=True)
    model = traitlets.Dict().tag(sync=True)
    code = traitlets.Instance(ViewCode).tag(sync=True, **ipywidgets.widget_serialization)
    digest = traitlets.Unicode().tag(sync=True)

    def __init__(self, source: Source) -> None:
        self.watched = True
        self.source = source
        self._opened = False
        self._behind = False
        # Guards the source, which the pushing thread, the kernel's main thread and its subshells query.
        self._asking = threading.Lock()
        with self._asking:
            model = source.model()
        super().__init__(view=source.view, model=model, code=view_code(), digest=_digest())
        self._opened = True
        _answer_while_a_cell_runs(self)
        self.on_msg(self._on_message)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """The state for a front end that connects later, with the model at that time."""
        state = super().get_state(key, drop_defaults)
        if "model" in state and self._opened:
            with self._asking:
                state["model"] = self.source.model()
                self._behind = True  # earlier clients have not received that
        return state

    def push(self) -> None:
        """Sends the changes, if there are any."""
        with self._asking:
            message = self._whole() if self._behind else self.source.change()
        if message is not None:
            self.send(message)

    def _on_message(self, widget: Any, content: Message, buffers: Any) -> None:
        match content.get("kind"):
            case "visible":
                self.watched = bool(content.get("visible"))
            case "attached" if self.source.interval_seconds == float("inf"):
                pass
            case "attached" | "resync":  # a new view has missed changes that were sent before it existed
                with self._asking:
                    message = self._whole()
                self.send(message)
            case _:
                self._answer(content)

    def _whole(self) -> Message:
        self._behind = False
        return {"kind": "model", "model": self.source.model()}

    def _answer(self, request: Message) -> None:
        try:
            with self._asking:
                message = self.source.answer(request)
        except (WorkbenchError, ValueError, TypeError, KeyError, OSError) as error:
            message = {"kind": "problem", "text": str(error)}
        if message is not None:
            self.send(message)


def _answer_while_a_cell_runs(widget: ipywidgets.Widget) -> None:
    """Makes the kernel handle messages of the front end while a cell runs, rather than after it.

    The front end sends them to a subshell, but ipykernel 7.4 passes them to the shell that last sent on the comm.
    """
    comm = widget.comm
    if hasattr(comm, "_reply_subshell_for"):
        with contextlib.suppress(AttributeError):
            comm._reply_subshell_for = lambda data, default: default
