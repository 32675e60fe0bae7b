"""The folder of a checkpoint: on this machine, or at a URL that fsspec supports."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Protocol

from workbench.data.sources.remote import RemoteFile, file_system, request
from workbench.data.sources.urls import Url, file_name, is_url, without_secrets
from workbench.errors import (
    FailedPreconditionError,
    NotFoundError,
    StorageFull,
    UnavailableError,
    WorkbenchError,
)
from workbench.faults import fault
from workbench.io.storage import absolute

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GONE: Final = (errno.ENOENT, errno.ESTALE)
_OBJECT_STORES: Final = frozenset("s3 s3a gs gcs abfs abfss az adl oci oss r2 b2".split())
"""Protocols without folders: creating one would create a bucket, even under a misspelled name."""


class Folder(Protocol):
    """A folder with the files of a checkpoint. Names of files have no folders in them.

    Attributes:
      name: Path or URL.
    """

    name: str

    def make(self) -> None:
        """Creates the folder if it is missing."""

    def create(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """A new file to write to; it is removed if the context fails."""

    def replace(self, name: str, data: bytes) -> None:
        """Replaces the content of a file by `data` atomically, or creates the file."""

    def open(self, name: str) -> Any:
        """A file to read from.

        Raises:
          NotFoundError: if it is missing.
        """

    def size(self, name: str) -> int:
        """The length of a file.

        Raises:
          NotFoundError: if it is missing.
        """

    def names(self) -> list[str]:
        """The names of its files; none if the folder is missing."""

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""

    def remove_itself(self) -> None:
        """Removes the folder if it is empty."""


def folder_at(path: str | os.PathLike[str]) -> Folder:
    """The folder with this path or URL."""
    name = file_name(path)
    if isinstance(name, Url):
        return RemoteFolder(name)
    return LocalFolder(absolute(name))  # absolute, because workers have other working directories


def joined(path: str | os.PathLike[str], name: str) -> str:
    """The path or URL of a name in a folder."""
    text = os.fspath(path)
    text = text.target if isinstance(text, Url) else text
    return f"{text.rstrip('/')}/{name}" if is_url(text) else os.path.join(text, name)


@contextlib.contextmanager
def storage(path: str) -> Iterator[None]:
    """Raises `StorageFull` if writing to `path` fails because no space is left."""
    try:
        yield
    except StorageFull:
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StorageFull(
            f"no space left for the checkpoint {path!r}: {error.strerror}; {_free(path)}make room, or save elsewhere. "
            f"Checkpoints that were complete are as they were"
        ) from error


class LocalFolder:
    """A folder in the file system of this machine."""

    def __init__(self, name: str) -> None:
        self.name = name

    def make(self) -> None:
        """See `Folder.make`."""
        try:
            with storage(self.name):
                os.makedirs(self.name, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise FailedPreconditionError(
                f"the checkpoint {self.name!r} has to be a folder, and a file is in its place; give another path"
            ) from error

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """See `Folder.create`."""
        path = os.path.join(self.name, name)
        try:
            with self._writing():
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                with open(descriptor, "wb", buffering=0) as file:
                    yield _WrittenBack(_Whole(file), descriptor)  # type: ignore[misc]  # as a file, to write to
                    fault("checkpoint.shard_written")
                    os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        beside = f"{name}.{secrets.token_hex(8)}"
        with self._writing():
            # Not when creating the folder, because training would wait for the disk.
            _sync(os.path.dirname(self.name))
            _sync(self.name)  # the folder must hold the files before `data` names them
            with self.create(beside) as file:
                file.write(data)
            fault("checkpoint.manifest_written")
            try:
                os.replace(os.path.join(self.name, beside), os.path.join(self.name, name))
            except BaseException:
                self.remove(beside)
                raise
            fault("checkpoint.renamed")
            _sync(self.name)

    def open(self, name: str) -> BinaryIO:
        """See `Folder.open`."""
        path = os.path.join(self.name, name)
        try:  # a link could lead to any file of this machine
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise NotFoundError(f"cannot open {path!r}: {error.strerror}") from None
        return open(descriptor, "rb", buffering=0)

    def size(self, name: str) -> int:
        """See `Folder.size`."""
        path = os.path.join(self.name, name)
        try:
            return os.lstat(path).st_size
        except OSError as error:
            raise NotFoundError(f"cannot open {path!r}: {error.strerror}") from None

    def names(self) -> list[str]:
        """See `Folder.names`."""
        try:
            return sorted(os.listdir(self.name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, name: str) -> None:
        """See `Folder.remove`."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.name, name))

    def remove_itself(self) -> None:
        """See `Folder.remove_itself`."""
        with contextlib.suppress(OSError):
            os.rmdir(self.name)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with storage(self.name):
                yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            raise NotFoundError(
                f"the folder {self.name!r} is not there any more on host {socket.gethostname()}: it was removed, or "
                f"its disk was unmounted, while a checkpoint was saved there; save again. Other checkpoints are as "
                f"they were"
            ) from error


class RemoteFolder:
    """A folder at a URL.

    It has no atomic renames and no locks. An object store replaces an object as a whole, however many parts were
    uploaded: a file is complete when it appears, and an abandoned one never appears. The manifest is uploaded last,
    once all files that it names exist with the right length. Parts that a killed process has uploaded of a large
    object are in no listing; the store removes them if it has a rule for incomplete uploads.
    """

    def __init__(self, url: Url) -> None:
        self._url = Url(url.target.rstrip("/"))
        self.name = self._url.target
        self._files, self._path = file_system(self._url)

    def make(self) -> None:
        """See `Folder.make`."""
        protocols = self._files.protocol
        if _OBJECT_STORES.isdisjoint((protocols,) if isinstance(protocols, str) else protocols):
            with self._writing():
                self._files.makedirs(self._path, exist_ok=True)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """See `Folder.create`."""
        with self._writing():
            file = self._files.open(f"{self._path}/{name}", "wb")
            try:
                yield _Whole(file)
                fault("checkpoint.shard_written")
            except BaseException:
                with contextlib.suppress(Exception):  # in an object store, closing would complete the object
                    getattr(file, "discard", file.close)()
                # Otherwise the garbage collector closes and uploads it.
                with contextlib.suppress(AttributeError):
                    file.closed = True
                with contextlib.suppress(Exception):
                    self.remove(name)
                raise
            file.close()

    def replace(self, name: str, data: bytes) -> None:
        """See `Folder.replace`."""
        with self._writing():
            fault("checkpoint.manifest_written")
            self._files.pipe_file(f"{self._path}/{name}", data)
        fault("checkpoint.renamed")

    def open(self, name: str) -> RemoteFile:
        """See `Folder.open`."""
        self._look_again(name)
        return RemoteFile(Url(f"{self._url.target}/{name}"))

    def size(self, name: str) -> int:
        """See `Folder.size`."""
        url = Url(f"{self._url.target}/{name}")
        self._look_again(name)
        return int(request(url, self._files, "info", f"{self._path}/{name}")["size"])

    def names(self) -> list[str]:
        """See `Folder.names`."""
        self._files.invalidate_cache(self._path)
        try:
            found = request(self._url, self._files, "ls", self._path, detail=False)
        except NotFoundError:
            return []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def remove(self, name: str) -> None:
        """See `Folder.remove`."""
        with self._writing(), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._path}/{name}")

    def remove_itself(self) -> None:
        """See `Folder.remove_itself`."""
        with contextlib.suppress(Exception):  # most stores have no folders
            self._files.rmdir(self._path)

    def _look_again(self, name: str) -> None:
        """Discards a cached listing, because replicas and other processes write to this folder."""
        self._files.invalidate_cache(f"{self._path}/{name}")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with storage(str(self._url)):
                yield
        except WorkbenchError:
            raise
        except Exception as error:  # each file system raises the errors of its library
            said = without_secrets(error, self._url) or type(error).__name__
            if isinstance(error, FileNotFoundError):
                raise NotFoundError(
                    f"cannot write to {self._url!r}: {said}. Make the bucket first, or check its name"
                ) from None
            raise UnavailableError(f"cannot write to {self._url!r}: {said}") from None


class _Whole:
    """Writes each buffer completely; an unbuffered file may take only a part of it."""

    __slots__ = ("_file",)

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> None:
        fault("checkpoint.write")
        left = memoryview(data)
        while left:
            written = self._file.write(left)
            left = left[len(left) if written is None else written :]


class _WrittenBack:
    """Lets the system write each buffer to disk while the next one is made, so that fsync has little left to do."""

    __slots__ = ("_descriptor", "_place", "_whole")

    def __init__(self, whole: _Whole, descriptor: int) -> None:
        self._whole = whole
        self._descriptor = descriptor
        self._place = 0

    def write(self, data: Any) -> None:
        self._whole.write(data)
        if hasattr(os, "posix_fadvise"):  # on Linux this starts writing without waiting
            os.posix_fadvise(self._descriptor, self._place, len(data), os.POSIX_FADV_DONTNEED)
        self._place += len(data)


def _free(path: str) -> str:
    """The free space, in words; "" if unknown."""
    while path and not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        status = os.statvfs(path)
    except (OSError, ValueError):
        return ""
    return f"{status.f_bavail * status.f_frsize:,} bytes are free there; "


def _sync(path: str) -> None:
    """Syncs a folder to disk, so that its entries survive a power failure."""
    descriptor = os.open(path or os.curdir, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
