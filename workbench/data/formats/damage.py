"""Converts libraries' errors about a file to those of workbench."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError, WorkbenchError


@contextlib.contextmanager
def damage_told(path: str, kind: str) -> Iterator[None]:
    """Converts the errors of Arrow's readers to those of workbench.

    Args:
      path: The path of the file that is read.
      kind: Name of the format.

    Raises:
      DataLossError: if the file is damaged, truncated, or of another format.
      InvalidArgumentError: if Arrow cannot read what the file holds, such as a codec that it was built without.
      NotFoundError: if the file has vanished.
    """
    import pyarrow as pa

    try:
        yield
    except WorkbenchError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"{path!r} has vanished while it was read: {error}") from error
    except pa.ArrowNotImplementedError as error:
        raise InvalidArgumentError(f"{path!r}: pyarrow cannot read this {kind} file: {error}") from error
    except (pa.ArrowException, OSError, MemoryError, ValueError, KeyError, IndexError) as error:
        raise DataLossError(
            f"{path!r}: {in_one_line(error)}; the file is damaged or cut off, or no {kind} file", file=path
        ) from error


@contextlib.contextmanager
def any_damage_told(path: str, verdict: str) -> Iterator[None]:
    """As `damage_told`, for libraries whose decoders may raise any exception.

    Args:
      path: The path of the file that is read.
      verdict: What such an exception says about the file, for errors.

    Raises:
      DataLossError: for any exception that is not an error of workbench.
    """
    try:
        yield
    except WorkbenchError:
        raise
    except Exception as error:
        raise DataLossError(f"{path!r}: {in_one_line(error)}; {verdict}", file=path) from error


def in_one_line(error: BaseException) -> str:
    """The text of an error in one line; the name of its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
