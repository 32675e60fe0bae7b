"""Frames between processes: a JSON object and raw arrays. Reading one executes nothing.

u32 header bytes | u64 payload bytes | header, padded with spaces to 64 bytes | arrays, each padded to 64 bytes
"""

from __future__ import annotations

import json
import math
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from workbench import errors
from workbench.errors import UnknownError, WorkbenchError

Fields = dict[str, Any]
Array = np.ndarray[Any, Any]
HEAD: Final = struct.Struct("<IQ")
_MOST_HEADER_BYTES: Final = 64 * 1024 * 1024
_ALIGNED_BYTES: Final = 64
_JOINED_BYTES: Final = 8 * 1024
"""Smaller frames are sent in one piece, because copying them is faster than passing a list of pieces to the kernel."""
_AT_ONCE_BYTES: Final = 256 * 1024
"""Smaller bodies are received in one piece, and sent through TLS in one piece."""
_MOST_PIECES: Final = 64
_ARRAYS: Final = "arrays"
# Created once: `json.dumps` would create an encoder for each frame, and `json.loads` would guess the encoding.
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_FROM_JSON: Final = json.JSONDecoder()


class Received(dict[str, Any]):
    """The fields of a received frame, with its bytes, so that it can be forwarded without packing it again.

    Neither it nor its arrays may be changed, because `pack` forwards the received bytes.

    Attributes:
      arrays: The arrays of the frame.
      pieces: The whole frame.
    """

    __slots__ = ("arrays", "pieces")
    arrays: list[Array]
    pieces: list[bytes | memoryview]


def pack(fields: Fields, arrays: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """Packs a frame, in pieces, so that large arrays are not copied.

    Args:
      fields: Values that JSON can represent.
      arrays: Arrays of numbers, bools or fixed-length strings; not of objects.
    """
    if isinstance(fields, Received) and arrays is fields.arrays:
        return fields.pieces
    payload: list[bytes | memoryview] = []
    described, total = [], 0
    for array in arrays:
        if not array.flags.c_contiguous:
            array = array.copy("C")
        described.append([_dtype_name(array.dtype), array.shape])
        nbytes = array.nbytes
        payload.append(array.reshape(-1).view(np.uint8).data if nbytes else b"")
        if gap := -nbytes % _ALIGNED_BYTES:
            payload.append(bytes(gap))
        total += nbytes + gap
    header = _JSON.encode({**fields, _ARRAYS: described} if described else fields).encode()
    header += b" " * (-len(header) % _ALIGNED_BYTES)  # so that the arrays after it are aligned, too
    pieces = [HEAD.pack(len(header), total), header, *payload]
    return [b"".join(pieces)] if total < _JOINED_BYTES else pieces


def unpack(header: bytes | memoryview, payload: memoryview) -> tuple[Fields, list[Array]]:
    """The inverse of `pack`; the arrays are views of `payload`.

    Raises:
      ValueError: if the header is not one JSON object, or does not match the payload.
    """
    try:
        fields: Fields = _FROM_JSON.decode(str(header, "ascii"))
        if not isinstance(fields, dict):
            raise ValueError(f"its header is a {type(fields).__name__}, not a JSON object")
        arrays, offset = [], 0
        for name, shape in fields.pop(_ARRAYS, ()):
            if type(name) is not str:  # NumPy would accept other types as dtypes
                raise ValueError(f"a dtype is {name!r:.60}")
            dtype = np.dtype(name)
            count = math.prod(shape)
            if count < 0:  # NumPy checks everything else
                raise ValueError(f"an array has the shape {shape!r:.60}")
            arrays.append(np.frombuffer(payload, dtype, count, offset).reshape(shape))
            offset += -(-count * dtype.itemsize // _ALIGNED_BYTES) * _ALIGNED_BYTES
        if offset != len(payload):
            raise ValueError(f"its arrays have {offset:,} bytes, and {len(payload):,} came")
    except Exception as error:  # damaged bytes make JSON and NumPy raise almost any error
        raise ValueError(f"a frame is damaged: {type(error).__name__}: {error!s:.200}") from error
    return fields, arrays


def put(pieces: Sequence[bytes | memoryview], write: Callable[[Sequence[bytes | memoryview]], int]) -> int:
    """Writes all pieces of a frame, several per call.

    Args:
      pieces: The result of `pack`.
      write: Writes the first bytes of its argument and returns how many.

    Returns:
      The number of bytes written.
    """
    total = sum(map(len, pieces))
    done = write(pieces[:_MOST_PIECES])
    if done == total:  # the case for nearly all frames
        return total
    left = [memoryview(piece) for piece in pieces]
    while True:
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if not left:
            return total
        left[0] = left[0][done:]
        done = write(left[:_MOST_PIECES])


def send(sock: socket.socket, fields: Fields, arrays: Sequence[Array] = ()) -> None:
    """Sends a frame.

    Args:
      sock: A connected socket.
      fields: The fields of the frame.
      arrays: Arrays that follow the fields, sent without a copy.

    Raises:
      OSError: if the peer is gone, or accepts nothing within the socket's timeout.
    """
    pieces = pack(fields, arrays)
    if len(pieces) > 1 and not isinstance(sock, ssl.SSLSocket):
        put(pieces, sock.sendmsg)
    elif sum(map(len, pieces)) < _AT_ONCE_BYTES:
        sock.sendall(b"".join(pieces))
    else:
        for piece in pieces:
            if len(piece):
                sock.sendall(piece)


def receive(sock: socket.socket) -> tuple[Fields, list[Array]]:
    """Receives the next frame.

    Raises:
      OSError: if the peer is gone, nothing arrives within the socket's timeout, or the bytes are not a frame; the
        socket is then unusable.
    """
    head = sock.recv(HEAD.size)
    if len(head) < HEAD.size:
        head += _exactly(sock, HEAD.size - len(head))
    header_bytes, payload_bytes = HEAD.unpack(head)
    if header_bytes > _MOST_HEADER_BYTES:
        raise ConnectionError(f"a frame claims a header of {header_bytes:,} bytes")
    if payload_bytes < _AT_ONCE_BYTES:
        body = [_exactly(sock, header_bytes + payload_bytes)]
        parts = body[0][:header_bytes], body[0][header_bytes:]
    else:
        body = [_exactly(sock, header_bytes), _exactly(sock, payload_bytes)]
        parts = body[0], body[1]
    try:
        fields, arrays = unpack(*parts)
    except ValueError as error:
        raise ConnectionError(str(error)) from error
    received = Received(fields)
    received.arrays, received.pieces = arrays, [head, *body]
    return received, arrays


def error_fields(error: BaseException) -> Fields:
    """Encodes an error for a reply."""
    return {"kind": type(error).__name__, "message": str(error)}


def raised_by(fields: Fields) -> WorkbenchError:
    """Decodes an error encoded by `error_fields`; other kinds become `UnknownError`."""
    kind = getattr(errors, str(fields["kind"]), None)
    if isinstance(kind, type) and issubclass(kind, WorkbenchError):
        return kind(str(fields["message"]))
    return UnknownError(f"{fields['kind']}: {fields['message']}")


def _exactly(sock: socket.socket, count: int) -> memoryview:
    try:
        body, done = np.empty(count, np.uint8).data, 0
    except (MemoryError, ValueError) as error:
        raise ConnectionError(f"a frame claims {count:,} bytes, more than fit into memory") from error
    while done < count:
        part = sock.recv_into(body[done:])
        if not part:
            raise ConnectionError("the peer closed the connection")
        done += part
    return body


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.kind == "V" else dtype.str
