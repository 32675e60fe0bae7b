"""Programs with which replicas write their variables: one file per replica, on a thread, while steps continue.

A store's arrays are replaced and never written to, so holding references to them is a snapshot without cost.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.checkpoint.folder import Folder, folder_at
from workbench.checkpoint.tensor_file import StoredArray, TensorFile, write_tensors
from workbench.distribute.arrays.as_array import Array
from workbench.distribute.variables import programs
from workbench.errors import NotFoundError, ReplicaLost, StorageFull, UnavailableError, WorkbenchError
from workbench.faults import fault

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

LOCK = "lock"
_ERRORS = {kind.__name__: kind for kind in (StorageFull, UnavailableError, NotFoundError, ReplicaLost)}
_under_way: dict[str, ShardWriter] = {}
"""By file: replicas of several strategies in one process write to the same checkpoint."""


class ShardWriter:
    """Writes one file in a thread."""

    def __init__(
        self, folder: Folder, name: str, arrays: Sequence[tuple[str, Array]], *, expected_lock: str = ""
    ) -> None:
        """Starts the thread.

        Args:
          folder: The folder of the checkpoint.
          name: The name of the file.
          arrays: The arrays to write, by their names in the file.
          expected_lock: On a replica, the content of the folder's lock if it is the folder that the notebook sees.
        """
        self.name = name
        self.written_bytes = 0
        self.file: TensorFile | None = None
        self.error: BaseException | None = None
        self._folder = folder
        self._arrays = arrays
        self._expected_lock = expected_lock
        self._dropped = False
        self._thread = threading.Thread(target=self._run, name=f"wb-checkpoint-{name}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits for the end up to `seconds`; returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drop(self) -> None:
        """Ends it early and removes the file."""
        self._dropped = True

    def _run(self) -> None:
        try:
            if self._expected_lock and not _has_lock(self._folder, self._expected_lock):
                raise UnavailableError(
                    f"host {socket.gethostname()} does not see {self._folder.name!r}, although it saw the folder above "
                    f"it when a checkpoint was saved there before; save again, and another host writes for it"
                )
            with self._folder.create(self.name) as file:

                def write(data: Any) -> None:
                    if self._dropped:
                        raise InterruptedError("the checkpoint was given up")
                    file.write(data)
                    self.written_bytes += len(data)

                written = write_tensors(write, self._arrays, {"format": "np"})
                fault("checkpoint.shard")
            self.file = written
        except BaseException as error:  # raised when the result is requested
            self.error = error
        finally:
            self._arrays = ()


def sees_folder(env: ReplicaEnv, folder: str, save: str) -> bool:
    """Whether this replica sees the folder in which a save has begun.

    Args:
      env: The replica.
      folder: The folder of the checkpoint.
      save: The id of the checkpoint, which is in the folder's lock.
    """
    return _has_lock(folder_at(folder), save)


def begin_shard(
    env: ReplicaEnv, folder: str, save: str, first: int, assigned: Sequence[Sequence[tuple[str, str]]]
) -> bool:
    """Takes a snapshot of this replica's part of a checkpoint and begins to write it; returns whether it has a part.

    Args:
      env: The replica.
      folder: The folder of the checkpoint.
      save: The id of the checkpoint.
      first: Number of the file of replica 0.
      assigned: By rank, each array's name in the file and key in the store.
    """
    mine = assigned[env.rank]
    if mine:
        arrays = [(name, np.asarray(view(fetched(programs.component(env, key))))) for name, key in mine]
        name = shard_name(save, first + env.rank)
        _under_way[name] = ShardWriter(folder_at(folder), name, arrays, expected_lock=save)
    return bool(mine)


def shard_report(env: ReplicaEnv, save: str, first: int, wait_seconds: float) -> bytes:
    """Waits for the end of this replica's file up to a limit, and reports its progress; `Report` reads the result.

    Args:
      env: The replica.
      save: Id of the save.
      first: Number of the file of replica 0.
      wait_seconds: How long to wait for the end of the file.
    """
    name = shard_name(save, first + env.rank)
    writer = _under_way.get(name)
    if writer is None:  # this process replaces one that was lost after the snapshot
        told = f"replica {env.rank} was lost while it wrote its part of the checkpoint; save again"
        return json.dumps({"written": 0, "file": None, "error": [ReplicaLost.__name__, told]}).encode()
    ended = writer.wait(wait_seconds)
    file, error = writer.file, writer.error
    if ended:
        del _under_way[name]
    return json.dumps(
        {
            "written": writer.written_bytes,
            "file": asdict(file) if ended and file is not None else None,
            "error": [type(error).__name__, str(error)] if ended and error is not None else None,
        }
    ).encode()


def drop_shard(env: ReplicaEnv, save: str, first: int) -> bool:
    """Gives up this replica's part; returns whether it had one.

    Args:
      env: The replica.
      save: Id of the save.
      first: Number of the file of replica 0.
    """
    writer = _under_way.pop(shard_name(save, first + env.rank), None)
    if writer is not None:
        writer.drop()
        writer.wait(10.0)
    return writer is not None


def _has_lock(folder: Folder, save: str) -> bool:
    try:
        with folder.open(LOCK) as file:
            return bool(file.read(64) == save.encode())
    except WorkbenchError:
        return False


def shard_name(save: str, number: int) -> str:
    """The name of a file of a checkpoint."""
    return f"{save}-{number}.safetensors"


def file_in(report: bytes) -> tuple[int, TensorFile | None]:
    """The number of bytes in a report, and the file if it is complete.

    Raises:
      WorkbenchError: if writing failed on the replica.
    """
    told = json.loads(report)
    if told["error"] is not None:
        kind, text = told["error"]
        if kind in _ERRORS:
            raise _ERRORS[kind](text)
        raise WorkbenchError(f"a replica could not write its part of the checkpoint: {kind}: {text}")
    file = told["file"]
    if file is None:
        return int(told["written"]), None
    arrays = tuple(StoredArray(**stored) for stored in file.pop("arrays"))
    return int(told["written"]), TensorFile(**file, arrays=arrays)
