"""BackgroundSave: the end of a save in a thread, while training goes on."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import Final

from workbench.checkpoint.save import Save

_EXIT_SECONDS: Final = 60.0
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
        _running.add(self)
        self._clusters = save.transfer.clusters
        for cluster in self._clusters:
            cluster.closing.insert(0, self._finish)  # what else ends with a cluster may hold variables
        self._thread.start()

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

    def stop(self, seconds: float) -> None:
        """Waits some time for the end, then gives up: the checkpoint is not complete, and those before it are."""
        self._thread.join(seconds)
        self._stop.set()
        self._thread.join(1.0)

    def _finish(self) -> None:
        self.stop(_EXIT_SECONDS)

    def _run(self) -> None:
        try:
            self._write()
        finally:
            for cluster in self._clusters:
                with contextlib.suppress(ValueError):  # a recording that ends writes the list anew
                    cluster.closing.remove(self._finish)

    def _write(self) -> None:
        try:
            self._save.finish(stop=self._stop)
        except BaseException as error:  # raised where somebody asks
            self._error = error
            return
        try:
            self._then()
        except BaseException as error:
            self._error = error
            self._save.transfer.alert(
                f"saved {self.path!r}, but could not remove older ones: {type(error).__name__}: {error}"
            )


@atexit.register
def _finish_all() -> None:
    """Where there is no cluster that closes before."""
    for save in list(_running):
        save.stop(_EXIT_SECONDS)
