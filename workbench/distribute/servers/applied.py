"""Applied: the updates that a server has applied, so that it recognises repeated ones."""

from __future__ import annotations

from typing import Any

_MANY = 4096


class Applied:
    """The last update of each call, by stream.

    The updates of a call arrive in order, so the number of the last one suffices. A call that has ended sends no more
    updates. If one still arrives, from a worker that was given up but continues, it counts as applied.
    """

    def __init__(self) -> None:
        self._last: dict[str, dict[int, int]] = {}
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._last.values()))

    def knows(self, origin: dict[str, Any]) -> bool:
        """Whether the update with this "stream", "call" and "index" was applied."""
        stream, call = origin["stream"], origin["call"]
        if call < self._open.get(stream, 0):
            return True
        return bool(origin["index"] <= self._last.get(stream, {}).get(call, -1))

    def add(self, origin: dict[str, Any]) -> None:
        """Records an update, and that calls before its "open" have ended."""
        stream = origin["stream"]
        calls = self._last.setdefault(stream, {})
        calls[origin["call"]] = origin["index"]
        first = self._open[stream] = max(origin["open"], self._open.get(stream, 0))
        if len(calls) > _MANY:
            self._last[stream] = {call: last for call, last in calls.items() if call >= first}

    def contents(self) -> list[Any]:
        """Everything, in a form for JSON."""
        return [[stream, self._open[stream], list(calls.items())] for stream, calls in self._last.items()]

    @classmethod
    def of(cls, contents: list[Any]) -> Applied:
        """The inverse of `contents`."""
        made = cls()
        for stream, first, calls in contents:
            made._last[stream] = dict(calls)
            made._open[stream] = first
        return made
