"""Steps that follow each other quickly travel together: a message that wakes a process costs more than a small step.

A notebook that sends steps in a loop, without waiting for their results, wakes each worker for the first one. While
that is on its way, the next ones are held back, the more of them the more are on their way, and go in one message. What
is held goes at once when the notebook waits for anything; else, when it does other things, after about a millisecond.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

from workbench import forks
from workbench.errors import ClusterClosed
from workbench.runtime.comm.links import Wakeup

MOST_HELD = 7  # with the one that follows them, a quarter of the steps that may be on their way
# Steps that come more slowly than this are sent one by one: others do more in the meantime than a message costs.
QUICK_NS = 500_000
_TICK_SECONDS = 0.001
_IDLE_NS = 50_000_000


class _Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool:
        """As that of `threading.Lock`."""

    def release(self) -> None:
        """As that of `threading.Lock`."""


class Coalescing:
    """Decides which steps may travel with those that follow, and sees to it that the last ones leave.

    All but `close` is for the holder of `lock`.

    Args:
      flush: Sends what is held.
      lock: Of those who send.

    Attributes:
      held: Steps that have not left yet.
    """

    def __init__(self, flush: Callable[[], None], lock: _Lock) -> None:
        self.held = 0
        self._flush = flush
        self._lock = lock
        self._last_ns = 0
        self._ticking = False
        self._closed = False
        self._wakeup: Wakeup | None = None
        self._thread: threading.Thread | None = None
        forks.tell(self)

    def holds(self, on_their_way: int) -> bool:
        """Whether to hold the next step back, while so many were submitted before it and have not ended."""
        now, last = time.monotonic_ns(), self._last_ns
        self._last_ns = now
        held = self.held
        # Half of what the replicas have to do already: they do not run out of it meanwhile.
        if now - last > QUICK_NS or held == MOST_HELD or 2 * (held + 1) >= on_their_way - held:
            return False
        self.held = held + 1
        if not self._ticking:
            self._tick()
        return True

    def _tick(self) -> None:
        self._ticking = True
        if self._thread is None:
            self._wakeup = Wakeup()
            self._thread = threading.Thread(target=self._run, args=(self._wakeup,), name="workbench-flush")
            self._thread.daemon = True
            self._thread.start()
        else:
            assert self._wakeup is not None
            self._wakeup.set()

    def _run(self, wakeup: Wakeup) -> None:
        poll = select.poll()
        poll.register(wakeup.fileno(), select.POLLIN)
        while not self._closed:
            time.sleep(_TICK_SECONDS)
            quiet_ns = time.monotonic_ns() - self._last_ns
            if self.held and quiet_ns > QUICK_NS and self._lock.acquire(blocking=False):
                try:  # if the lock is taken, whoever has it sends, or waits and has sent
                    with contextlib.suppress(ClusterClosed):
                        self._flush()
                finally:
                    self._lock.release()
            elif not self.held and quiet_ns > _IDLE_NS:
                wakeup.clear()
                self._ticking = False
                if (
                    not self.held and not self._closed
                ):  # else one came in between, and saw that this thread ticks
                    poll.poll()
                self._ticking = True

    def disown(self) -> None:
        """See `forks.tell`: the thread is the parent's."""
        self._closed, self._thread = True, None

    def close(self) -> None:
        """Ends the thread; nothing that is held leaves any more. Idempotent."""
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is not None and self._wakeup is not None:
            self._wakeup.set()
            if thread is not threading.current_thread():
                thread.join(5.0)
            self._wakeup.close()
