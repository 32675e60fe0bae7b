"""How many connections a dashboard keeps, and which are closed first when there are too many."""

from __future__ import annotations

from typing import Final

from tornado.iostream import IOStream

MAX_CONNECTIONS: Final = 256
"""A page has one connection, and six more for a moment while it loads. Descriptors belong to the whole process, and
`wb.dashboard` must not use up those of a notebook.
"""


class Connections:
    """The open ones. Strangers, who have not shown the cookie, make room for others, the oldest of them first.

    So who knows nothing can neither use up the descriptors of the process nor keep out who has the address. Used by the
    event loop only.
    """

    def __init__(self, most: int = MAX_CONNECTIONS) -> None:
        self._most = most
        self._trusted: dict[IOStream, bool] = {}  # the oldest first

    def add(self, stream: IOStream) -> None:
        """A request is about to come; closes the oldest stranger if there are too many, else the newcomer."""
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
        """It has shown the cookie."""
        if stream in self._trusted:
            self._trusted[stream] = True

    def close(self) -> None:
        """Ends all of them, WebSockets too, which a server that stops leaves open."""
        for stream in self._trusted:
            stream.close()
        self._trusted.clear()
