"""Long work on a thread, so that it delays neither the other pages nor the sockets of a dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
Later = Callable[[Callable[[], None]], None]
"""Schedules work on a page's event loop, in order. Any thread may call it."""


def at_once(work: Callable[[], Found], then: Callable[[Found], None]) -> None:
    """Does what takes no time."""
    then(work())


class Aside:
    """Does one thing after the other in a thread, and on the page what follows from each.

    Used by the event loop only.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, work: Callable[[], Found], then: Callable[[Found], None]) -> None:
        """Has `work` done, and then `then` with what it gives."""
        task = asyncio.ensure_future(self._do(work, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Nothing follows any more; what is being done is done to its end."""
        for task in self._tasks:
            task.cancel()

    async def _do(self, work: Callable[[], Found], then: Callable[[Found], None]) -> None:
        async with self._turn:
            found = await asyncio.to_thread(work)
        self._later(lambda: then(found))
