"""Files behind URLs, read in ranges through fsspec: requests have a deadline, and are repeated if that may help."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable
from typing import Any, Final

from workbench.data.sources.urls import Url, file_name, without_secrets
from workbench.errors import (
    DataLossError,
    InvalidArgumentError,
    LibraryMissing,
    NotFoundError,
    UnavailableError,
)
from workbench.extras import install_command

REQUEST_SECONDS: float = 30.0
"""How long one request may take."""
ATTEMPTS: Final = 3
"""How often to make a request that fails for a temporary reason. All requests only read."""
_PAUSE_SECONDS: Final = 0.2
_AHEAD_BYTES: Final = 1 << 22
_VERSION: Final = frozenset(
    "etag last-modified lastmodified content-md5 md5hash generation created mtime updated size".split()
)
"""Names that file systems use for an attribute that changes with a file's content."""
_REFUSED: Final = {400, 401, 403, 405, 407, 410, 451}


class AccessRefused(NotFoundError):
    """A server denies access to a file, whether or not it exists."""


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read in ranges of at least 4 MiB; the last range is kept.

    Reading raises `DataLossError` if the file changes between two ranges.

    Args:
      url: The url of the file.

    Raises:
      NotFoundError: if there is none, it is a folder, or access is denied.
      UnavailableError: if the server cannot be reached or does not answer in time.
      InvalidArgumentError: if the protocol is unknown, or the server does not report the file's size.
      LibraryMissing: if the library for the protocol is missing.
    """

    def __init__(self, url: Url) -> None:
        self._url = url
        self._files, self._path = file_system(url)
        info = request(url, self._files, "info", self._path)
        if info.get("type") == "directory":
            raise NotFoundError(f"{url!r} is a folder; name its files: Dataset.list_files({f'{url}/*'!r})")
        size = info.get("size")
        if size is None:
            raise InvalidArgumentError(
                f"the server of {url!r} does not tell how long the file is; fetch it first"
            )
        self._size = int(size)
        self._version = _version_in(info)
        self._place = 0
        self._held, self._held_at = b"", 0

    def __repr__(self) -> str:
        return f"RemoteFile({self._url!r})"

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether any place can be read: always."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves the position; fetches nothing."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        """Fills a buffer as far as the file allows."""
        with memoryview(buffer).cast("B") as view:
            data = self.read(len(view))
            view[: len(data)] = data
            return len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        """The requested number of bytes; fewer only at the end of the file."""
        wanted = self._size if size is None or size < 0 else size
        stop = min(self._size, self._place + wanted)
        if stop <= self._place:
            return b""
        parts = []
        while self._place < stop:
            start = self._place - self._held_at
            if not 0 <= start < len(self._held):
                self._fetch(self._place, stop)
                start = 0
            part = self._held[start : start + stop - self._place]
            parts.append(part)
            self._place += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readall(self) -> bytes:
        """The rest of the file."""
        return self.read(-1)

    def _fetch(self, start: int, stop: int) -> None:
        stop = min(self._size, max(stop, start + _AHEAD_BYTES))
        self._held = b""  # not two ranges at once
        beyond = int(stop == self._size)  # one more byte, to notice that the file has grown

        def placed(data: bytes) -> tuple[int, bytes]:
            # A server without range requests sends the whole file, so once is enough.
            if len(data) == self._size:
                return 0, data
            if len(data) < stop - start:
                raise ConnectionError(f"{len(data):,} bytes came instead of {stop - start:,}")
            return start, data

        try:
            self._held_at, self._held = request(
                self._url, self._files, "cat_file", self._path, start=start, end=stop + beyond, then=placed
            )
        except UnavailableError:
            self._check_version()  # a file that became shorter looks like a truncated answer
            raise
        if len(self._held) > stop - self._held_at or start:
            self._check_version()

    def _check_version(self) -> None:
        self._files.invalidate_cache()
        now = version_of(self._url)
        if now != self._version:
            self._held = b""
            raise DataLossError(
                f"{self._url!r} has changed while it was read ({self._version} before, {now} now); read it again when "
                "nobody writes it, or name one version of it",
                file=self._url,
            )


def version_of(url: Url) -> str:
    """Identifies the content of a file, as far as its server supports: ETag, times, size.

    Raises:
      NotFoundError: if there is none, or access is denied.
      UnavailableError: if the server cannot be reached or does not answer in time.
      InvalidArgumentError: if the protocol is unknown.
      LibraryMissing: if the library for the protocol is missing.
    """
    files, path = file_system(url)
    return _version_in(request(url, files, "info", path))


def _version_in(info: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {info[key]}" for key in sorted(info) if key.lower().replace("_", "-") in _VERSION
    )


def file_system(url: Url) -> tuple[Any, str]:
    """The fsspec file system for a URL, and the file's name in it.

    Raises:
      InvalidArgumentError: if the protocol is unknown.
      LibraryMissing: if the library for the protocol is missing.
    """
    import fsspec

    try:
        return fsspec.core.url_to_fs(url.target)  # type: ignore[no-any-return]
    except ImportError as error:
        raise LibraryMissing(
            f"{url!r} needs a library that is missing ({error}): {install_command('remote')}"
        ) from None
    except ValueError as error:
        raise InvalidArgumentError(f"{url!r} cannot be read: {without_secrets(error, url)}") from None
    except Exception as error:  # a file system may connect when it is created
        raise UnavailableError(f"{url!r} cannot be reached: {without_secrets(error, url)}") from None


def remote_files(pattern: Url) -> list[str]:
    """URLs of the files that match a pattern.

    Raises:
      UnavailableError: if the server cannot be reached.
      InvalidArgumentError: if the protocol is unknown.
      LibraryMissing: if the library for the protocol is missing.
    """
    files, path = file_system(pattern)
    try:
        found = request(pattern, files, "glob", path, detail=True)
    except NotFoundError:
        return []
    return [file_name(files.unstrip_protocol(name)) for name, info in found.items() if info["type"] == "file"]


def request(
    url: Url,
    files: Any,
    method: str,
    *args: Any,
    then: Callable[[Any], Any] = lambda answer: answer,
    **kwargs: Any,
) -> Any:
    """The result of a file system's method, within a deadline.

    Args:
      url: The URL, for errors.
      files: The file system.
      method: The method's name; it may only read.
      args: Arguments of the method.
      then: Converts the answer; its errors count as failures of the request.
      kwargs: Keyword arguments of the method.

    Raises:
      NotFoundError: if there is no such file, or access is denied.
      UnavailableError: if requests failed, or were not answered in time.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            threading.Event().wait(_PAUSE_SECONDS * 2**attempt)
        try:
            return then(_within_deadline(files, method, *args, **kwargs))
        except Exception as error:  # each file system raises its library's errors
            cause, status = _cause(error), _status(error)
            if isinstance(cause, FileNotFoundError | NotADirectoryError) or status == 404:
                raise NotFoundError(
                    f"no file {url!r}; check the URL, as seen by the host that reads it"
                ) from None
            if isinstance(cause, IsADirectoryError):
                raise NotFoundError(
                    f"{url!r} is a folder; name its files: Dataset.list_files({f'{url}/*'!r})"
                ) from None
            said = without_secrets(cause, url) or type(cause).__name__
            if isinstance(cause, PermissionError) or status in _REFUSED:
                raise AccessRefused(f"cannot open {url!r}: access is refused: {said}") from None
    if isinstance(cause, TimeoutError | asyncio.TimeoutError):
        said = f"no answer within {REQUEST_SECONDS:g} s"
    raise UnavailableError(f"{url!r} cannot be read, tried {ATTEMPTS} times: {said}") from None


def _within_deadline(files: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a method. Network file systems wait in fsspec's loop, where they can be cancelled."""
    asynchronous = getattr(files, f"_{method}", None)
    if not getattr(files, "async_impl", False) or asynchronous is None:
        return getattr(files, method)(*args, **kwargs)
    from fsspec.asyn import sync

    return sync(files.loop, asynchronous, *args, timeout=REQUEST_SECONDS, **kwargs)


def _cause(error: Exception) -> BaseException:
    """The error that explains the failure: file systems report some as "not found"."""
    while isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        if isinstance(error.__cause__, KeyError):  # in-memory files: the file really does not exist
            break
        error = error.__cause__
    return error


def _status(error: BaseException | None) -> int:
    """The HTTP status in an error or one of its causes, as aiohttp and botocore store it; 0 for none."""
    while error is not None:
        answer = getattr(error, "response", None)
        told = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        status = told or getattr(error, "status", 0)
        if isinstance(status, int) and status:
            return status
        error = error.__cause__
    return 0
