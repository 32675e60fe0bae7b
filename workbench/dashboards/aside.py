"""Does long work on a thread, so that it delays neither other pages nor the sockets of a dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
Later = Callable[[Callable[[], None]], None]
"""Schedules work on a page's event loop, in order. Any thread may call it."""


def at_once(work: Callable[[], Found], then: Callable[[Found], None]) -> None:
    """Does short work immediately."""
    then(work())


class Aside:
    """Does one task after the other in a thread, and handles each result on the page.

    Used by the event loop only.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, work: Callable[[], Found], then: Callable[[Found], None]) -> None:
        """Runs `work`, and then `then` with its result."""
        task = asyncio.ensure_future(self._do(work, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Handles no further results; a running task still runs to its end."""
        for task in self._tasks:
            task.cancel()

    async def _do(self, work: Callable[[], Found], then: Callable[[Found], None]) -> None:
        async with self._turn:
            found = await asyncio.to_thread(work)
        self._later(lambda: then(found))
