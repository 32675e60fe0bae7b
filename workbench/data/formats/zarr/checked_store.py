"""Zarr stores with checks: nothing outside a folder is read, and truncated chunks are detected."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zarr.abc.store import Store
from zarr.storage import LocalStore, WrapperStore

from workbench.errors import DataLossError, InvalidArgumentError

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype

# Skips versions, flags and item size; then come the unpacked bytes, the block size and the packed bytes.
_BLOSC_HEADER: Final = struct.Struct("<4xI4xI")
_BLOSC_BYTES: Final = 16


class Folder(LocalStore):
    """A folder that reads only files inside itself."""

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The content of a file, or a part of it; None if there is no such file.

        Raises:
          InvalidArgumentError: if it is a link out of the folder.
        """
        root = os.path.realpath(self.root)
        real = os.path.realpath(os.path.join(root, key))
        if os.path.commonpath([real, root]) != root:
            raise InvalidArgumentError(
                f"{key!r} in {root!r} is a link out of it, to {real!r}; copy what it points to"
            )
        return await super().get(key, prototype, byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of files."""
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]


@dataclass(frozen=True, slots=True)
class Chunks:
    """The form of an array's chunks.

    Attributes:
      most_bytes: Largest size of an unpacked chunk.
      blosc: Whether Blosc compresses whole chunks.
    """

    most_bytes: int
    blosc: bool


class CheckedStore(WrapperStore[Store]):
    """A store whose chunks are checked before they are unpacked.

    Blosc trusts the sizes in its header: for a truncated chunk, it returns memory that belongs to other objects.

    Attributes:
      chunks: The form of each array's chunks, by name.
    """

    chunks: dict[str, Chunks]

    def __init__(self, store: Store, name: str) -> None:
        """Wraps a store; `name` is its folder or URL, for errors."""
        super().__init__(store)
        self.chunks = {}
        self._name = name

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The content of a file, or a part of it; None if there is no such file."""
        found = await super().get(key, prototype, byte_range)
        if found is not None and byte_range is None:
            self._check_chunk(key, found)
        return found

    def _check_chunk(self, key: str, found: Buffer) -> None:
        parts = key.split("/")
        known = (self.chunks.get("/".join(parts[:count])) for count in range(len(parts) - 1, -1, -1))
        chunks = next((entry for entry in known if entry is not None), None)
        if chunks is None or parts[-1].startswith(".z") or parts[-1] == "zarr.json":
            return
        place = f"{self._name}/{key}"
        if len(found) > 2 * chunks.most_bytes + (1 << 16):
            raise DataLossError(
                f"{place!r} has {len(found):,} bytes for a chunk of {chunks.most_bytes:,}", file=place
            )
        if chunks.blosc:
            head = found[:_BLOSC_BYTES].to_bytes()
            sizes = _BLOSC_HEADER.unpack(head) if len(head) == _BLOSC_BYTES else (0, 0)
            if sizes[1] != len(found) or sizes[0] > chunks.most_bytes:
                raise DataLossError(
                    f"{place!r} is damaged or cut off: {len(found):,} bytes, {sizes[1]:,} expected",
                    file=place,
                )
