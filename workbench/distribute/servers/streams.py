"""Streams: the identity under which a thread updates variables, and the numbering of its updates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Stream:
    """The updates of a scheduled function, or of a process.

    A function that runs again on another worker has the same stream and call, and numbers its updates in the same way.

    Attributes:
      name: The name of the coordinator, or the process.
      call: Number of the function; 0 for a process.
      first_open: The first function that has not ended.
      counts: Server -> number of updates sent to it.
      versions: Key of a variable -> its version when it was last read.
    """

    name: str
    call: int = 0
    first_open: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    def next_origin(self, server: int) -> dict[str, Any]:
        """The fields that identify the next update to a server."""
        index = self.counts.get(server, -1) + 1
        self.counts[server] = index
        return {"stream": self.name, "call": self.call, "index": index, "open": self.first_open}


class _Thread(threading.local):
    stream: Stream | None = None


_thread = _Thread()


def current_stream() -> Stream | None:
    """The stream of the scheduled function that the calling thread runs, or None."""
    return _thread.stream


@contextmanager
def in_stream(stream: Stream) -> Iterator[None]:
    """Marks the calling thread, within this context, as running a scheduled function."""
    outer = _thread.stream
    _thread.stream = stream
    try:
        yield
    finally:
        _thread.stream = outer
