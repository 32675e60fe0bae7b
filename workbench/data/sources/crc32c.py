"""The masked CRC-32C that record files carry; computed by a fast library if there is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast


def masked_crc32c(data: bytes) -> int:
    """CRC-32C of `data`, rotated and moved by a constant, as record files store it."""
    crc = _crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE = _table()


def _plain_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _fastest() -> Callable[[bytes], int]:
    try:
        return cast(Callable[[bytes], int], importlib.import_module("google_crc32c").value)
    except ImportError:  # optional: pip install google-crc32c makes reading records many times faster
        return _plain_crc32c


_crc32c = _fastest()
