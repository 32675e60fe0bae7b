"""Threads that a replica function starts belong to the replica while its step runs.

In such a thread, a wait for the replicas would also wait for itself, because the replica function waits for its
threads. Python has no hook for the start of a thread, so `threading.Thread.start` and `ThreadPoolExecutor.submit`,
which `asyncio.to_thread` uses, are replaced while replicas live in this process. On other threads they are unchanged.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from workbench import forks
from workbench.runtime.replica.env import ReplicaStep, current_step

_start = threading.Thread.start
_submit: Callable[..., Any] = ThreadPoolExecutor.submit
_lock = forks.lock(threading.Lock())  # guards _users
_users: set[int] = set()
_started: weakref.WeakKeyDictionary[threading.Thread, ReplicaStep] = weakref.WeakKeyDictionary()
_lent = threading.local()  # set while a pool's thread runs a call that a replica has submitted


def install(user: object) -> None:
    """Replaces both in this process."""
    with _lock:
        _users.add(id(user))
        threading.Thread.start = _start_for_replica  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = _submit_for_replica  # type: ignore[method-assign, assignment]


def uninstall(user: object) -> None:
    """Restores the originals once the last user has called this. Idempotent."""
    with _lock:
        _users.discard(id(user))
        if not _users and threading.Thread.start is _start_for_replica:
            threading.Thread.start = _start  # type: ignore[method-assign]
        if not _users and ThreadPoolExecutor.submit is _submit_for_replica:
            ThreadPoolExecutor.submit = _submit  # type: ignore[method-assign]


def step_of_thread() -> ReplicaStep | None:
    """The running replica step that the calling thread executes, or that started the calling thread."""
    step = current_step() or getattr(_lent, "step", None)
    if step is None and _started:
        step = _started.get(threading.current_thread())
    return None if step is None or step.ended else step


def stands_for_user(frame: FrameType) -> bool:
    """Whether a frame only passes on a call that a replica has submitted."""
    return frame.f_code is _run_for_replica.__code__


@functools.wraps(_start)
def _start_for_replica(self: threading.Thread) -> None:
    step = step_of_thread()
    if step is not None:
        _started[self] = step  # before it runs
    _start(self)


@functools.wraps(_submit)
def _submit_for_replica(
    self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    step = step_of_thread()
    if step is None:
        return _submit(self, fn, *args, **kwargs)
    return _submit(self, _run_for_replica, step, fn, args, kwargs)


def _run_for_replica(
    step: ReplicaStep, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    _lent.step = step
    try:
        return fn(*args, **kwargs)
    finally:
        _lent.step = None
