"""What readers are compared with: a few lines each, of which one sees that they are right."""

from __future__ import annotations

import struct
import zlib

from workbench.io.checksums import masked_crc32c


class Damaged(Exception):
    """The input cannot be read on from here."""


def records(data: bytes) -> tuple[list[bytes], bool]:
    """The records of a TFRecord file up to the first damage, and whether there is one."""
    found, position = [], 0
    while position < len(data):
        if len(data) - position < 12:
            return found, True  # strict=True
        (length,) = struct.unpack_from("<Q", data, position)
        (crc,) = struct.unpack_from("<I", data, position + 8)
        start, stop = position + 12, position + 12 + length
        if masked_crc32c(data[position : position + 8]) != crc or stop + 4 > len(data):
            return found, True
        if data[stop : stop + 4] != struct.pack("<I", masked_crc32c(data[start:stop])):
            return found, True
        found.append(data[start:stop])
        position = stop + 4
    return found, False


def unpacked(data: bytes, window_bits: int) -> bytes:
    """What compressed data hold.

    Raises:
      Damaged: if they cannot be decompressed to the end.
    """
    result = b""
    while data:
        decoder = zlib.decompressobj(window_bits)
        try:
            result += decoder.decompress(data)
        except zlib.error as error:
            raise Damaged from error
        if not decoder.eof:
            raise Damaged
        data = decoder.unused_data
    return result


def lines(data: bytes) -> list[bytes]:
    """The lines of a text file, as tf.data has them."""
    found = [line.replace(b"\r", b"") for line in data.split(b"\n")]
    return found if data and not data.endswith(b"\n") else found[:-1]


def pieces(data: bytes, size: int, header: int, footer: int) -> list[bytes] | None:
    """The records of a file of fixed-length records; None if it has another length."""
    body = len(data) - header - footer
    if not data and not header and not footer:
        return []
    if body < 0 or body % size:
        return None
    return [data[start : start + size] for start in range(header, header + body, size)]
