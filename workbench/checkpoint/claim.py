"""Claim: only one process at a time saves checkpoints under a name."""

from __future__ import annotations

import threading
import weakref

from workbench import forks
from workbench.data.stored.locks import FileLock
from workbench.errors import FailedPreconditionError


class Claim:
    """The right of this process to save under a name. Its managers share it, for example if a cell runs again."""

    def __init__(self, path: str) -> None:
        try:
            self._lock = FileLock(path, wait=False)
        except BlockingIOError:
            raise FailedPreconditionError(
                f"another process saves checkpoints here: it holds {path!r}. Give another directory, or another "
                f"checkpoint_name; to read what it saves: checkpoint.restore(path)"
            ) from None
        weakref.finalize(self, self._lock.release)


_claims: weakref.WeakValueDictionary[str, Claim] = weakref.WeakValueDictionary()
_claiming = forks.lock(threading.Lock())


def claim(path: str) -> Claim:
    """The claim that belongs to the lock file `path`; it lives as long as it is referenced.

    Raises:
      FailedPreconditionError: if another process has it.
    """
    with _claiming:
        held = _claims.get(path)
        if held is None:
            held = _claims[path] = Claim(path)
    return held
