"""BackgroundSave: the end of a save in a thread, while training goes on."""

from __future__ import annotations

import atexit
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Final

from workbench.checkpoint.save import Save
from workbench.runtime import Cluster
from workbench.runtime.deploy.delayed_interrupt import is_interrupt_kept_back

_EXIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_STOP_SECONDS: Final = 1.0
_running: weakref.WeakSet[BackgroundSave] = weakref.WeakSet()


class BackgroundSave:
    """A save whose snapshot is taken, and whose files are written by a thread."""

    def __init__(self, save: Save, then: Callable[[], None]) -> None:
        """Begins.

        Args:
          save: Has begun.
          then: Called when the checkpoint is complete.
        """
        self._save = save
        self._then = then
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wb-checkpoint", daemon=True)
        self._closing = [
            (cluster, functools.partial(_end_with, cluster)) for cluster in save.transfer.clusters
        ]
        for cluster, end in self._closing:
            # First, because other things that end with the cluster may hold variables.
            cluster.closing.insert(0, end)
        self._thread.start()
        _running.add(self)
        # Python runs the last registered function first: this one runs before clusters close, as each would wait
        # again.
        atexit.unregister(_end_at_exit)
        atexit.register(_end_at_exit)

    @property
    def path(self) -> str:
        """Where the checkpoint is going to be."""
        return self._save.path

    @property
    def written_bytes(self) -> int:
        """How many bytes of the arrays are written, as far as is known."""
        return self._save.transfer.done_bytes

    @property
    def total_bytes(self) -> int:
        """How many there are."""
        return self._save.transfer.total_bytes

    @property
    def done(self) -> bool:
        """Whether it has ended, in one way or the other."""
        return not self._thread.is_alive()

    def __repr__(self) -> str:
        return f"BackgroundSave({self._save.transfer.text()})"

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it has ended; returns whether it has.

        Raises:
          WorkbenchError: if the checkpoint could not be saved; once.
        """
        waited = 0.0
        while not self.done and (seconds is None or waited < seconds):
            self._thread.join(0.1 if seconds is None else min(0.1, seconds - waited))
            waited += 0.1
        if not self.done:
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def _run(self) -> None:
        try:
            self._write()
        finally:
            for cluster, end in self._closing:
                cluster.closing.remove(end)

    def _write(self) -> None:
        try:
            self._save.finish(stop=self._stop)
        except BaseException as error:  # raised where the user asks for the result
            self._error = error
            return
        try:
            self._then()
        except BaseException as error:
            self._error = error
            self._save.transfer.alert(
                f"saved {self.path!r}, but could not remove older ones: {type(error).__name__}: {error}"
            )


def _end_with(cluster: Cluster) -> None:
    """Ends all saves of variables that belong to a closing cluster."""
    _end(save for save in list(_running) if any(cluster is own for own, _ in save._closing))


def _end_at_exit() -> None:
    _end(list(_running))


def _end(saves: Iterable[BackgroundSave]) -> None:
    """Waits up to a minute for all of them, less after Ctrl-C; then gives up those that are not complete."""
    waiting = [save for save in saves if not save.done and not save._stop.is_set()]
    try:
        _join(waiting, _EXIT_SECONDS, unless=is_interrupt_kept_back)
    finally:
        for save in waiting:
            save._stop.set()
    _join(waiting, _STOP_SECONDS)


def _join(saves: list[BackgroundSave], seconds: float, unless: Callable[[], bool] = lambda: False) -> None:
    ends = time.monotonic() + seconds
    for save in saves:
        while not save.done and time.monotonic() < ends and not unless():
            save._thread.join(_POLL_SECONDS)
