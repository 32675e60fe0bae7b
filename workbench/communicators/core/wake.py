"""Wakes another process that blocks, by an eventfd or a pipe; both can be sent to other processes."""

from __future__ import annotations

import os


class Wake:
    """The descriptor on which a process blocks; peers get `write_fd`.

    Wake-ups only mean "check again", so too many of them do no harm.

    Attributes:
      read_fd: Its owner polls it.
      write_fd: Its owner sends it to peers.
    """

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            # A semaphore, so that two peers' wake-ups never merge into one.
            self.read_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)
            self.write_fd = self.read_fd
        else:
            self.read_fd, self.write_fd = os.pipe()
            os.set_blocking(self.read_fd, False)
            os.set_blocking(self.write_fd, False)

    def clear(self) -> None:
        """Consumes one wake-up, if there is one."""
        try:
            os.read(self.read_fd, 8)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Closes the descriptors."""
        for fd in {self.read_fd, self.write_fd}:
            os.close(fd)


_ONE = (1).to_bytes(8, "little")


def wake(write_fd: int) -> None:
    """Wakes the process that polls the other end. Any process that has `write_fd` may call it."""
    try:
        os.write(write_fd, _ONE)
    except (BlockingIOError, BrokenPipeError):
        pass  # one more pending wake-up changes nothing, or the process is gone
