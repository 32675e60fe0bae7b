"""The two connections of a host in a ring: from the host before it, and to the next one.

Payload flows only forward. The reverse direction of the connection from the host before reports failures to it, even
in the middle of a payload.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from workbench import forks
from workbench.communicators.core.position import Position
from workbench.communicators.core.wake import Wake, wake

_HEADER = struct.Struct("<5q")
_TICK_SECONDS = 0.5  # how often a blocked host checks its state; wake-ups end the wait at once
_PIECE_BYTES = 1024 * 1024
_UNSENT_BYTES = 64 * 1024
_TOGETHER_BYTES = 64 * 1024  # up to this size, copying is cheaper than another packet
_LONGEST_TEXT_BYTES = 65536

CALL, ASKED, FINISHED, FAILED, DATA = range(5)


class Frame(NamedTuple):
    """A message between neighbours; text of `nbytes` bytes follows, for DATA payload.

    Attributes:
      kind: CALL (a replica's call), ASKED (the same in words), FINISHED (it has left the step), FAILED, DATA.
      order: Order of the sender's step.
      seq: Number of the collective in the step; for FINISHED, how many there were.
      value: A fingerprint (CALL), a rank (FINISHED), or the length of the table that precedes the payload (DATA).
      nbytes: Length of the text or payload that follows.
    """

    kind: int
    order: int
    seq: int
    value: int
    nbytes: int = 0


class Duplex:
    """Sends and receives bytes at the same time, and stops when that is in vain. One thread, except `wake`."""

    def __init__(
        self, preceding: socket.socket, following: socket.socket, look: Callable[[Position], None]
    ) -> None:
        """Takes over both connections.

        Args:
          preceding: Connection from the host before.
          following: Connection to the next host.
          look: Called whenever a wait is interrupted; it raises to end the wait.
        """
        self._preceding = forks.descriptor(preceding)
        self._following = forks.descriptor(following)
        self._look = look
        self._wake = Wake()
        self._unsent = bytearray()  # small frames that have not been sent yet
        self._early = bytearray()  # bytes received before something waited for them
        self._whole = True  # whether the last frame has been sent completely
        self._complaint = bytearray()  # what the next host reported about a failure
        self._poll = select.poll()
        self._poll.register(self._wake.read_fd, select.POLLIN)

    @property
    def following_fd(self) -> int:
        """Becomes readable when the next host reports a failure or is gone."""
        return self._following.fileno()

    def watch(self, fds: Sequence[int]) -> None:
        """Makes waits also end when one of `fds` becomes readable."""
        for fd in fds:
            self._poll.register(fd, select.POLLIN)

    def wake(self) -> None:
        """Interrupts a wait. Any thread."""
        wake(self._wake.write_fd)

    def swap(self, position: Position, frame: Frame, text: bytes = b"") -> tuple[Frame, bytes]:
        """Sends a frame to the next host and receives one from the host before."""
        header = bytearray(_HEADER.size)
        self.move(position, memoryview(_HEADER.pack(*frame[:4], len(text)) + text), memoryview(header))
        received = Frame(*_HEADER.unpack(header))
        return received, self._text(position, received)

    def again(self, position: Position) -> tuple[Frame, bytes]:
        """Receives another frame."""
        header = bytearray(_HEADER.size)
        self.move(position, memoryview(b""), memoryview(header))
        received = Frame(*_HEADER.unpack(header))
        return received, self._text(position, received)

    def _text(self, position: Position, frame: Frame) -> bytes:
        if frame.kind == DATA or not frame.nbytes:
            return b""
        if not 0 < frame.nbytes <= _LONGEST_TEXT_BYTES:
            raise ConnectionError(f"a frame claims {frame.nbytes} bytes of text")
        text = bytearray(frame.nbytes)
        self.move(position, memoryview(b""), memoryview(text))
        return bytes(text)

    def move(self, position: Position, outgoing: memoryview, incoming: memoryview) -> None:
        """Sends all bytes of `outgoing` to the next host and fills `incoming` from the host before."""
        if self._early:
            taken = min(len(self._early), len(incoming))
            incoming[:taken] = self._early[:taken]
            del self._early[:taken]
            incoming = incoming[taken:]
        while outgoing or incoming or self._unsent:
            sent = received = 0
            if self._unsent:
                self._flush()
            elif outgoing:
                self._whole = False
                sent = _send(self._following, outgoing)
                outgoing = outgoing[sent:]
                self._whole = not outgoing
            if incoming:
                received = _receive_into(self._preceding, incoming)
                incoming = incoming[received:]
            if not sent and not received and (outgoing or incoming):
                self._wait(position, sending=bool(outgoing or self._unsent), receiving=bool(incoming))
            elif not outgoing and not incoming:
                return  # unsent small frames can wait, because nothing waits for them now

    def begin(self, frame: Frame, payload: memoryview) -> memoryview:
        """Sends a frame and its payload as far as possible without waiting; returns the rest, for `move`."""
        if len(payload) <= _TOGETHER_BYTES:
            payload = memoryview(_HEADER.pack(*frame[:4], 0) + payload)
        else:
            self.post(frame)
        if self._unsent:
            return payload
        payload = payload[_send(self._following, payload) :]
        self._whole = not payload
        return payload

    def post(self, frame: Frame, text: bytes = b"") -> None:
        """Sends a small frame to the next host as far as possible without waiting; the next `move` sends the rest."""
        if self._whole and len(self._unsent) < _UNSENT_BYTES:
            self._unsent += _HEADER.pack(*frame[:4], len(text)) + text
            self._flush()

    def complain(self, text: bytes) -> None:
        """Reports a failure to both neighbours, as far as possible without waiting."""
        self.post(Frame(FAILED, 0, 0, 0), text)
        try:
            _send(self._preceding, memoryview(len(text).to_bytes(4, "little") + text))
            if not self._whole:
                self._following.shutdown(socket.SHUT_WR)  # nothing else ends a payload in the middle
        except OSError:
            pass  # already gone

    def complaint(self) -> bytes | None:
        """The next host's report of a failure; None if there is none, b"" if its connection has ended."""
        try:
            data = self._following.recv(_LONGEST_TEXT_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError:
            return b""
        if not data:
            return b""
        self._complaint += data
        length = int.from_bytes(self._complaint[:4], "little")
        return bytes(self._complaint[4 : 4 + length]) if len(self._complaint) >= 4 + length else None

    def drain_finished(self) -> None:
        """Reads FINISHED frames, so that they never fill the connection while nothing else reads it."""
        piece = bytearray(4096)
        try:
            count = _receive_into(self._preceding, memoryview(piece))
        except ConnectionError:
            return  # the next collective will notice
        self._early += piece[:count]
        size = _HEADER.size
        while len(self._early) >= 2 * size:
            first, second = (Frame(*_HEADER.unpack_from(self._early, at)) for at in (0, size))
            if first.kind != FINISHED or second.kind != FINISHED:
                return
            del self._early[:size]

    def close(self) -> None:
        """Closes both connections."""
        self._preceding.close()
        self._following.close()
        self._wake.close()

    def _flush(self) -> None:
        try:
            del self._unsent[: _send(self._following, memoryview(bytes(self._unsent)))]
        except ConnectionError:
            self._unsent.clear()  # receiving will report the failure

    def _wait(self, position: Position, *, sending: bool, receiving: bool) -> None:
        # The next host normally sends nothing, so this can always watch that direction.
        self._poll.register(self._following, select.POLLIN | (select.POLLOUT if sending else 0))
        self._poll.register(self._preceding, select.POLLIN if receiving else 0)
        for fd, _ in self._poll.poll(position.seconds_left(_TICK_SECONDS) * 1e3):
            if fd == self._wake.read_fd:
                self._wake.clear()
        self._look(position)


def _send(connection: socket.socket, data: memoryview) -> int:
    try:
        return connection.send(data[:_PIECE_BYTES])
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return 0
    except OSError as error:  # from TLS or a cut network; neither is a ConnectionError
        raise ConnectionError(f"the connection has ended ({error})") from error


def _receive_into(connection: socket.socket, buffer: memoryview) -> int:
    try:
        count = connection.recv_into(buffer)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return 0
    except OSError as error:
        raise ConnectionError(f"the connection has ended ({error})") from error
    if count == 0:
        raise ConnectionError("the connection has ended")
    return count
