"""Opens files, with errors that say what to do."""

from __future__ import annotations

import os
from io import FileIO

from workbench.data.sources.remote import RemoteFile
from workbench.data.sources.urls import Url
from workbench.errors import NotFoundError


def opened(path: str) -> FileIO | RemoteFile:
    """Opens a file for reading, without a buffer.

    Raises:
      NotFoundError: if there is no such file, it is a folder, or it cannot be opened.
      UnavailableError: if a URL's server cannot be reached.
    """
    if isinstance(path, Url):
        return RemoteFile(path)
    try:
        return FileIO(path)
    except FileNotFoundError:
        raise missing(path) from None
    except IsADirectoryError:
        raise NotFoundError(
            f"{path!r} is a folder; name its files: Dataset.list_files({os.path.join(path, '*')!r})"
        ) from None
    except (OSError, ValueError) as error:
        raise NotFoundError(f"cannot open {path!r}: {error}") from error


def missing(path: str, what: str = "file") -> NotFoundError:
    """The error for a missing file or folder, naming the process that should read it.

    Args:
      path: The path, as the user wrote it.
      what: What was expected there.
    """
    if os.path.isabs(path):
        return NotFoundError(f"no {what} {path!r}; check the path as seen by the host that reads it")
    return NotFoundError(
        f"no {what} {path!r} in {os.getcwd()!r}, the current folder of the process that reads it; check the path, or "
        f"give an absolute one"
    )


def size_bytes(path: str) -> int:
    """Size of a file.

    Raises:
      NotFoundError: if there is no such file.
      UnavailableError: if a URL's server cannot be reached.
    """
    with opened(path) as file:
        return file.seek(0, os.SEEK_END)
