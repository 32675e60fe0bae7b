"""Splits `time.sleep` in a replica's thread into short pieces, between which Ctrl-C can stop the replica.

An interrupt is an exception that is raised in the replica's thread between two bytecodes, so never inside `time.sleep`.
A signal would not help either: in a thread other than the main one, Python continues to sleep after it.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from workbench.runtime.replica.env import current_env

PIECE_SECONDS: Final = 0.05
_sleep = time.sleep
_lock = threading.Lock()  # guards _users
_users: set[int] = set()


def install(user: object) -> None:
    """Replaces `time.sleep` in this process; outside replicas, the replacement behaves like the original."""
    with _lock:
        _users.add(id(user))
        time.sleep = _sleep_on_replica


def uninstall(user: object) -> None:
    """Restores the original once the last user has called this. Idempotent."""
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
