"""`time.sleep` in a replica's thread: in short pieces, between which Ctrl-C can stop the replica.

A replica is interrupted by an exception that is raised in its thread between two bytecodes, so never inside of
`time.sleep`. A signal would not help either: in a thread that is not the main one Python goes on sleeping after it.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from workbench.runtime.replica.env import current_env

PIECE_SECONDS: Final = 0.05
_sleep = time.sleep
_lock = threading.Lock()  # of _users
_users: set[int] = set()


def install(user: object) -> None:
    """Takes the place of `time.sleep` in this process; everywhere but on replicas it does what that does."""
    with _lock:
        _users.add(id(user))
        time.sleep = _sleep_on_replica


def uninstall(user: object) -> None:
    """Puts the original back once the last user has called this. Idempotent."""
    with _lock:
        _users.discard(id(user))
        if not _users and time.sleep is _sleep_on_replica:
            time.sleep = _sleep


def _sleep_on_replica(seconds: Any, /) -> None:
    if current_env() is None or not isinstance(seconds, int | float) or not seconds > PIECE_SECONDS:
        return _sleep(seconds)
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > PIECE_SECONDS:
        _sleep(PIECE_SECONDS)
    return _sleep(max(0.0, left))


_sleep_on_replica.__doc__ = time.sleep.__doc__
