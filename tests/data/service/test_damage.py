"""Damaged frames and blocks of the data service: errors, and no memory for what they claim."""

from __future__ import annotations

import json
import struct
from typing import Any, cast

import numpy as np
import pytest

import workbench as wb
from tests.data.service.servers import service
from tests.fuzz.service import Wire
from workbench.data.service.blocks import packed, unpacked
from workbench.data.service.wire import Connection
from workbench.data.structure import flatten
from workbench.data.tables import ListTable, Run
from workbench.errors import DataCorruption, DataLossError
from workbench.io.checksums import crc32c

STRUCTURE = flatten((np.int64(0),))[1]
RUN = Run(ListTable([[np.int64(n)] for n in range(9)], STRUCTURE), range(9))


def frame(header: bytes, payload: bytes = b"", *, claims: int | None = None) -> bytes:
    """A frame whose checksums are right."""
    sizes = struct.pack("<IQ", len(header), len(payload) if claims is None else claims)
    return sizes + struct.pack("<II", crc32c(sizes), crc32c(header + payload)) + header + payload


def received(data: bytes) -> tuple[Any, bytes]:
    return Connection(cast(Any, Wire(data)), "the data worker at grpc://there:5050").receive(1.0)


def test_frames_lie_as_the_module_says() -> None:
    wire = Wire()
    Connection(cast(Any, wire), "the peer").send({"a": [1]}, b"payload")
    assert wire.sent == frame(b'{"a":[1]}', b"payload")
    assert received(wire.sent) == ({"a": [1]}, b"payload")


def test_each_flipped_bit_of_a_frame_is_found_and_says_which_frame_of_whom() -> None:
    whole = frame(b'{"a":[1]}', b"payload")
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        connection = Connection(
            cast(Any, Wire(whole + bytes(damaged))), "the data worker at grpc://there:5050"
        )
        assert connection.receive(1.0) == ({"a": [1]}, b"payload")
        with pytest.raises(
            DataCorruption, match=r"frame 1 from the data worker at grpc://there:5050 changed on its way"
        ) as caught:
            connection.receive(1.0)
        assert caught.value.record == 1


def _flips_a_bit(monkeypatch: pytest.MonkeyPatch, field: str, value: Any = None) -> None:
    """Flips the last bit of the next frame with such a field on its way."""
    send, left = Connection.send, [1]

    def damaged(self: Connection, fields: Any, payload: bytes = b"") -> None:
        if not left or field not in fields or value not in (None, fields[field]):
            send(self, fields, payload)
            return
        left.pop()
        wire = Wire()
        send(Connection(cast(Any, wire), ""), fields, payload)
        self._sock.sendall(wire.sent[:-1] + bytes([wire.sent[-1] ^ 1]))

    monkeypatch.setattr(Connection, "send", damaged)


def test_elements_that_change_on_their_way_are_refused_and_name_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with service(1) as target:
        dataset = wb.data.Dataset.range(2000).apply(wb.data.service.distribute("distributed_epoch", target))
        (worker,) = wb.data.service.status(target).workers
        _flips_a_bit(monkeypatch, "segments")
        with pytest.raises(
            DataCorruption, match=rf"frame \d+ from the data worker at grpc://{worker.address} changed"
        ):
            list(dataset)
        assert sorted(map(int, dataset)) == list(range(2000))  # another pass


def test_a_request_that_changes_on_its_way_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with service(1) as target:
        dataset = wb.data.Dataset.range(9).apply(wb.data.service.distribute("distributed_epoch", target))
        _flips_a_bit(monkeypatch, "method", "fetch")
        with pytest.raises(DataCorruption, match=r"frame 0 from a client changed"):
            list(dataset)


@pytest.mark.parametrize("header", [b"\xff", b"{", b"[1]", b"7", b"[" * 100_000])
def test_a_frame_with_a_damaged_header_ends_the_connection(header: bytes) -> None:
    with pytest.raises(ConnectionError, match="header"):
        received(frame(header))


def test_a_frame_that_claims_more_than_comes_takes_no_memory_for_it() -> None:
    with pytest.raises(ConnectionError, match="closed"):
        received(frame(b"{}", bytes(100), claims=1 << 60))


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
