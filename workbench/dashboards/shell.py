"""The bar above the views: what is shown, which pages there are, the theme."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from panel.custom import JSComponent

from workbench.dashboards.pane import drawn_by


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """A cluster that can be chosen; the fields are those of the registry and its summary."""

    id: str
    name: str
    pid: int
    status: str
    text: str


@dataclass(frozen=True, slots=True)
class ShellState:
    """What the bar shows; extension/src/dashboard/shell.tsx draws it.

    Attributes:
      title: What is shown, in a few words.
      status: One word, or "".
      note: What to do to see something, or what went wrong.
      clusters: The clusters to choose from.
      cluster: The id of the chosen one; "" follows the newest.
      choose: Whether to ask first which one to show.
      tabs: Names of the pages.
      tab: The open page.
    """

    title: str
    status: str = ""
    note: str = ""
    clusters: tuple[ClusterChoice, ...] = ()
    cluster: str = ""
    choose: bool = False
    tabs: tuple[str, ...] = ()
    tab: str = ""


class Shell(JSComponent):
    """Draws the newest `ShellState`, and reports the user's choices."""

    _esm = drawn_by("shell(model, el)")

    def __init__(
        self, *, on_cluster: Callable[[str], None], on_tab: Callable[[str], None], **layout: Any
    ) -> None:
        """Creates the bar.

        Args:
          on_cluster: Called with the chosen id, "" for the newest.
          on_tab: Called with the name of the chosen page.
          layout: The options that every Panel component takes.
        """
        super().__init__(**layout)  # type: ignore[no-untyped-call]
        self._on_cluster = on_cluster
        self._on_tab = on_tab
        self._state: ShellState | None = None

    def tell(self, state: ShellState) -> None:
        """Shows the state if it has changed."""
        if state != self._state:
            self._state = state
            self._send_msg(json.dumps(asdict(state)))

    def _handle_msg(self, data: Any) -> None:
        match data:
            case {"kind": "ready"} if self._state is not None:
                self._send_msg(json.dumps(asdict(self._state)))
            case {"kind": "cluster", "id": str(id)}:
                self._on_cluster(id)
            case {"kind": "tab", "name": str(name)}:
                self._on_tab(name)
