"""What is said of a disk that is full."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from workbench.errors import StorageFull

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Why a file cannot become longer."""


@contextlib.contextmanager
def storage(path: str) -> Iterator[None]:
    """Tells what is to be written to `path` when there is no space left.

    Raises:
      StorageFull: in the place of an `OSError` that says so.
    """
    try:
        yield
    except StorageFull:
        raise
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(
                f"no space left for the dataset in {path!r}: {error.strerror}; make room, or write elsewhere"
            ) from error
        raise
