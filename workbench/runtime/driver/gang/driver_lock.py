"""Prevents a replica function from waiting for the replicas, one of which runs it.

In worker processes, a strategy is only a placeholder and has nothing to wait for. But replicas that are threads of the
driver's process can reach all of the driver's objects. The driver holds its gang's lock until the step has ended, so a
replica, or a thread started by one, that waits for the lock would wait for itself, and everything else for both.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

from workbench import forks
from workbench.backends.users_line import is_users
from workbench.runtime.replica.env import current_env
from workbench.runtime.replica.started_threads import stands_for_user, step_of_thread


def refuse_on_replica() -> None:
    """Refuses calls that only the driver can make; the error names the function that the user called.

    Raises:
      RuntimeError: if the calling thread runs a replica, or was started by a replica function that still runs.
    """
    step = step_of_thread()
    if step is not None:
        by = "" if current_env() is not None else "a thread that was started by "
        raise RuntimeError(
            f"{_called()} was called inside a replica function, by {by}replica {step.rank}: it would wait for the "
            f"replicas, and so for itself. Call it outside of strategy.run, and pass on what it gives as an argument: "
            f"strategy.run(fn, args=(value,))"
        )


class DriverLock:
    """The lock of a gang with replicas as threads of this process; refuses them and the threads that they start."""

    def __init__(self) -> None:
        self._lock = forks.lock(threading.RLock())
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.RLock.acquire`; a replica may call it only without waiting.

        Raises:
          RuntimeError: if the calling thread runs a replica, and would wait.
        """
        if blocking:
            refuse_on_replica()
        return self._lock.acquire(blocking, timeout)

    def __enter__(self) -> bool:
        refuse_on_replica()
        return self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


def _called() -> str:
    """The function of this package that the user's innermost function called."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and not is_users(frame) and not stands_for_user(frame):
        name = frame.f_code.co_qualname
        frame = frame.f_back
    return name.replace(".__init__", "") or "this"
