"""How many connections a dashboard keeps, and which it closes first if there are too many."""

from __future__ import annotations

from typing import Final

from tornado.iostream import IOStream

MAX_CONNECTIONS: Final = 256
"""A page has one connection, and six more for a moment while it loads. Descriptors belong to the whole process, and
`wb.dashboard` must not use up those of a notebook.
"""


class Connections:
    """The open connections. If there are too many, connections without the cookie are closed, the oldest first.

    So strangers can neither use up the descriptors of the process nor keep out users with the address. Used by the
    event loop only.
    """

    def __init__(self, most: int = MAX_CONNECTIONS) -> None:
        self._most = most
        self._trusted: dict[IOStream, bool] = {}  # the oldest first

    def add(self, stream: IOStream) -> None:
        """Adds a connection before its first request.

        If there are too many, closes the oldest one without the cookie, or else the new one.
        """
        if stream in self._trusted:
            return
        self._trusted = {one: trusted for one, trusted in self._trusted.items() if not one.closed()}
        if len(self._trusted) >= self._most:
            oldest = next((one for one, trusted in self._trusted.items() if not trusted), stream)
            oldest.close()
            self._trusted.pop(oldest, None)
        if not stream.closed():
            self._trusted[stream] = False

    def trust(self, stream: IOStream) -> None:
        """Notes that a connection has shown the cookie."""
        if stream in self._trusted:
            self._trusted[stream] = True

    def close(self) -> None:
        """Ends all connections, including WebSockets, which a stopping server leaves open."""
        for stream in self._trusted:
            stream.close()
        self._trusted.clear()
