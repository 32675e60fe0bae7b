"""Damaged frames and blocks of the data service: errors, and no memory for what they claim."""

from __future__ import annotations

import json
import struct
from typing import Any, cast

import numpy as np
import pytest

from tests.fuzz.service import Wire
from workbench.data.service.blocks import packed, unpacked
from workbench.data.service.wire import Connection
from workbench.data.structure import flatten
from workbench.data.tables import ListTable, Run
from workbench.errors import DataLossError

STRUCTURE = flatten((np.int64(0),))[1]
RUN = Run(ListTable([[np.int64(n)] for n in range(9)], STRUCTURE), range(9))


@pytest.mark.parametrize("header", [b"\xff", b"{", b"[1]", b"7", b"[" * 100_000])
def test_a_frame_with_a_damaged_header_ends_the_connection(header: bytes) -> None:
    wire = cast(Any, Wire(struct.pack("<IQ", len(header), 0) + header))
    with pytest.raises(ConnectionError, match="header"):
        Connection(wire).receive(1.0)


def test_a_frame_that_claims_more_than_comes_takes_no_memory_for_it() -> None:
    wire = cast(Any, Wire(struct.pack("<IQ", 2, 1 << 60) + b"{}" + bytes(100)))
    with pytest.raises(ConnectionError, match="closed"):
        Connection(wire).receive(1.0)


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 1 << 50},
        {"bytes": -1},
        {"bytes": 1 << 80},
        {"bytes": "72"},
        {"count": 8},
        {"count": 1 << 60},
        {"count": 1 << 60, "bytes": 0, "columns": []},
        {"columns": [{"dtype": "<i8, <i8(", "shape": []}]},
        {"compression": "LZMA"},
        {"compression": []},
    ],
    ids=str,
)
def test_a_block_that_claims_what_it_does_not_hold_is_refused(
    compression: str, change: dict[str, Any]
) -> None:
    (segment,), block = packed([RUN], compression)
    (size,) = struct.unpack_from("<I", block)
    header = json.dumps({**json.loads(block[4 : 4 + size]), **change}).encode()
    damaged = struct.pack("<I", len(header)) + header + block[4 + size :]
    with pytest.raises(DataLossError, match="worker tcp://there"):
        unpacked([{**segment, "bytes": len(damaged)}], damaged, STRUCTURE, "tcp://there")


@pytest.mark.parametrize("segment", [{}, [], 7, {"error": "ValueError"}, {"count": 9, "bytes": 1.5}])
def test_segments_that_describe_nothing_are_refused(segment: Any) -> None:
    with pytest.raises(DataLossError, match="worker tcp://there is damaged"):
        unpacked([segment], packed([RUN], "")[1], STRUCTURE, "tcp://there")
