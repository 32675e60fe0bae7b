"""A view in a Panel app: the built views of `workbench/static`, with data as in a notebook's widgets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Final

import param
from panel.custom import JSComponent

from workbench.dashboards.aside import at_once
from workbench.errors import WorkbenchError
from workbench.ui.widgets.sources import Message, Source

VIEWS_ROUTE: Final = "views"
"""The route under which the server serves `workbench/static`."""
_log = logging.getLogger("workbench")

Work = Callable[[Callable[[], Message | None], Callable[[Message | None], None]], None]
"""Makes a message, on this thread or another one, and passes it to the event loop, in order; see `aside`."""


def drawn_by(call: str) -> str:
    """The code of a component: `call`, of the dashboard's built module, uses `model`, `el` and `built(module)`."""
    return f"""
export async function render({{ model, el }}) {{
  const built = (module) => import(new URL(`{VIEWS_ROUTE}/${{module}}.js`, document.baseURI).href);
  const dashboard = await built("dashboard");
  dashboard.{call};
}}
"""


class Pane(JSComponent):
    """Shows a `Source`, the counterpart of a notebook's `ViewWidget`.

    Messages are sent as JSON texts, which Panel passes on unchanged. One is in transit at a time: a slow page gets
    fewer, each with the newest state. Nothing is sent while the view is not visible.

    Attributes:
      source: What it shows.
      watched: Whether it is visible.
    """

    view = param.String()
    answers = param.Boolean()
    opens = param.Boolean()
    title = param.String()
    line = param.String()
    _esm = drawn_by(
        "pane(model, el, { view: model.view, answers: model.answers, opens: model.opens, title: model.title, "
        "line: model.line }, await built('widget'))"
    )

    def __init__(
        self,
        source: Source,
        *,
        on_watched: Callable[[], None] = lambda: None,
        missing: Callable[[], str] = str,
        answers: bool = True,
        on_open: Callable[[str], None] | None = None,
        title: str = "",
        line: str = "",
        work: Work = at_once,
        **layout: Any,
    ) -> None:
        """Creates the pane.

        Args:
          source: What it shows.
          on_watched: Called when the view becomes visible or invisible.
          missing: Returns why there is no model yet, or "".
          answers: Whether the source answers requests from the view; if not, the view offers none.
          on_open: Opens the page of another view on request; None if there is no such page.
          title: The view's name, shown while it has nothing to draw.
          line: The line of code in the text of `missing`.
          work: Runs requests to the source.
          layout: The options that every Panel component takes.
        """
        super().__init__(
            view=source.view, answers=answers, opens=on_open is not None, title=title, line=line, **layout
        )  # type: ignore[no-untyped-call]
        self.source = source
        self.watched = False
        self._on_watched = on_watched
        self._missing = missing
        self._on_open = on_open
        self._work = work
        self._said = ""
        self._whole_is_due = True
        self._on_its_way = False

    @property
    def waits(self) -> bool:
        """Whether the page has not received the last message yet."""
        return self._on_its_way

    def push(self) -> None:
        """Sends the changes, if there are any and the page is ready."""
        if self.watched and not self._on_its_way:
            self._on_its_way = True
            self._work(lambda: _told(self._next), self._send)

    def _next(self) -> Message | None:
        if said := self._missing():
            if said == self._said:
                return None
            self._said = said
            return {"kind": "note", "text": said}
        if self._whole_is_due:
            self._whole_is_due = False
            return {"kind": "model", "model": self.source.model()}
        return self.source.change()

    def _send(self, message: Message | None) -> None:
        self._on_its_way = message is not None
        if message is not None:
            self._send_msg(json.dumps(message, allow_nan=False, separators=(",", ":")))

    def _handle_msg(self, data: Any) -> None:
        match data:
            case {"kind": "taken"}:
                self._on_its_way = False
            case {"kind": "resync"}:
                self._whole_is_due, self._on_its_way, self._said = True, False, ""
                self._watch(True)
                self.push()
            case {"kind": "visible", "visible": bool(visible)}:
                self._watch(visible)
            case {"kind": "open", "view": str(view)}:
                if self._on_open is not None:
                    self._on_open(view)
            case {"kind": str()}:
                self._answer(data)

    def _watch(self, watched: bool) -> None:
        if watched != self.watched:
            self.watched = watched
            self._on_watched()

    def _answer(self, request: Message) -> None:
        self._work(lambda: _told(lambda: self.source.answer(request)), self._reply)

    def _reply(self, message: Message | None) -> None:
        if message is not None:
            self._send(message)


def _told(make: Callable[[], Message | None]) -> Message | None:
    """The message, or its error."""
    try:
        return make()
    except (WorkbenchError, ValueError, TypeError, KeyError, OSError) as error:
        return {"kind": "problem", "text": str(error)}
    except Exception:  # a bug of workbench; without a message, the page would wait and show nothing more
        _log.exception("a view of a dashboard could not be made")
        return {"kind": "problem", "text": "this could not be shown: the log of the dashboard says why"}
