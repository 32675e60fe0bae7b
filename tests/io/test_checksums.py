"""CRC-32C as published, its masked form, and the buffers that it takes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.io.checksums import masked_crcs


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # these three: RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_checksums_are_the_published_ones(data: bytes, crc: int) -> None:
    assert wb.io.crc32c(data) == crc


def test_checksums_are_those_of_record_files() -> None:
    assert wb.io.masked_crc32c(b"") == 0xA282EAD8
    assert wb.io.masked_crc32c(struct.pack("<Q", 2)) == int.from_bytes(b"\x78\x27\x0b\x34", "little")


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_every_buffer_is_taken(kind: type) -> None:
    assert wb.io.crc32c(kind(b"123456789")) == 0xE3069283


@given(st.lists(st.binary(max_size=30)))
def test_many_checksums_are_those_of_each_record(records: list[bytes]) -> None:
    assert masked_crcs(records).tolist() == [wb.io.masked_crc32c(record) for record in records]
