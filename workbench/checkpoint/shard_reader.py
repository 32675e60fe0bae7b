"""What replicas run to read their variables: each reads them from the files, all of them before any is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.library import Library, owned
from workbench.checkpoint.folder import Folder, folder_at
from workbench.checkpoint.manifest import Shard
from workbench.checkpoint.tensor_file import StoredArray, read_array
from workbench.distribute.arrays.as_array import Array
from workbench.errors import CheckpointInvalid, NotFoundError
from workbench.io.checksums import crc32c

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

UNSEEN = "unseen"
_read: dict[tuple[str, int], dict[str, Array]] = {}


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


def read_shards(
    env: ReplicaEnv, folder: str, restore: str, wanted: Sequence[tuple[Shard, Sequence[Wanted]]]
) -> str:
    """Reads the values of variables, and keeps them apart.

    Args:
      env: The replica.
      folder: Of the checkpoint.
      restore: A name for `take_read`.
      wanted: What to read from each file.

    Returns:
      What is wrong with a file, in words; "unseen" if this process does not see the folder, "" if all was read.
    """
    here = folder_at(folder)
    arrays: dict[str, Array] = {}
    for shard, entries in wanted:
        try:
            with open_shard(here, shard) as file:
                for entry in entries:
                    arrays[entry.key] = read_array(file, entry.stored, entry.dtype, entry.shape)
        except NotFoundError:
            return UNSEEN
        except (CheckpointInvalid, ValueError, OSError) as error:
            return damaged(here, shard, error)
    _read[restore, env.rank] = arrays
    return ""


def take_read(env: ReplicaEnv, restore: str, library: Library) -> None:
    """Gives variables the values that were read."""
    for key, array in _read.pop((restore, env.rank)).items():
        env.store[key] = array if library == "numpy" else owned(library, array)


def forget_read(env: ReplicaEnv, restore: str) -> None:
    """Forgets what was read."""
    _read.pop((restore, env.rank), None)


def open_shard(folder: Folder, shard: Shard) -> Any:
    """A file of a checkpoint, to read from; its length and header are as they were written.

    Raises:
      NotFoundError: If it is missing.
      CheckpointInvalid: If it is another file.
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


def damaged(folder: Folder, shard: Shard, error: Exception) -> str:
    """What is wrong with a file of a checkpoint, in words."""
    return (
        f"{shard.name} of the checkpoint {folder.name!r} is damaged or missing: {error}. Nothing was restored"
    )
