"""Texts in the metadata of a Parquet file, behind a checksum: Parquet protects its pages against damage only."""

from __future__ import annotations

import zlib

from workbench.errors import DataCorruption


def sealed(text: bytes) -> bytes:
    """The text behind its checksum."""
    return b"%08x %s" % (zlib.crc32(text), text)


def opened(data: bytes, what: str) -> bytes:
    """The inverse of `sealed`.

    Args:
      data: The bytes that were found.
      what: What to call it in an error.

    Raises:
      DataCorruption: if it is damaged.
    """
    checksum, _, text = data.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise DataCorruption(f"{what} fails its checksum")
    return text
