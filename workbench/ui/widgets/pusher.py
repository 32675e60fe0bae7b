"""The thread that keeps widgets up to date, even while a cell runs."""

from __future__ import annotations

import logging
import sys
import threading
import time
from functools import cache
from typing import Final

from workbench import forks
from workbench.ui.widgets.widget import ViewWidget

_IDLE_SECONDS: Final = 1.0
_SHARE: Final = 35
"""A push of t seconds is followed by a pause of this many times t, so a view takes at most 3 % of a core."""
_MAX_WIDGETS: Final = 32
_CALM_SECONDS: Final = 0.3
"""How long after the last cell every view is updated, even a hidden one, because the notebook may be saved now."""

log = logging.getLogger(__name__)


class Pusher:
    """Pushes the changes of visible widgets; if there are too many, of those that were shown last.

    There is one thread while there is something to push. Changes between two pushes are combined in the second one:
    nothing queues up for a slow front end.
    """

    def __init__(self) -> None:
        # Guards the next three; never held while a source is queried.
        self._lock = forks.lock(threading.Lock())
        self._due: dict[ViewWidget, float] = {}
        self._thread: threading.Thread | None = None
        self._calm_at = float("inf")
        self._wake = threading.Event()

    def add(self, widget: ViewWidget) -> None:
        """Keeps a widget up to date from now on, until its source has ended."""
        if widget.source.ended:
            return
        with self._lock:
            self._due[widget] = 0.0
            while len(self._due) > _MAX_WIDGETS:
                del self._due[next(iter(self._due))]
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="workbench-views", daemon=True)
                self._thread.start()
        self._wake.set()

    def begin_cell(self) -> None:
        """Notes that the kernel is busy and must not be disturbed."""
        with self._lock:
            self._calm_at = float("inf")

    def end_cell(self) -> None:
        """Notes that the kernel may be idle from now on."""
        with self._lock:
            self._calm_at = time.monotonic() + _CALM_SECONDS
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.clear()
            now = time.monotonic()
            with self._lock:
                if not self._due:
                    self._thread = None
                    return
                calm = self._calm_at <= now
                if calm:
                    self._calm_at = float("inf")
                due = [widget for widget, at in self._due.items() if calm or at <= now]
            for widget in due:
                self._push(widget, hidden=calm)
            with self._lock:
                next_at = min([self._calm_at, *self._due.values()]) if self._due else 0.0
            self._wake.wait(max(0.01, min(_IDLE_SECONDS, next_at - time.monotonic())))

    def _push(self, widget: ViewWidget, *, hidden: bool) -> None:
        began = time.monotonic()
        ended = widget.comm is None or widget.source.ended
        if widget.watched or hidden or ended:
            try:
                widget.push()
            except Exception:  # one view's error must not stop the others
                log.exception("the view %s cannot be kept up to date any more", widget.view)
                ended = True
        now = time.monotonic()
        with self._lock:
            if ended:
                self._due.pop(widget, None)
            elif widget in self._due:
                self._due[widget] = began + max(widget.source.interval_seconds, _SHARE * (now - began))


pusher: Final = Pusher()
"""The pusher of this kernel."""


@cache
def watch_cells() -> None:
    """Starts notifying the pusher of this kernel when cells begin and end."""
    events = sys.modules["IPython"].get_ipython().events
    events.register("pre_run_cell", lambda info: pusher.begin_cell())
    events.register("post_run_cell", lambda result: pusher.end_cell())
