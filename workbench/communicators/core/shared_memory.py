"""Memory that the processes of a host share by passing file descriptors.

It has no name (memfd, or a file that is unlinked at once), so nothing remains however a process ends.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile

import numpy as np

from workbench.errors import StorageFull

PAGE_BYTES = mmap.ALLOCATIONGRANULARITY


class SharedFile:
    """A growing file in memory; its descriptor can be sent to other processes.

    Attributes:
      fd: The descriptor, closed by `close`.
      nbytes: Current size.
    """

    def __init__(self, nbytes: int) -> None:
        self.fd = _open_unnamed()
        self.nbytes = 0
        self.grow(nbytes)

    def grow(self, nbytes: int) -> int:
        """Appends `nbytes` zeros (rounded up to pages) and returns the offset of the first one."""
        offset = self.nbytes
        nbytes = rounded(nbytes)
        try:
            if hasattr(os, "memfd_create") or not hasattr(os, "posix_fallocate"):
                os.ftruncate(self.fd, offset + nbytes)
            else:
                # On a full disk, this fails here instead of with a SIGBUS later.
                os.posix_fallocate(self.fd, offset, nbytes)
        except OSError as error:
            raise StorageFull(f"no room for {nbytes} bytes of shared memory: {error.strerror}") from error
        self.nbytes += nbytes
        return offset

    def close(self) -> None:
        """Closes the descriptor; memory stays as long as it is mapped anywhere."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def mapped(fd: int, offset: int, nbytes: int) -> np.ndarray:
    """Maps `nbytes` bytes at `offset` (a multiple of the page size) until their last view is gone."""
    return np.frombuffer(mmap.mmap(fd, rounded(nbytes), offset=offset), np.uint8)


def rounded(nbytes: int) -> int:
    """`nbytes` rounded up to whole pages, at least one."""
    return max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES


def _open_unnamed() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("workbench", os.MFD_CLOEXEC)
    directory = "/dev/shm" if sys.platform == "linux" and os.access("/dev/shm", os.W_OK) else None
    fd, path = tempfile.mkstemp(prefix="workbench-", dir=directory)
    os.unlink(path)
    return fd
