"""CRC-32C, and its masked form in record files."""

from __future__ import annotations

from typing import Any

import crc32c as library
import numpy as np

_MASK_DELTA = 0xA282EAD8
Words = np.ndarray[Any, np.dtype[np.uint32]]


def crc32c(data: Any, so_far: int = 0) -> int:
    """CRC-32C (Castagnoli) of bytes, a bytearray, a memoryview or a contiguous array; continues from `so_far`."""
    return library.crc32c(data, so_far)


def masked_crc32c(data: Any) -> int:
    """CRC-32C of `data`, rotated by 15 bits and shifted by a constant, as TFRecord files store it."""
    crc = library.crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crcs(records: list[bytes]) -> Words:
    """The masked CRC-32C of each record, uint32, shape `(len(records),)`."""
    crcs = np.fromiter(map(library.crc32c, records), np.uint32, len(records))
    return ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(_MASK_DELTA)
