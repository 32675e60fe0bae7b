"""The timings of a feed as the source of a widget."""

from __future__ import annotations

from collections.abc import Callable

from workbench.telemetry.delta import delta
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.collectives_model import collectives_frame, collectives_model
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.sources import Message


class CollectivesSource:
    """The feed of a cluster: only what changed is sent."""

    interval_seconds = 0.1

    def __init__(
        self,
        view: str,
        snapshot: Callable[[], Snapshot],
        status: Callable[[], str],
        silent: tuple[str, ...] = (),
    ) -> None:
        """Creates the source.

        Args:
          view: "collectives", one of its parts, or "overview".
          snapshot: Returns the newest snapshot.
          status: Returns the status, in one word.
          silent: Workers that did not answer.
        """
        self.view = view
        self._snapshot = snapshot
        self._status = status
        self._silent = silent
        self._since = 0
        self._told = ""

    def model(self) -> Message:
        """As `Source.model`."""
        snapshot, status = self._snapshot(), self._status()
        model = collectives_model(snapshot, status=status, silent=self._silent)
        self._since, self._told = snapshot.version, status
        return plain(model)

    def change(self) -> Message | None:
        """As `Source.change`."""
        snapshot, status = self._snapshot(), self._status()
        if snapshot.version == self._since and status == self._told:
            return None
        change = {"since": self._since} | delta(snapshot, self._since)
        self._since, self._told = snapshot.version, status
        frame = collectives_frame(snapshot, status=status, silent=self._silent)
        return {"kind": "collectives", "change": change} | frame

    def answer(self, request: Message) -> Message | None:
        """None: it answers no requests."""
        return None

    @property
    def ended(self) -> bool:
        """Whether the cluster was closed, or it is a recorded run."""
        return self._status() in ("stopped", "replay")
