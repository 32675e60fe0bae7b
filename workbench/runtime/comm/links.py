"""Ordered, two-way message links between the driver and a replica host.

There are three transports: a Unix socket (driver and worker on one machine), memory (worker inside the driver's
process) and Dask's comm layer (another machine, see dask_link.py). Each has a file descriptor, so that the driver can
wait for many at once.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from workbench import forks
from workbench.runtime.comm.codec import OBJECTS, PICKLED, Codec
from workbench.runtime.comm.messages import HEADER, Message

_BUFFER = 64 * 1024
# A buffer that grew beyond this for one large frame is freed afterwards.
_LARGE_BUFFER = 16 * 1024 * 1024
_SEND_FLAGS = socket.MSG_DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0)


class LinkClosed(ConnectionError):
    """The other end is gone."""


class Link(Protocol):
    """One end of a link.

    Attributes:
      codec: Encodes the values in its messages.
    """

    codec: Codec

    def fileno(self) -> int:
        """A descriptor that is readable when `receive` has messages."""

    def send(self, message: Message, body: bytes | None = None) -> None:
        """Sends in order; any thread. `body` is the pickled message, if the caller already has it.

        Raises:
          LinkClosed: if the other end is gone.
        """

    def send_all(self, messages: list[Message]) -> None:
        """As `send`, for several messages in order. They travel in one frame, so that common parts are pickled once."""

    @property
    def pending(self) -> bool:
        """Whether `receive` has messages although `fileno` may not be readable."""

    def receive(self) -> list[Message]:
        """Returns all arrived messages; may return none, or block, unless `fileno` is readable.

        Raises:
          LinkClosed: if the other end is gone and no message is left.
        """

    def close(self) -> None:
        """Closes this end; the other end notices."""


def readable(descriptor: int, timeout_seconds: float) -> bool:
    """Whether `descriptor` becomes readable in time.

    Raises:
      LinkClosed: if this end was closed meanwhile, by another thread.
    """
    if descriptor < 0:
        raise LinkClosed("this end of the link was closed")
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_seconds * 1000))


class UnixLink:
    """A link over a connected stream socket. A frame is a length and a pickled message or list of messages."""

    codec: Codec = PICKLED

    def __init__(self, sock: socket.socket) -> None:
        self._sock = forks.descriptor(sock)
        self._send_lock = forks.lock(threading.Lock())
        # Held by the reading thread, or by a sender that reads so that both ends make progress.
        self._read_lock = forks.lock(threading.Lock())
        self._buffer = bytearray(_BUFFER)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._arrived: list[Message] = []

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._sock.fileno()

    def send(self, message: Message, body: bytes | None = None) -> None:
        """See `Link.send`."""
        if body is None:
            body = pickle.dumps(message, protocol=5)
        self._write(HEADER.pack(len(body)) + body)

    def send_all(self, messages: list[Message]) -> None:
        """See `Link.send_all`."""
        body = pickle.dumps(messages, protocol=5)
        self._write(HEADER.pack(len(body)) + body)

    def _write(self, data: bytes) -> None:
        with self._send_lock:
            try:
                sent = self._sock.send(data, _SEND_FLAGS)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                raise LinkClosed(str(error)) from error
            if sent < len(data):
                self._send_rest(memoryview(data)[sent:])

    def _send_rest(self, data: memoryview) -> None:
        """Sends while also reading: two ends that only write would block each other forever."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | select.POLLOUT)
        while data:
            for _, events in poll.poll(1000):
                if events & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                    raise LinkClosed("the peer closed the link")
                if events & select.POLLIN and not self._read_meanwhile():
                    # Another thread is reading, and will soon be done.
                    writable = select.poll()
                    writable.register(self._sock, select.POLLOUT)
                    writable.poll(1)
                if events & select.POLLOUT:
                    try:
                        data = data[self._sock.send(data, _SEND_FLAGS) :]
                    except BlockingIOError:
                        continue
                    except OSError as error:
                        raise LinkClosed(str(error)) from error

    @property
    def pending(self) -> bool:
        """Whether messages were read that `receive` has not returned; `fileno` need not be readable for them."""
        return bool(self._arrived)

    def receive(self) -> list[Message]:
        """Reads once, blocking, and returns the messages that are complete; see `Link.receive`."""
        with self._read_lock:
            if not self._arrived:
                self._read()
            messages, self._arrived = self._arrived, []
        return messages

    def _read_meanwhile(self) -> bool:
        """Reads once on a sending thread, unless another thread is reading."""
        if not self._read_lock.acquire(blocking=False):
            return False
        try:
            if readable(self._sock.fileno(), 0.0):  # the other thread may have read everything
                self._read()
        finally:
            self._read_lock.release()
        return True

    def _read(self) -> None:
        """Reads once, blocking, and appends every complete frame to `_arrived`."""
        filled = self._filled
        try:
            count = self._sock.recv_into(self._view[filled:] if filled else self._view)
        except (OSError, ValueError) as error:
            raise LinkClosed(str(error)) from error
        if count == 0:
            raise LinkClosed("the peer closed the link")
        view, start, end = self._view, 0, filled + count
        while end - start >= 4:
            (size,) = HEADER.unpack_from(view, start)
            after = start + 4 + size
            if after > end:
                break
            message = pickle.loads(view[start + 4 : after])
            if type(message) is list:
                self._arrived += message
            else:
                self._arrived.append(message)
            start = after
        self._filled = end - start
        if self._filled >= 4:
            (size,) = HEADER.unpack_from(view, start)
            if size + 4 > len(self._buffer):
                self._move(start, end, size + 4)
                return
        if start and self._filled:
            view[: self._filled] = bytes(view[start:end])
        elif not self._filled and len(self._buffer) > _LARGE_BUFFER:
            self._move(0, 0, 0)

    def _move(self, start: int, end: int, needed: int) -> None:
        """Moves the start of a frame to the front of a buffer that can hold the whole frame."""
        rest = bytes(self._view[start:end])
        self._buffer = bytearray(max(needed, _BUFFER))
        self._view = memoryview(self._buffer)
        self._view[: len(rest)] = rest

    def close(self) -> None:
        """As `Link.close`."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # already disconnected
        # The shutdown has woken threads that read or write. Without the locks, the number of the closed descriptor
        # could already belong to another file when they use it.
        with self._send_lock, self._read_lock:
            self._sock.close()


class Wakeup:
    """A file descriptor that one thread makes readable and another waits on.

    It frees its descriptors when it is collected: of two threads that share one, neither knows whether the other waits.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._close = weakref.finalize(self, _close_both, self._read_fd, self._write_fd)
        self._close.atexit = False  # threads may still wait at exit
        forks.tell(self)

    def fileno(self) -> int:
        """A descriptor that is readable from `set` until `clear`."""
        return self._read_fd

    def set(self) -> None:
        """Makes it readable. Any thread; signal handlers, too."""
        if not self._close.alive:
            return  # nothing waits any more, and the descriptor may belong to another file
        try:
            os.write(self._write_fd, b"x")
        except OSError:
            pass  # the pipe is full, so it is readable already

    def clear(self) -> None:
        """Makes it unreadable again."""
        if not self._close.alive:
            return
        try:
            os.read(self._read_fd, 65536)
        except OSError:
            pass  # the pipe is empty

    def disown(self) -> None:
        """See `forks.tell`: a byte would wake the parent."""
        if self._close.alive:
            forks.let_go(self._read_fd, self._write_fd)

    def close(self) -> None:
        """Frees the descriptors. Idempotent."""
        self._close()


def _close_both(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Inbox:
    """Messages from another thread, announced by a readable descriptor."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._wakeup = Wakeup()
        self._closed = False

    def fileno(self) -> int:
        """A descriptor that is readable while there are messages, or after `end`."""
        return self._wakeup.fileno()

    def put(self, message: Message) -> None:
        """Adds a message. Any thread."""
        self._messages.append(message)
        self._wakeup.set()

    def end(self) -> None:
        """Announces that no further message will follow."""
        self._closed = True
        self._wakeup.set()

    def take(self) -> list[Message]:
        """Returns all arrived messages, without waiting.

        Raises:
          LinkClosed: if the inbox was ended and is empty.
        """
        # Cleared first, so that a message put between the two steps is either seen now or makes the descriptor
        # readable again.
        self._wakeup.clear()
        messages = []
        while self._messages:
            messages.append(self._messages.popleft())
        if not messages and self._closed:
            raise LinkClosed("the peer closed the link")
        return messages

    def close(self) -> None:
        """Frees the descriptors."""
        self._wakeup.close()


class MemoryLink:
    """A link within one process: sending is a call, messages are the objects themselves.

    Attributes:
      peer: The other end, which gets this end's messages. Set by `pair`.
    """

    codec: Codec = OBJECTS

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.deliver: Callable[[Message], None] = self.inbox.put
        self.peer: MemoryLink | None = None

    @classmethod
    def pair(cls) -> tuple[MemoryLink, MemoryLink]:
        """Two connected ends."""
        one, two = cls(), cls()
        one.peer, two.peer = two, one
        return one, two

    def fileno(self) -> int:
        """As `Link.fileno`."""
        return self.inbox.fileno()

    def send(self, message: Message, body: bytes | None = None) -> None:
        """As `Link.send`."""
        peer = self.peer  # another thread may close the link meanwhile
        if peer is None:
            raise LinkClosed("the link is closed")
        peer.deliver(message)

    def send_all(self, messages: list[Message]) -> None:
        """As `Link.send_all`."""
        for message in messages:
            self.send(message)

    @property
    def pending(self) -> bool:
        """See `Link.pending`."""
        return False

    def receive(self) -> list[Message]:
        """As `Link.receive`."""
        return self.inbox.take()

    def close(self) -> None:
        """As `Link.close`."""
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.peer = None
            peer.inbox.end()
            self.inbox.end()
