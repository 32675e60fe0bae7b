"""Requests and replies: a JSON object and bytes in a frame, over TCP or TLS, after a token was checked.

u32 header bytes | u64 payload bytes | CRC-32C of those 12 bytes | CRC-32C of header and payload | header | payload

Until the peer has shown the token, only one short line of JSON is read. Frames are never unpickled here.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import time
from hmac import compare_digest
from typing import Any

from workbench import forks
from workbench.data.service.address import Address, Tls
from workbench.errors import DataCorruption, FailedPreconditionError, UnavailableError
from workbench.io.checksums import crc32c

Fields = dict[str, Any]
_SIZES = struct.Struct("<IQ")
_HEAD = struct.Struct("<IQII")
_MOST_HEADER_BYTES = 64 * 1024 * 1024
_HELLO = "workbench data service 2"
_MOST_HELLO_BYTES = 1024
HELLO_SECONDS = 5.0
"""How long a peer may take to connect and show its token."""
REPLY_SECONDS = 60.0
"""How long a reply may take, in addition to the requested wait."""


class Connection:
    """One end of an open connection. Each end is used by one thread at a time; any thread may `close`."""

    def __init__(self, sock: socket.socket, peer: str) -> None:
        """Takes over a socket.

        Args:
          sock: The socket; its peer has been admitted.
          peer: The other end's name in errors, such as "the data worker at 10.0.0.7:5050".
        """
        self._sock = forks.descriptor(sock)
        self._peer = peer
        self._received = 0

    def send(self, fields: Fields, payload: bytes = b"") -> None:
        """Sends one frame.

        Raises:
          OSError: if the peer is gone, or receives nothing for long.
        """
        header = json.dumps(fields, separators=(",", ":")).encode()
        self._sock.settimeout(REPLY_SECONDS)
        sizes = _SIZES.pack(len(header), len(payload))
        data = _HEAD.pack(len(header), len(payload), crc32c(sizes), crc32c(payload, crc32c(header))) + header
        if len(payload) < 65536:
            self._sock.sendall(data + payload)
        else:
            self._sock.sendall(data)
            self._sock.sendall(payload)

    def receive(self, timeout_seconds: float | None) -> tuple[Fields, bytes]:
        """The next frame; None waits until the peer sends one or disconnects.

        Raises:
          OSError: if the peer is gone, or nothing arrives in time, or something other than a frame.
          DataCorruption: if the frame was damaged in transit; nothing more can be received then.
        """
        self._sock.settimeout(timeout_seconds)
        head = self._exactly(_HEAD.size)
        self._sock.settimeout(REPLY_SECONDS)
        header_bytes, payload_bytes, sizes_crc, body_crc = _HEAD.unpack(head)
        self._check(crc32c(head[: _SIZES.size]), sizes_crc)
        if header_bytes > _MOST_HEADER_BYTES:
            raise ConnectionError(f"a frame claims a header of {header_bytes:,} bytes")
        header, payload = self._exactly(header_bytes), self._exactly(payload_bytes)
        self._check(crc32c(payload, crc32c(header)), body_crc)
        self._received += 1
        try:
            fields = json.loads(header)
        except (ValueError, RecursionError) as error:  # text, or nested too deeply
            raise ConnectionError(f"the header of a frame is damaged: {error}") from error
        if not isinstance(fields, dict):
            raise ConnectionError(f"the header of a frame is {type(fields).__name__}, not an object")
        return fields, payload

    def _check(self, found: int, sent: int) -> None:
        if found != sent:
            raise DataCorruption(
                f"frame {self._received} from {self._peer} changed on its way: the CRC-32C of what came is "
                f"{found:08x}, of what was sent {sent:08x}. Nothing of it was used; read again, and if that happens "
                "more than once, check memory and network of both machines",
                record=self._received,
            )

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            part = self._sock.recv(min(count, 1 << 20))
            if not part:
                raise ConnectionError("the peer closed the connection")
            parts.append(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def wake(self) -> None:
        """Ends the connection for a thread that waits on it, which then closes it."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes this end; by the thread that uses it."""
        self.wake()
        self._sock.close()


def connect(address: Address, tls: Tls | None, what: str, timeout_seconds: float) -> Connection:
    """Connects to a server and shows the token.

    Args:
      address: The server.
      tls: How to check its certificate, None without TLS.
      what: Its name in errors.
      timeout_seconds: How long connecting may take.

    Raises:
      OSError: if there is no answer in time, or the certificate is not valid.
      FailedPreconditionError: if the server rejects the token.
    """
    timeout = min(timeout_seconds, HELLO_SECONDS)
    sock = socket.create_connection((address.host, address.port), timeout)
    try:
        if tls is not None:
            sock = tls.client().wrap_socket(sock, server_hostname=address.host)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(json.dumps({"hello": _HELLO, "token": address.token}).encode() + b"\n")
        verdict = _line(sock, time.monotonic() + timeout).get("verdict")
        if verdict != "ok":
            raise FailedPreconditionError(
                f"the data service at {address} refused this client: {verdict}; use the address that the dispatcher "
                f"prints, dispatcher.target, with its token (a dispatcher without work_dir has another one after each "
                f"start)"
            )
        return Connection(sock, f"the {what} at {address}")
    except ssl.SSLCertVerificationError as error:
        sock.close()
        raise FailedPreconditionError(f"the certificate of {address} is not valid: {error}") from error
    except BaseException:
        sock.close()
        raise


def accepted(sock: socket.socket, token: str, context: ssl.SSLContext | None) -> Connection:
    """The connection of a client that has shown the token.

    Args:
      sock: A socket that was just accepted.
      token: The secret.
      context: TLS of the server; None without TLS.

    Raises:
      OSError: if the client is a stranger, slow, or gone.
    """
    deadline = time.monotonic() + HELLO_SECONDS
    sock.settimeout(HELLO_SECONDS)
    if context is not None:
        sock = context.wrap_socket(sock, server_side=True)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = _line(sock, deadline)
        right = compare_digest(str(hello.get("token")).encode(errors="surrogatepass"), token.encode())
        verdict = "ok" if right else "wrong token"
        if right and hello.get("hello") != _HELLO:
            verdict = f"it speaks {hello.get('hello')!r}, this is {_HELLO!r}"
        sock.sendall(json.dumps({"verdict": verdict}).encode() + b"\n")
        if verdict != "ok":
            raise PermissionError(verdict)
    except BaseException:
        sock.close()
        raise
    return Connection(sock, "a client")


def _line(sock: socket.socket, deadline: float) -> Fields:
    """Reads one line with a JSON object, and not a byte more."""
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(line) > _MOST_HELLO_BYTES:
            raise UnavailableError("the peer did not identify itself in time")
        sock.settimeout(left)
        part = sock.recv(1)  # exactly the line, because frames follow
        if not part:
            raise UnavailableError("the peer ended the connection before it identified itself")
        line += part
    try:
        hello = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnavailableError("the peer is not a data service") from error
    if not isinstance(hello, dict):
        raise UnavailableError("the peer is not a data service")
    return hello
