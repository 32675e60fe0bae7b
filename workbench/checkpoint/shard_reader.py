"""Programs with which replicas read their variables. Each replica reads all of them before it changes any."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.library import Library, owned
from workbench.checkpoint.folder import Folder, folder_at
from workbench.checkpoint.manifest import Shard
from workbench.checkpoint.tensor_file import StoredArray, read_array
from workbench.distribute.arrays.as_array import Array
from workbench.errors import BackendUnavailable, CheckpointInvalid, NotFoundError, UnavailableError
from workbench.io.checksums import crc32c

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

UNSEEN = "unseen"
LOST = "lost"
_under_way: dict[tuple[str, int], ShardReader] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """An array that a replica reads.

    Attributes:
      key: Name of the variable in the replica's store.
      dtype: Its dtype.
      shape: Its shape.
      stored: Its position in the file.
    """

    key: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    stored: StoredArray


class ShardReader:
    """Reads values of variables in a thread, without assigning them."""

    def __init__(self, folder: str, wanted: Sequence[tuple[Shard, Sequence[Wanted]]]) -> None:
        """Begins to read `wanted`, file by file.

        Attributes:
          arrays: The arrays read, by their names in the store.
          problem: Describes what is wrong with a file; "unseen" if this process does not see it.
          read_bytes: How many bytes were read.
          number: Index in `wanted` of the current file.
        """
        self.arrays: dict[str, Array] = {}
        self.problem = ""
        self.read_bytes = 0
        self.number = 0
        self._folder = folder
        self._wanted = wanted
        self._dropped = False
        self._thread = threading.Thread(target=self._run, name="wb-restore", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits for the end up to `seconds`; returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drop(self) -> None:
        """Ends it early."""
        self._dropped = True

    def _run(self) -> None:
        for number, (shard, entries) in enumerate(self._wanted):
            self.number = number
            try:
                here = folder_at(self._folder)
                with open_shard(here, shard) as file:
                    for entry in entries:
                        if self._dropped:
                            return
                        array = read_array(file, entry.stored, entry.dtype, entry.shape, self._count)
                        self.arrays[entry.key] = array
            except (NotFoundError, UnavailableError, BackendUnavailable):
                self.problem = UNSEEN
                return
            except Exception as error:  # raised when the result is requested
                self.problem = damaged(self._folder, shard, error)
                return

    def _count(self, count: int) -> None:
        self.read_bytes += count


def begin_read(
    env: ReplicaEnv, folder: str, restore: str, wanted: Sequence[tuple[Shard, Sequence[Wanted]]]
) -> None:
    """Begins to read the values of variables.

    Args:
      env: The replica.
      folder: The folder of the checkpoint.
      restore: A name, for `take_read`.
      wanted: What to read from each file.
    """
    _under_way[restore, env.rank] = ShardReader(folder, wanted)


def read_report(env: ReplicaEnv, restore: str, wait_seconds: float) -> tuple[bool, int, int, str]:
    """Waits for the end of this replica's reading up to a limit, and reports its progress.

    Args:
      env: The replica.
      restore: The name given to `begin_read`.
      wait_seconds: How long to wait.

    Returns:
      Whether it has ended, bytes read, index of the file, and the problem: a description, "unseen", or "lost" if this
      process has not begun to read.
    """
    reader = _under_way.get((restore, env.rank))
    if reader is None:  # this process replaces one that was lost after `begin_read`
        return True, 0, 0, LOST
    ended = reader.wait(wait_seconds)
    return ended, reader.read_bytes, reader.number, reader.problem


def take_read(env: ReplicaEnv, restore: str, library: Library) -> None:
    """Assigns the values that were read to the variables.

    Args:
      env: The replica.
      restore: The name given to `begin_read`.
      library: Array library of the variables.
    """
    for key, array in _under_way.pop((restore, env.rank)).arrays.items():
        env.store[key] = array if library == "numpy" else owned(library, array)


def forget_read(env: ReplicaEnv, restore: str) -> None:
    """Drops the values that were read."""
    reader = _under_way.pop((restore, env.rank), None)
    if reader is not None:
        reader.drop()
        reader.wait(10.0)


def open_shard(folder: Folder, shard: Shard) -> Any:
    """Opens a file of a checkpoint, after checking its length and header.

    Raises:
      NotFoundError: if it is missing.
      CheckpointInvalid: if length or header differ.
    """
    file = folder.open(shard.name)
    try:
        size = folder.size(shard.name)
        if size != shard.bytes:
            raise CheckpointInvalid(f"it has {size:,} bytes instead of {shard.bytes:,}")
        header = file.read(shard.header_bytes) if 0 <= shard.header_bytes <= size else b""
        if len(header) != shard.header_bytes or crc32c(header) != shard.header_checksum:
            raise CheckpointInvalid("the checksum of its header is wrong")
    except BaseException:
        file.close()
        raise
    return file


def damaged(folder: str, shard: Shard, error: Exception) -> str:
    """Describes what is wrong with a file of a checkpoint.

    Args:
      folder: Folder of the checkpoint.
      shard: The file.
      error: The error that reading it raised.
    """
    return f"{shard.name} of the checkpoint {folder!r} is damaged or missing: {error}. Nothing was restored"
