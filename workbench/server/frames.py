"""Messages between a job and the Jupyter server: JSON after a four-byte length. Nothing is ever unpickled."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, Final

_HEADER: Final = struct.Struct("<I")
MAX_REQUEST_BYTES: Final = 16 * 1024
"""The longest message that a job reads."""
MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""The longest message that the server reads."""


def encode(message: dict[str, Any]) -> bytes:
    """A message in the form that is sent."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return _HEADER.pack(len(body)) + body


class Requests:
    """Splits the bytes that arrive at a job's socket into messages.

    `receive` reads once: half a message never blocks a thread that waits until the socket is readable.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = b""

    def receive(self) -> list[dict[str, Any]]:
        """The complete messages.

        Raises:
          ConnectionError: if the other end is gone.
          ValueError: if the bytes are not a message.
        """
        data = self._sock.recv(MAX_REQUEST_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._buffer += data
        messages = []
        while len(self._buffer) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer)
            if size > MAX_REQUEST_BYTES:
                raise ValueError(f"a request of {size} bytes, more than {MAX_REQUEST_BYTES}")
            end = _HEADER.size + size
            if len(self._buffer) < end:
                break
            messages.append(_decode(self._buffer[_HEADER.size : end]))
            self._buffer = self._buffer[end:]
        return messages


async def read(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next message of a job.

    Raises:
      asyncio.IncompleteReadError: if the job is gone.
      ValueError: if the bytes are not a message.
    """
    (size,) = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    if size > MAX_ANSWER_BYTES:
        raise ValueError(f"a message of {size} bytes, more than {MAX_ANSWER_BYTES}")
    return _decode(await reader.readexactly(size))


def _decode(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except RecursionError as error:
        raise ValueError("not a message: it is nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message
