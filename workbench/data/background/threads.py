"""Threads that work for an iterator, and end with it."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from workbench import forks
from workbench.backends import users_line
from workbench.data.tables import Failed
from workbench.debugging import numerics
from workbench.errors import FailedPreconditionError

_T = TypeVar("_T")
CHECK_SECONDS: Final = 1.0
"""How often a waiting thread checks its state; wake-ups do not wait for this."""
_GRACE_SECONDS: Final = 0.5
"""How long closing waits for threads. A thread in a user's function continues until that returns."""
_here = threading.local()
_living: weakref.WeakSet[Threads] = weakref.WeakSet()


def inherited(target: Callable[..., _T]) -> Callable[..., _T]:
    """`target` for another thread, which inherits the user's current line, for warnings, and the checks for NaN."""
    return users_line.shared(numerics.shared(target))


class Signal:
    """A lock, and a condition that is notified of changes under it.

    The lock is reentrant, because the garbage collector may close iterators at any moment. Take the lock itself, as in
    `with signal.lock`: a condition releases it in Python code, and an interrupt there would leave it locked.

    Attributes:
      lock: The lock.
      changed: The condition.
    """

    __slots__ = ("changed", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = self.condition()

    def condition(self) -> threading.Condition:
        """Another condition on the same lock."""
        return forks.lock(threading.Condition(self.lock))


class Threads:
    """Threads of one stage of one pass.

    Threads that one of them starts end with it: closing a prefetch must not wait for those below it.

    Attributes:
      lock: Guards what the threads share with their reader.
      changed: Notified when that changes.
      closed: Whether the reader is gone.
      forked: Whether this is a copy in a forked process, which lacks the threads.
    """

    def __init__(self, signal: Signal | None = None) -> None:
        """Starts no thread yet. A stage that waits for several of these objects passes the same `signal` to each."""
        signal = signal or Signal()
        self.lock, self.changed = signal.lock, signal.changed
        self.closed = False
        self.forked = False
        self._threads: list[threading.Thread] = []
        self._inner: weakref.WeakSet[Threads] = weakref.WeakSet()
        self._ends: list[Callable[[], None]] = []
        owner: Threads | None = getattr(_here, "owner", None)
        if owner is not None:
            owner._adopt(self)
        _living.add(self)
        forks.tell(self)

    def start(self, target: Callable[..., None], *args: Any, name: str) -> None:
        """Starts a thread; `target` should return soon after the reader is gone.

        Args:
          target: What the thread calls.
          name: Name of the thread.
          *args: Arguments of `target`.
        """
        # Daemon threads, because one that hangs in a user's function must not keep the process alive.
        thread = threading.Thread(target=self._run, args=(inherited(target), args), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def at_end(self, end: Callable[[], None]) -> None:
        """Calls `end` when the reader is gone, to wake threads that wait for something else."""
        self._ends.append(end)

    def close(self) -> None:
        """Ends the threads and waits for them briefly."""
        close_all([self])

    def disown(self) -> None:
        """See `forks.tell`: the child has no such threads, and must not wait for them."""
        self.forked = self.closed = True

    def failed_by_fork(self) -> Failed:
        """What a forked child gets instead of an element."""
        return Failed(
            FailedPreconditionError(
                "the threads of this iterator are those of the process that this one was forked off; make a new "
                "iterator in each process"
            )
        )

    def _adopt(self, inner: Threads) -> None:
        with self.lock:
            self._inner.add(inner)
            closed = self.closed
        if closed:  # the reader closed it just before this point
            inner._stop()

    def _run(self, target: Callable[..., None], args: tuple[Any, ...]) -> None:
        _here.owner = self
        target(*args)

    def _stop(self) -> list[threading.Thread]:
        """Asks all threads to end, and returns them."""
        with self.lock:
            first = not self.closed
            self.closed = True
            inner = list(self._inner)
            self.changed.notify_all()
        below = [thread for each in inner for thread in each._stop()]
        if first:
            for end in self._ends:
                end()
        return [*self._threads, *below]


def close_all(groups: Iterable[Threads]) -> None:
    """Ends the threads of several objects together."""
    threads = [thread for group in groups for thread in group._stop()]
    owner: Threads | None = getattr(_here, "owner", None)
    if owner is not None and owner.closed:  # another thread waits for this one
        return
    deadline = time.monotonic() + _GRACE_SECONDS
    for thread in threads:
        # An interrupt may have come before it ran. The reader may also be garbage that any of the threads collects.
        if thread.ident is not None and thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))


def _close_living() -> None:
    close_all(list(_living))


# Threads no longer run while the interpreter exits, so an iterator in a global variable would wait for its threads
# forever.
atexit.register(_close_living)
