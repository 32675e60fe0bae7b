"""The server's copy of a job's feed: applies the job's changes, and computes those that each client needs."""

from __future__ import annotations

from typing import Any, Final

from workbench.telemetry.delta import merge
from workbench.telemetry.snapshot import Snapshot

_KEYED: Final = ("table", "internal", "events")


class Mirror:
    """A snapshot as JSON-able dicts.

    Attributes:
      state: What `Snapshot.as_dict` returns.
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = Snapshot().as_dict()
        self._made: tuple[int, dict[str, Any]] | None = None

    @property
    def version(self) -> int:
        """The version of the state."""
        version: int = self.state["version"]
        return version

    def take(self, change: dict[str, Any]) -> None:
        """Applies a change from the job.

        Raises:
          KeyError: if something is missing in it, or it starts after the state.
        """
        self.state = merge(self.state, change)
        self._made = None

    def change(self, since: int) -> dict[str, Any]:
        """What a client with version `since` (0: nothing) needs; see `telemetry.delta`.

        Clients that keep up all need the same change, so the newest is cached.
        """
        if self._made is None or self._made[0] != since:
            self._made = since, self._change(since)
        return self._made[1]

    def _change(self, since: int) -> dict[str, Any]:
        state = self.state
        groups = [group | {"items": _changed(group["items"], since)} for group in state["groups"]]
        head = {"since": since, "version": state["version"], "counters": state["counters"], "groups": groups}
        return head | {part: _changed(state[part], since) for part in _KEYED if part in state}


def _changed(items: Any, since: int) -> dict[str, Any]:
    return {
        "keys": [item["key"] for item in items],
        "changed": [item for item in items if item["version"] > since],
    }
