"""Reading a file block by block, through GZIP or ZLIB if asked."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from workbench.errors import DataLossError, NotFoundError
from workbench.io.compression import WINDOW_BITS

DEFAULT_BLOCK_BYTES = 1 << 18


def blocks(path: str, compression: str, block_bytes: int) -> Iterator[bytes]:
    """The content of a file in blocks of about `block_bytes`, decompressed.

    Raises:
      NotFoundError: if there is no such file.
      DataLossError: if compressed data are damaged or cut off.
    """
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed below; opening has errors of its own
    except FileNotFoundError:
        raise NotFoundError(f"no file {path!r}; check the path as seen by the host that reads it") from None
    except OSError as error:
        raise NotFoundError(f"cannot open {path!r}: {error}") from error
    with file:
        if compression:
            yield from _decompressed(file.read, path, compression, block_bytes)
        else:
            while block := file.read(block_bytes):
                yield block


def _decompressed(read, path: str, compression: str, block_bytes: int) -> Iterator[bytes]:  # type: ignore[no-untyped-def]
    decoder = zlib.decompressobj(WINDOW_BITS[compression])
    started = False
    try:
        while packed := read(block_bytes):
            while packed:
                if decoder.eof:  # another GZIP member follows
                    decoder = zlib.decompressobj(WINDOW_BITS[compression])
                started = True
                # A bounded output per call: a few bytes of input may stand for gigabytes.
                block = decoder.decompress(packed, block_bytes)
                packed = decoder.unconsumed_tail or decoder.unused_data
                if block:
                    yield block
        if started and not decoder.eof:
            raise DataLossError(f"{path!r}: {compression} data end too early; the file is cut off")
    except zlib.error as error:
        raise DataLossError(
            f"{path!r} is no valid {compression} file: {error}; check compression_type"
        ) from error
