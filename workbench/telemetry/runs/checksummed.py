"""Texts with a checksum, for the metadata of a Parquet file: Parquet protects only its pages against damage."""

from __future__ import annotations

import zlib

from workbench.errors import DataCorruption


def sealed(text: bytes) -> bytes:
    """The text with its checksum in front."""
    return b"%08x %s" % (zlib.crc32(text), text)


def opened(data: bytes, what: str) -> bytes:
    """The inverse of `sealed`.

    Args:
      data: The bytes that were read.
      what: Its name in an error.

    Raises:
      DataCorruption: if it is damaged.
    """
    checksum, _, text = data.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise DataCorruption(f"{what} fails its checksum")
    return text
