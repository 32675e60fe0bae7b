"""What a replica function must not do: wait for the replicas, of which it runs one.

In worker processes a strategy only stands for itself, and has nobody to wait for. Where replicas are threads of the
driver's process, they reach all that the driver has. The driver holds its gang's lock until the step has ended, so a
replica that asked for it would wait for itself, and everybody else for both.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

from workbench import forks
from workbench.backends.users_line import is_users
from workbench.runtime.env import current_env


def refuse_on_replica() -> None:
    """Refuses what only the driver can do, by the name of the function that the user has called.

    Raises:
      RuntimeError: If the calling thread runs a replica.
    """
    env = current_env()
    if env is not None:
        raise RuntimeError(
            f"{_called()} was called inside a replica function, by replica {env.rank}: it would wait for the "
            f"replicas, and so for itself. Call it outside of strategy.run, and pass on what it gives as an argument: "
            f"strategy.run(fn, args=(value,))"
        )


class DriverLock:
    """The lock of a gang whose replicas are threads of this process; a thread that runs one of them is refused."""

    def __init__(self) -> None:
        self._lock = forks.lock(threading.RLock())
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As that of `threading.RLock`; only what does not wait is allowed to a replica.

        Raises:
          RuntimeError: If the calling thread runs a replica, and would wait.
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
    """The function of this package that the innermost function of the user has called."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and not is_users(frame):
        name = frame.f_code.co_qualname
        frame = frame.f_back
    return name.replace(".__init__", "") or "this"
