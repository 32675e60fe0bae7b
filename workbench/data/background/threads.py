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
"""How often a waiting thread looks around; wake-ups do not wait for it."""
_GRACE_SECONDS: Final = 0.5
"""How long closing waits for threads. A thread in a user function then continues until that returns."""
_here = threading.local()
_living: weakref.WeakSet[Threads] = weakref.WeakSet()


def inherited(target: Callable[..., _T]) -> Callable[..., _T]:
    """`target`, for another thread: it warns at the user's line that runs now, and is checked for NaN as this one."""
    return users_line.shared(numerics.shared(target))


class Signal:
    """A lock, and a condition that is notified of what changes under it.

    The lock can be taken again by the thread that has it, as the garbage collector may close iterators at any moment.
    It is taken by itself, as in `with signal.lock`: a condition gives it back in Python code, and an interrupt that
    comes there would leave it taken.

    Attributes:
      lock: The lock.
      changed: The condition.
    """

    __slots__ = ("changed", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = self.condition()

    def condition(self) -> threading.Condition:
        """Another condition of the same lock."""
        return forks.lock(threading.Condition(self.lock))


class Threads:
    """Threads of one stage of one pass.

    Threads that are started by one of them end with it: a prefetch that is closed must not wait for the ones below it.

    Attributes:
      lock: Held to look at what the threads share with their reader.
      changed: Notified of changes of that.
      closed: Whether the reader is gone.
      forked: Whether this is a copy in a forked process, which does not have the threads.
    """

    def __init__(self, signal: Signal | None = None) -> None:
        """Starts none yet; stages that wait for several of them give them one `signal`."""
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
        """Starts a thread; once the reader is gone, `target` should return soon.

        Args:
          target: What the thread calls.
          name: Name of the thread.
          *args: Arguments of `target`.
        """
        # Daemon threads, because one that hangs in a user's function must not keep the process from ending.
        thread = threading.Thread(target=self._run, args=(inherited(target), args), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def at_end(self, end: Callable[[], None]) -> None:
        """Has `end` called when the reader is gone, to wake threads that wait for something else."""
        self._ends.append(end)

    def close(self) -> None:
        """Ends the threads; waits for them, but not for long."""
        close_all([self])

    def disown(self) -> None:
        """See `forks.tell`: the child has no such threads, and must not wait for them."""
        self.forked = self.closed = True

    def failed_by_fork(self) -> Failed:
        """What a forked child gets in the place of an element."""
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
        if closed:  # the reader closed it just before this thread got here
            inner._stop()

    def _run(self, target: Callable[..., None], args: tuple[Any, ...]) -> None:
        _here.owner = self
        target(*args)

    def _stop(self) -> list[threading.Thread]:
        """Tells all threads to end, and returns them."""
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
    """Ends the threads of several objects at once."""
    threads = [thread for group in groups for thread in group._stop()]
    owner: Threads | None = getattr(_here, "owner", None)
    if owner is not None and owner.closed:  # another thread waits for this one
        return
    deadline = time.monotonic() + _GRACE_SECONDS
    for thread in threads:
        # An interrupt may have come before it ran. Any of the threads may collect garbage, and find the reader there.
        if thread.ident is not None and thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))


def _close_living() -> None:
    close_all(list(_living))


# Threads no longer run while the interpreter exits, so an iterator in a global variable would wait for its own
# forever.
atexit.register(_close_living)
