"""Paths of files and folders to write, and the error for a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from workbench.errors import InvalidArgumentError, StorageFull, WrongType

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers that mean that a file cannot grow."""


@contextlib.contextmanager
def storage(path: str) -> Iterator[None]:
    """Reports what was being written to `path` if there is no space left.

    Raises:
      StorageFull: instead of an `OSError` that says so.
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


def path_text(path: str | bytes | os.PathLike[str]) -> str:
    """A path as text.

    Raises:
      TypeError: if it is not a path.
    """
    try:
        return os.fsdecode(path)
    except TypeError:
        raise WrongType(
            f"a path is a text or an os.PathLike, got {type(path).__name__} {path!r:.60}"
        ) from None


def absolute(path: str | os.PathLike[str]) -> str:
    """The absolute path of a file or folder, for processes with other working folders.

    Raises:
      TypeError: if it is not a path.
      InvalidArgumentError: if it has a NUL byte, which no name can have.
    """
    text = path_text(path)
    if "\0" in text:
        raise InvalidArgumentError(f"{text!r} has a zero byte, which no name of a file or folder has")
    return os.path.abspath(text)
