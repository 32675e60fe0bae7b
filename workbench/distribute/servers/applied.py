"""Applied: which updates a server has made, so that one that comes again is known."""

from __future__ import annotations

from typing import Any

_MANY = 4096


class Applied:
    """The last update of each call, by stream.

    The updates of a call come in order, so the number of the last one says which there were. A call that has ended
    sends nothing any more; one that is said to be open although it was not, of a worker that was given up and goes
    on all the same, counts as applied.
    """

    def __init__(self) -> None:
        self._last: dict[str, dict[int, int]] = {}
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._last.values()))

    def knows(self, origin: dict[str, Any]) -> bool:
        """Whether the update with this "stream", "call" and "index" was made."""
        stream, call = origin["stream"], origin["call"]
        if call < self._open.get(stream, 0):
            return True
        return bool(origin["index"] <= self._last.get(stream, {}).get(call, -1))

    def add(self, origin: dict[str, Any]) -> None:
        """Notes an update, and that calls before its "open" have ended."""
        stream = origin["stream"]
        calls = self._last.setdefault(stream, {})
        calls[origin["call"]] = origin["index"]
        first = self._open[stream] = max(origin["open"], self._open.get(stream, 0))
        if len(calls) > _MANY:
            self._last[stream] = {call: last for call, last in calls.items() if call >= first}

    def contents(self) -> list[Any]:
        """All of it, as JSON can hold it."""
        return [[stream, self._open[stream], list(calls.items())] for stream, calls in self._last.items()]

    @classmethod
    def of(cls, contents: list[Any]) -> Applied:
        """What `contents` gave."""
        made = cls()
        for stream, first, calls in contents:
            made._last[stream] = dict(calls)
            made._open[stream] = first
        return made
