"""BackgroundSave: a thread that completes a save while training continues."""

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
    """A save after its snapshot; a thread writes the files."""

    def __init__(self, save: Save, then: Callable[[], None]) -> None:
        """Starts the thread.

        Args:
          save: A save that has begun.
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
            # First in the list, because others that end with the cluster may hold variables.
            cluster.closing.insert(0, end)
        self._thread.start()
        _running.add(self)
        # Python runs the last registered function first. This one must run before clusters close, because each of
        # them would wait again.
        atexit.unregister(_end_at_exit)
        atexit.register(_end_at_exit)

    @property
    def path(self) -> str:
        """The future path of the checkpoint."""
        return self._save.path

    @property
    def written_bytes(self) -> int:
        """How many bytes of the arrays are known to be written."""
        return self._save.transfer.done_bytes

    @property
    def total_bytes(self) -> int:
        """How many bytes the arrays have."""
        return self._save.transfer.total_bytes

    @property
    def done(self) -> bool:
        """Whether the save has ended, successfully or not."""
        return not self._thread.is_alive()

    def __repr__(self) -> str:
        return f"BackgroundSave({self._save.transfer.text()})"

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the save has ended; returns whether it has.

        Raises:
          WorkbenchError: if the checkpoint could not be saved; raised only once.
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
        except BaseException as error:  # raised when the user requests the result
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
    """Waits for all of them, up to a minute or less after Ctrl-C; then gives up the incomplete ones."""
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
