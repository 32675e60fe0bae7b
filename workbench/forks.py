"""What a forked child must not share with its parent.

`os.fork` copies everything: sockets, which two processes would then use at once; locks, held by threads that the child
lacks; objects that, when the child ends, would end the parent's resources. So everything that belongs to one process is
registered here, and a child releases it before it does anything else. The parent is not affected.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from typing import Any, Protocol, TypeVar


class _Owner(Protocol):
    def disown(self) -> None:
        """Releases the parent's resources. Called in a forked child, where no other thread runs."""


class _Descriptor(Protocol):
    def fileno(self) -> int:
        """The descriptor; below 0 when closed."""


_AnyLock = TypeVar("_AnyLock")
_AnyDescriptor = TypeVar("_AnyDescriptor", bound=_Descriptor)
_owners: weakref.WeakSet[_Owner] = weakref.WeakSet()
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_descriptors: weakref.WeakSet[Any] = weakref.WeakSet()


def tell(owner: _Owner) -> None:
    """Registers `owner`: forked children call `owner.disown()`."""
    _owners.add(owner)


def lock(lock: _AnyLock) -> _AnyLock:
    """A `threading.Lock`, `RLock` or `Condition` that is free in forked children, even if a thread held it."""
    _locks.add(lock)
    return lock


def descriptor(thing: _AnyDescriptor) -> _AnyDescriptor:
    """Registers an object with `fileno`, such as a socket, which forked children release."""
    _descriptors.add(thing)
    return thing


def let_go(*descriptors: int) -> None:
    """Replaces descriptors by the null device, for a forked child.

    If they were closed, other files would soon get their numbers, and the objects that know the numbers would close
    these files.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for each in descriptors:
            if each >= 0:
                with contextlib.suppress(OSError):  # its owner has closed it in the meantime
                    os.fstat(each)
                    os.dup2(null, each, inheritable=False)
    finally:
        os.close(null)


def let_go_loop(loop: Any) -> None:
    """Releases everything that an event loop waits for, for a forked child, which has no thread that runs it.

    It shares its epoll with the parent: closing a socket in the child would also remove it in the parent.

    Args:
      loop: Asyncio's loop, or Tornado's around one. Tornado's knows its connections even while it does not wait for
        them because unread data is buffered.
    """
    handlers = getattr(loop, "handlers", {})
    loop = getattr(loop, "asyncio_loop", loop)
    selector = getattr(loop, "_selector", None)
    if selector is None or loop.is_closed():
        return
    ringing = getattr(loop, "_csock", None)
    let_go(
        *handlers,
        *(key.fd for key in selector.get_map().values()),
        selector.fileno() if hasattr(selector, "fileno") else -1,
        -1 if ringing is None else ringing.fileno(),
    )


def _in_child() -> None:
    for held in list(_locks):
        held._at_fork_reinit()
    let_go(*(thing.fileno() for thing in list(_descriptors)))
    for owner in list(_owners):
        try:
            owner.disown()
        except Exception:  # the others must still be released
            sys.excepthook(*sys.exc_info())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
