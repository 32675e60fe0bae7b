"""The list of recorded runs, which appear in pages automatically, like clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from workbench.ui.runs.recorded_runs import RecordedRuns

_LOOK_SECONDS: Final = 2.0
_SHARE: Final = 20
"""A scan of t seconds, as on a slow file system, is followed by a pause of this many times t."""


class WatchedRuns:
    """Used by the server's event loop only. Scans the folders, in a thread, while there are listeners.

    Attributes:
      runs: The runs to list.
      model: The list, see `models.runs.Runs`; None before the first scan.
      version: How often it has changed.
    """

    def __init__(self, runs: RecordedRuns) -> None:
        self.runs = runs
        self.model: dict[str, Any] | None = None
        self.version = 0
        self._listeners: set[Callable[[], None]] = set()
        self._looking: asyncio.Task[None] | None = None

    def listen(self, changed: Callable[[], None]) -> None:
        """Calls `changed` when runs appear, change or vanish."""
        self._listeners.add(changed)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())

    def unlisten(self, changed: Callable[[], None]) -> None:
        """Undoes `listen`."""
        self._listeners.discard(changed)

    async def close(self) -> None:
        """Stops scanning."""
        self._listeners.clear()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while self._listeners:
            began = monotonic()
            found = await asyncio.to_thread(self.runs.all)
            if found != self.model:
                self.model = found
                self.version += 1
                for changed in tuple(self._listeners):
                    changed()
            await asyncio.sleep(max(_LOOK_SECONDS, _SHARE * (monotonic() - began)))
