"""Frames arrive as they were sent, whatever their sizes and however the kernel divides them."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Security

from workbench.runtime.services.frames import HEAD, Received, pack, put, receive, send, unpack

_ARRAYS = {
    "none": [],
    "a scalar, and one without elements": [np.float32(3.0).reshape(()), np.empty((0, 4), np.int16)],
    "small": [np.arange(7, dtype=np.int64), np.arange(12.0).reshape(3, 4).T],
    "in pieces": [np.arange(20_000, dtype=np.float32).reshape(100, 200)[:, ::2], np.array([True, False])],
    "larger than buffers": [np.arange(1_500_000, dtype=np.float32), np.arange(3)],
    "many": [np.full(100, number) for number in range(200)],
}


def _plain() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def _encrypted() -> tuple[socket.socket, socket.socket]:
    security = Security.temporary()
    listening = security.get_listen_args("worker")["ssl_context"]
    connecting = security.get_connection_args("worker")["ssl_context"]
    one, other = socket.socketpair()
    accepted: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: accepted.append(listening.wrap_socket(one, server_side=True)))
    thread.start()
    connected = connecting.wrap_socket(other)
    thread.join(20)
    return accepted[0], connected


@pytest.fixture(scope="module", params=[_plain, _encrypted], ids=["plain", "TLS"])
def ends(request: Any) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection."""
    one, other = request.param()
    with one, other:
        yield one, other


@pytest.mark.parametrize("arrays", _ARRAYS.values(), ids=_ARRAYS)
def test_a_frame_arrives_as_it_was_sent(ends: tuple[socket.socket, socket.socket], arrays: list[Any]) -> None:
    sender, receiver = ends
    fields = {"method": "update", "key": "w@1", "number": 3}
    thread = threading.Thread(target=send, args=(sender, fields, arrays))
    thread.start()
    try:
        found, values = receive(receiver)
    finally:
        thread.join(20)

    assert found == fields
    assert [(v.dtype, v.shape) for v in values] == [(a.dtype, a.shape) for a in arrays]
    for value, array in zip(values, arrays, strict=True):
        np.testing.assert_array_equal(value, array)
        assert value.flags.aligned


@pytest.mark.parametrize("arrays", _ARRAYS.values(), ids=_ARRAYS)
def test_a_frame_that_came_is_passed_on_as_it_is_unless_its_arrays_are_others(arrays: list[Any]) -> None:
    frame = b"".join(pack({"a": 1}, arrays))
    sender, receiver = _plain()
    with sender, receiver:
        thread = threading.Thread(target=sender.sendall, args=(frame,))
        thread.start()
        try:
            fields, values = receive(receiver)
        finally:
            thread.join(20)

    assert isinstance(fields, Received)
    assert pack(fields, values) is fields.pieces
    assert b"".join(fields.pieces) == frame
    assert b"".join(pack({**fields}, values)) == frame
    others = [np.arange(5)]
    assert b"".join(pack(fields, others)) == b"".join(pack({"a": 1}, others))


_DAMAGED = {
    "more than one object": (b'{"a":1}xx', 0, "Extra data"),
    "a list": (b"[1]", 0, "is a list, not a JSON object"),
    "nothing": (b"", 0, "Expecting value"),
    "nested without end": (b"[" * 100_000, 0, "RecursionError"),
    "an unknown dtype": (b'{"arrays":[["nonsense",[1]]]}', 64, "TypeError"),
    "a dtype of objects": (b'{"arrays":[["|O",[1]]]}', 64, "OBJECT"),
    "a dtype that is no text": (b'{"arrays":[[null,[1]]]}', 64, "a dtype is None"),
    "a size below 0": (b'{"arrays":[["<f8",[-1]]]}', 64, r"the shape \[-1\]"),
    "a size that is no number": (b'{"arrays":[["<f8",["a"]]]}', 64, "TypeError"),
    "an array that is not there": (b'{"arrays":[["<f8",[9]]]}', 64, "ValueError"),
    "bytes of no array": (b'{"arrays":[["<f8",[8]]]}', 128, "have 64 bytes, and 128 came"),
    "no list of arrays": (b'{"arrays":3}', 0, "TypeError"),
}


@pytest.mark.parametrize(("header", "payload_bytes", "message"), _DAMAGED.values(), ids=_DAMAGED)
def test_what_is_no_frame_is_a_broken_connection(header: bytes, payload_bytes: int, message: str) -> None:
    sender, receiver = _plain()
    with sender, receiver:
        padded = header + b" " * (-len(header) % 64)
        sender.sendall(HEAD.pack(len(padded), payload_bytes) + padded + bytes(payload_bytes))
        with pytest.raises(ConnectionError, match=f"a frame is damaged: .*{message}"):
            receive(receiver)
    with pytest.raises(ValueError, match=message):
        unpack(padded, memoryview(bytes(payload_bytes)))


@pytest.mark.parametrize(
    ("header_bytes", "payload_bytes"), [(1 << 31, 0), (64, 1 << 62), (64, (1 << 64) - 1)]
)
def test_a_frame_that_claims_more_than_there_can_be_is_refused(header_bytes: int, payload_bytes: int) -> None:
    sender, receiver = _plain()
    with sender, receiver:
        sender.sendall(HEAD.pack(header_bytes, payload_bytes) + b"{}".ljust(64))
        with pytest.raises(ConnectionError, match="a frame claims"):
            receive(receiver)


@pytest.mark.parametrize("most", [1, 13, 512, 100_000])
def test_pieces_are_written_however_little_is_taken_at_once(most: int) -> None:
    pieces = pack({"a": 1}, _ARRAYS["in pieces"])
    written = bytearray()

    def write(views: Any) -> int:
        some = b"".join(views)[:most]
        written.extend(some)
        return len(some)

    assert put(pieces, write) == len(written)
    assert bytes(written) == b"".join(pieces)
    header_bytes, payload_bytes = HEAD.unpack(written[: HEAD.size])
    assert len(written) == HEAD.size + header_bytes + payload_bytes
    assert json.loads(written[HEAD.size : HEAD.size + header_bytes])["a"] == 1
