"""Reads a file block by block, and decompresses GZIP and ZLIB."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from workbench.data.sources.opening import opened
from workbench.errors import DataLossError
from workbench.io.compression import WINDOW_BITS

DEFAULT_BLOCK_BYTES = 1 << 18


def blocks(path: str, compression: str, block_bytes: int) -> Iterator[bytes]:
    """The content of a file in blocks of at most `block_bytes`, decompressed.

    Args:
      path: Name or URL of the file.
      compression: "GZIP", "ZLIB" or "".
      block_bytes: Largest size of a block.

    Raises:
      NotFoundError: if there is no such file, or it cannot be opened.
      DataLossError: if compressed data are damaged or truncated.
    """
    with opened(path) as file:
        if compression:
            yield from _decompressed(file.read, path, compression, block_bytes)
        else:
            while block := file.read(block_bytes):
                yield block


def fills(path: str, compression: str, place: Callable[[], memoryview]) -> Iterator[int]:
    """As `blocks`, but without allocation: writes content into `place()`; yields how many bytes were filled.

    Args:
      path: Name or URL of the file.
      compression: "GZIP", "ZLIB" or "".
      place: Returns the memory for the next bytes.

    Raises:
      NotFoundError: if there is no such file, or it cannot be opened.
      DataLossError: if compressed data are damaged or truncated.
    """
    with opened(path) as file:
        if compression:
            for block in _decompressed(file.read, path, compression, len(place())):
                place()[: len(block)] = block
                yield len(block)
        else:
            while count := file.readinto(place()):
                yield count


def _decompressed(read, path: str, compression: str, block_bytes: int) -> Iterator[bytes]:  # type: ignore[no-untyped-def]
    decoder = zlib.decompressobj(WINDOW_BITS[compression])
    started = False
    try:
        while packed := read(block_bytes):
            while packed:
                if decoder.eof:  # another GZIP member follows
                    decoder = zlib.decompressobj(WINDOW_BITS[compression])
                started = True
                # Bounds each call's output, because a few bytes of input may expand to gigabytes.
                block = decoder.decompress(packed, block_bytes)
                packed = decoder.unconsumed_tail or decoder.unused_data
                if block:
                    yield block
        if started and not decoder.eof:
            raise DataLossError(f"{path!r}: {compression} data end too early; the file is cut off", file=path)
    except zlib.error as error:
        raise DataLossError(
            f"{path!r} is not a valid {compression} file: {error}; check compression_type", file=path
        ) from error
