"""Runs a function soon after it was requested, but not too often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

REST_SECONDS: Final = 0.1


class Pace:
    """Calls at most ten times a second, however often it is requested, and never without a request.

    Used by the event loop only.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._timer: asyncio.TimerHandle | None = None
        self._earliest = 0.0
        self._stopped = False

    def ask(self) -> None:
        """Requests a call."""
        if self._timer is None and not self._stopped:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._earliest), self._run)

    def stop(self) -> None:
        """Makes no call from now on."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._timer = None
        self._earliest = asyncio.get_running_loop().time() + REST_SECONDS
        self._call()
