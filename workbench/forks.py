"""What a forked child must not share with its parent.

`os.fork` copies everything: sockets, on which two processes would then speak at once; locks, held by threads that the
child does not have; objects that at the end of the child would end what is the parent's. So whatever belongs to one
process says so here, and a child lets go of it before it does anything else. The parent goes on untouched.
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
    """Has `owner.disown()` called in forked children."""
    _owners.add(owner)


def lock(lock: _AnyLock) -> _AnyLock:
    """A `threading.Lock`, `RLock` or `Condition` that is free in forked children, also if a thread held it."""
    _locks.add(lock)
    return lock


def descriptor(thing: _AnyDescriptor) -> _AnyDescriptor:
    """Something with `fileno`, such as a socket, that forked children let go of."""
    _descriptors.add(thing)
    return thing


def let_go(*descriptors: int) -> None:
    """Puts the null device in the place of descriptors, for a forked child.

    Closed, their numbers would soon be those of other files, which the objects that know the numbers would close.
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
    """Lets go of all that an event loop waits for, for a forked child, which has no thread that runs it.

    Its epoll is one with the parent's: a socket that is closed in the child would be taken off it in the parent, too.

    Args:
      loop: Asyncio's, or Tornado's around one. That knows its connections also in moments in which it waits for nothing
        of them, as they have sent more than was read.
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
        except Exception:  # the others must be released all the same
            sys.excepthook(*sys.exc_info())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
