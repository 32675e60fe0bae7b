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

from workbench.runtime.services.frames import HEAD, Received, pack, put, receive, send

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


@pytest.mark.parametrize(
    ("header", "message"),
    [(b'{"a":1}xx', "Extra data"), (b"[1]", "is a list, not a JSON object"), (b"", "Expecting value")],
)
def test_what_is_not_one_json_object_is_no_header(header: bytes, message: str) -> None:
    sender, receiver = _plain()
    with sender, receiver:
        padded = header.ljust(64)
        sender.sendall(HEAD.pack(len(padded), 0) + padded)
        with pytest.raises(ValueError, match=message):
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
