"""Programs with which replicas read their variables: each reads all of them before any is changed."""

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
      stored: Where it is in its file.
    """

    key: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    stored: StoredArray


class ShardReader:
    """Reads values of variables in a thread, and keeps them apart."""

    def __init__(self, folder: str, wanted: Sequence[tuple[Shard, Sequence[Wanted]]]) -> None:
        """Begins to read `wanted`, file by file.

        Attributes:
          arrays: What was read, by the name in the store.
          problem: What is wrong with a file, in words; "unseen" if this process does not see it.
          read_bytes: How much was read.
          number: The place in `wanted` of the file that is read.
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
        """Whether it has ended, after waiting for that for some time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drop(self) -> None:
        """Ends it before its time."""
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
            except Exception as error:  # raised where the result is requested
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
      restore: A name for `take_read`.
      wanted: What to read from each file.
    """
    _under_way[restore, env.rank] = ShardReader(folder, wanted)


def read_report(env: ReplicaEnv, restore: str, wait_seconds: float) -> tuple[bool, int, int, str]:
    """How far this replica is, after waiting for its end for some time.

    Args:
      env: The replica.
      restore: The name that `begin_read` got.
      wait_seconds: How long to wait.

    Returns:
      Whether it has ended, bytes, the file, and the problem: in words, "unseen", or "lost" in a process that has not
      begun to read.
    """
    reader = _under_way.get((restore, env.rank))
    if reader is None:  # replaces a process that was lost after `begin_read`
        return True, 0, 0, LOST
    ended = reader.wait(wait_seconds)
    return ended, reader.read_bytes, reader.number, reader.problem


def take_read(env: ReplicaEnv, restore: str, library: Library) -> None:
    """Gives variables the values that were read.

    Args:
      env: The replica.
      restore: Id of the restore.
      library: Array library of the variables.
    """
    for key, array in _under_way.pop((restore, env.rank)).arrays.items():
        env.store[key] = array if library == "numpy" else owned(library, array)


def forget_read(env: ReplicaEnv, restore: str) -> None:
    """Forgets what was read."""
    reader = _under_way.pop((restore, env.rank), None)
    if reader is not None:
        reader.drop()
        reader.wait(10.0)


def open_shard(folder: Folder, shard: Shard) -> Any:
    """A file of a checkpoint, to read from; its length and header are as they were written.

    Raises:
      NotFoundError: if it is missing.
      CheckpointInvalid: if it is another file.
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
    """What is wrong with a file of a checkpoint, in words.

    Args:
      folder: Folder of the checkpoint.
      shard: The file.
      error: What reading it raised.
    """
    return f"{shard.name} of the checkpoint {folder!r} is damaged or missing: {error}. Nothing was restored"
