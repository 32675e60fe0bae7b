"""The files of a case, written into its scratch folder without the help of the library under test."""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.reference.interpreter.codec import Json, as_bytes

_MASK_DELTA = 0xA282EAD8


def write_files(folder: Path, files: Mapping[str, Json]) -> None:
    """Writes each described file: records, a text, raw bytes or an SQLite database."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "sql" in content:
            _write_database(path, content["sql"])
        else:
            path.write_bytes(_compressed(_raw(content), content.get("compression")))


def record_file(records: Iterable[bytes]) -> bytes:
    """The records framed as in a TFRecord file: length, masked CRC of it, data, masked CRC of that."""
    return b"".join(_framed(record) for record in records)


def records_in(raw: bytes) -> list[bytes]:
    """The data of the frames of an uncompressed record file, checksums unchecked."""
    found = []
    while raw:
        (length,) = struct.unpack_from("<Q", raw)
        found.append(raw[12 : 12 + length])
        raw = raw[16 + length :]
    return found


def decompressed(raw: bytes, compression: str | None) -> bytes:
    """`raw` without its compression."""
    match compression:
        case "GZIP":
            return gzip.decompress(raw)
        case "ZLIB":
            return zlib.decompress(raw)
        case _:
            return raw


def masked_crc(data: bytes) -> int:
    """The rotated and shifted CRC-32C that record files carry."""
    crc = _crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _raw(content: Json) -> bytes:
    if "records" in content:
        return record_file(as_bytes(record) for record in content["records"])
    return as_bytes(content["text"]) if "text" in content else base64.b64decode(content["b64"])


def _compressed(raw: bytes, compression: str | None) -> bytes:
    match compression:
        case "GZIP":
            return gzip.compress(raw)
        case "ZLIB":
            return zlib.compress(raw)
        case _:
            return raw


def _write_database(path: Path, statements: Iterable[str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


@functools.cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def _crc32c(data: bytes) -> int:
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
