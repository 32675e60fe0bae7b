"""Zarr stores behind URLs: read through fsspec, with the deadlines, retries and errors of other files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from workbench.data.sources.remote import AccessRefused, file_system, request
from workbench.data.sources.urls import Url, below
from workbench.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype


class RemoteStore(Store):
    """A read-only store below a URL."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, url: Url) -> None:
        super().__init__(read_only=True)
        self._url = url
        # Opened once, because fsspec gives each thread a file system with its own connections.
        self._files, _ = file_system(url)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteStore) and other._url.target == self._url.target

    __hash__ = None  # type: ignore[assignment]

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The content of a file, or a part of it; None if there is no such file.

        Raises:
          NotFoundError: if access is denied.
          UnavailableError: if the server cannot be reached or does not answer in time.
        """
        data = await asyncio.to_thread(self._read, key, byte_range)
        return None if data is None else prototype.buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of files."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return await asyncio.to_thread(self._read, key, RangeByteRequest(0, 1)) is not None

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names of the entries of a folder.

        Raises:
          InvalidArgumentError: if the server does not list it.
        """
        for name in await asyncio.to_thread(self._list, prefix):
            yield name

    async def list(self) -> AsyncIterator[str]:
        """Names of all files: not needed for reading."""
        self._refuse()
        yield ""

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Names of all files of a folder: not needed for reading."""
        self._refuse()
        yield ""

    async def set(self, key: str, value: Buffer) -> None:
        """Nothing can be written."""
        self._refuse()

    async def delete(self, key: str) -> None:
        """Nothing can be deleted."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError("stores behind URLs are only read")

    def _path(self, url: Url) -> str:
        path: str = self._files._strip_protocol(url.target)
        return path

    def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        url = below(self._url, key)
        try:
            data: bytes = request(url, self._files, "cat_file", self._path(url), **_bounds(part))
        except AccessRefused:
            raise
        except NotFoundError:
            return None
        match part:  # a server without range requests sends the whole file
            case RangeByteRequest(start, end) if len(data) > end - start:
                return data[start:end]
            case SuffixByteRequest(suffix):
                return data[-suffix:]
        return data

    def _list(self, prefix: str) -> tuple[str, ...]:
        url = below(self._url, prefix)
        try:
            names = request(url, self._files, "ls", self._path(url), detail=False)
        except NotFoundError:
            names = []
        found = tuple(sorted({name.rstrip("/").rpartition("/")[2] for name in names} - {""}))
        if not found:
            raise InvalidArgumentError(
                f"{url!r} is a group on a server that lists no folders; name its arrays with columns=, or write it "
                "with zarr.consolidate_metadata"
            )
        return found


def _bounds(part: ByteRequest | None) -> dict[str, Any]:
    match part:
        case RangeByteRequest(start, end):
            return {"start": start, "end": end}
        case OffsetByteRequest(offset):
            return {"start": offset}
        case SuffixByteRequest(suffix):
            return {"start": -suffix}
    return {}
