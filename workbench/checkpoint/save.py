"""Saves one checkpoint: a snapshot, then the files, then the manifest, which makes it valid.

Layout:

    path/checkpoint.json              the manifest; names the valid files
    path/<id>-<n>.safetensors         these files; each replica with variables writes one, the notebook another
    path/lock                         locked while a process writes; contains the id

Replicas check by the lock whether their host sees the folder. If it does not, they write nothing, and other replicas
that hold the same variables write them. Variables that no such replica holds go through the notebook.

A process that is killed leaves files that no manifest names. The next save to the same path removes them.

The same holds at a URL, without renames and locks: each object appears as a whole. The manifest comes last and replaces
the former one; only then are the files of the former one removed.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from workbench import forks
from workbench.checkpoint.folder import LocalFolder, folder_at, joined, storage
from workbench.checkpoint.manifest import NAME, SHARD, Manifest, Part, SavedArray, Shard, read_manifest
from workbench.checkpoint.replica_shards import ReplicaShards, has_components
from workbench.checkpoint.shard_writer import (
    LOCK,
    ShardWriter,
    shard_name,
)
from workbench.checkpoint.state import Leaf, State, host_array
from workbench.checkpoint.tensor_file import TensorFile, stored_form
from workbench.checkpoint.transfer import Transfer
from workbench.data.stored.locks import FileLock
from workbench.distribute.arrays.as_array import Array
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.variable import Variable
from workbench.errors import FailedPreconditionError, NotFoundError, WorkbenchError
from workbench.faults import fault

_FIRST_POLL_SECONDS: Final = 0.01  # the next save waits until this one ends
_POLL_SECONDS: Final = 0.05


class _Destinations:
    """URLs that this process is saving to; nothing else locks them.

    A forked child starts without any.
    """

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._lock = forks.lock(threading.Lock())
        forks.tell(self)

    def take(self, path: str) -> bool:
        """Takes the destination; returns whether it was free."""
        with self._lock:
            free = path not in self._paths
            self._paths.add(path)
            return free

    def give_back(self, path: str) -> None:
        """Frees the destination."""
        with self._lock:
            self._paths.discard(path)

    def __contains__(self, path: str) -> bool:
        with self._lock:
            return path in self._paths

    def disown(self) -> None:
        """Drops all destinations in a forked child, because only the parent saves there."""
        self._paths.clear()


_unlocked: Final = _Destinations()


class Save:
    """A checkpoint that is being saved. `begin` takes the snapshot, `finish` writes it.

    Attributes:
      path: Its future path.
      transfer: Its progress.
    """

    def __init__(
        self,
        path: str,
        state: State,
        save_counter: int,
        *,
        after_ns: int = 0,
        period_began_ns: int = 0,
        background: bool = False,
    ) -> None:
        """Prepares to save.

        Args:
          path: The path of the checkpoint's folder, or its URL.
          state: What to save.
          save_counter: See `Manifest`.
          after_ns: A time; the time in the manifest will be later.
          period_began_ns: See `Manifest`.
          background: Whether training continues while the files are written.

        Raises:
          TypeError: if a value is of a dtype that cannot be saved.
        """
        self._folder = folder_at(path)
        self.path = self._folder.name
        self._state = state
        self._counter = save_counter
        self._after_ns = after_ns
        self._period_began_ns = period_began_ns
        self._id = secrets.token_hex(8)
        self._lock: FileLock | None = None
        self._replicas: list[ReplicaShards] = []
        self._parts: dict[str, list[Part]] = defaultdict(list)
        self._shards: dict[int, Shard] = {}
        self._own: dict[str, tuple[str, Array]] = {}  # path -> (name in the file, array)
        self._positions: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._kinds: dict[str, tuple[str, str, tuple[int, ...]]] = {}
        self._writer: ShardWriter | None = None
        self._own_number = 0
        for name, leaf in state.leaves.items():
            if leaf.kind in ("variable", "array"):
                _check_dtype(name, leaf)
        self.transfer = Transfer("save", self.path, state.strategies(), background=background)

    def begin(self) -> None:
        """Takes the snapshot: later assignments are not in the checkpoint.

        Raises:
          FailedPreconditionError: if another process is writing there, or the path is that of a file.
          StorageFull: if no space is left.
        """
        try:
            self._folder.make()
            self._take_lock()
        except BaseException as error:
            self.transfer.end(error)
            raise
        try:
            fault("checkpoint.made")
            pieces: dict[DescribedStrategy, list[tuple[str, Piece]]] = defaultdict(list)
            for name, leaf in self._state.leaves.items():
                match leaf.kind:
                    case "value":
                        self._values[name] = leaf.value
                    case "iterator":
                        self._positions[name] = leaf.value.position()
                    case "array":
                        self._hold(name, "array", host_array(leaf.value))
                    case "variable":
                        self._add_variable(name, leaf.value, pieces)
            number = 0
            for strategy, held in pieces.items():
                shards = ReplicaShards(strategy, held, self.path, self._id, number)
                for name in sorted(shards.unseen):
                    self._hold(name, "variable", self._state.leaves[name].value.numpy())
                self._replicas.append(shards)
                shards.begin(self._state)
                number += strategy.num_replicas_in_sync
            if self._own:
                own = list(self._own.values())
                self._writer = ShardWriter(self._folder, shard_name(self._id, number), own)
                self._own_number = number
            total_bytes = sum(
                int(np.prod(shape, dtype=np.int64)) * _item_bytes(self._state.leaves[name])
                for name, (_, _, shape) in self._kinds.items()
            )
            detoured = sum(self._own[name][1].nbytes for one in self._replicas for name in one.unseen)
            if detoured:
                hosts = ", ".join(dict.fromkeys(host for one in self._replicas for host in one.blind_hosts))
                self.transfer.detour(detoured, f"the folder cannot be seen on {hosts}")
            files = sum(len(one.under_way) for one in self._replicas) + bool(self._own)
            self.transfer.begin(total_bytes, files)
        except BaseException as error:
            self._discard()
            self.transfer.end(error)
            raise

    def finish(self, wait_seconds: float = 0.0, stop: threading.Event | None = None) -> None:
        """Waits for the files, then writes the manifest.

        Args:
          wait_seconds: How long replicas may wait for their own files when they are asked; they run no steps
            meanwhile.
          stop: Ends waiting.

        Raises:
          StorageFull: if no space is left.
          WorkbenchError: if a replica is lost meanwhile.
        """
        stop = stop or threading.Event()
        pause = 0.0 if wait_seconds else _FIRST_POLL_SECONDS
        try:
            for shards in self._replicas:
                ended = False
                while not ended:
                    shards.ask(wait_seconds)
                    # Answers come after those of earlier steps. Waiting for them would keep the program from
                    # sending further steps.
                    if stop.wait(pause):
                        raise WorkbenchError(f"saving {self.path!r} was given up: the program ended")
                    pause = min(2 * pause, _POLL_SECONDS)
                    ended = shards.heard()
                    self._move()
                for number, file, entries in shards.files():
                    self._add_file(number, shard_name(self._id, number), file, entries)
            if self._writer is not None:
                while not self._writer.wait(_POLL_SECONDS):
                    self._move()
                    if stop.is_set():
                        raise WorkbenchError(f"saving {self.path!r} was given up: the program ended")
                if self._writer.error is not None:
                    raise self._writer.error
                assert self._writer.file is not None
                own = [(name, None) for name in self._own]
                self._add_file(self._own_number, self._writer.name, self._writer.file, own)
            self._commit()
        except BaseException as error:
            self._discard()
            self.transfer.end(error)
            raise
        self.transfer.end()

    def _under_way(self) -> list[int]:
        """The numbers of the files that are being written."""
        numbers = [number for shards in self._replicas for number in shards.under_way]
        if self._writer is not None and not self._writer.wait(0.0):
            numbers.append(self._own_number)
        return numbers

    def _move(self) -> None:
        own = 0 if self._writer is None else self._writer.written_bytes
        written = own + sum(one.written_bytes for one in self._replicas)
        self.transfer.move(written, self._under_way())

    def _commit(self) -> None:
        for shard in self._shards.values():
            size: int | None = None
            with contextlib.suppress(NotFoundError):
                size = self._folder.size(shard.name)
            if size != shard.bytes:
                found = "is missing" if size is None else f"has {size:,} bytes"
                raise WorkbenchError(
                    f"{shard.name} in {self.path!r} {found} here, and had {shard.bytes:,} bytes where it was written. "
                    f"Save again; if nobody has removed it, save to a folder that all hosts share, or to a URL"
                )
        fault("checkpoint.before_manifest")
        numbers = sorted(self._shards)
        index = {number: place for place, number in enumerate(numbers)}
        arrays = {}
        for name, (kind, dtype, shape) in self._kinds.items():
            parts = tuple(Part(index[p.shard], p.start, p.shape, p.stored) for p in self._parts[name])
            arrays[name] = SavedArray(kind, dtype, shape, parts)
        manifest = Manifest(
            self._id,
            max(time.time_ns(), self._after_ns + 1),
            self._counter,
            tuple(self._shards[number] for number in numbers),
            arrays,
            self._values,
            self._positions,
            self._period_began_ns,
        )
        self._folder.replace(NAME, manifest.to_bytes())
        fault("checkpoint.committed")
        keep = {shard.name for shard in manifest.shards}
        for name in self._folder.names():
            if (
                SHARD.fullmatch(name) and name not in keep
            ):  # a file of an earlier checkpoint here, or of a killed process
                self._folder.remove(name)
            elif name.startswith(f"{NAME}."):
                self._folder.remove(name)
        fault("checkpoint.cleaned")
        self._release()

    def _add_variable(
        self,
        name: str,
        variable: Variable | ShardedVariable,
        pieces: dict[DescribedStrategy, list[tuple[str, Piece]]],
    ) -> None:
        # Saved as a whole, so that it can be restored to a different number of shards.
        if isinstance(variable, ShardedVariable):
            self._hold(name, "variable", variable.numpy())
            return
        placement, strategy = variable.placement, variable.strategy
        if placement is None or strategy is None:
            self._hold(name, "variable", variable.numpy())
            return
        if has_components(variable):
            self._hold(name, "components", np.stack(placement.components(variable)))
            return
        found = placement.pieces(variable)
        if not found:
            self._hold(name, "variable", np.asarray(variable.numpy()))
            return
        self._kinds[name] = ("variable", variable.dtype.name, variable.shape)
        pieces[strategy].extend((name, piece) for piece in found)

    def _hold(self, name: str, kind: str, array: Array) -> None:
        self._kinds[name] = (kind, array.dtype.name, array.shape)
        self._own[name] = (name, array)

    def _add_file(
        self, number: int, name: str, file: TensorFile, entries: Sequence[tuple[str, Piece | None]]
    ) -> None:
        self._shards[number] = Shard(name, file.bytes, file.header_bytes, file.header_checksum)
        for (path, piece), stored in zip(entries, file.arrays, strict=True):
            shape = self._kinds[path][2] if piece is None else piece.shape
            start = (0,) * len(shape) if piece is None else piece.start
            self._parts[path].append(Part(number, start, shape, stored))

    def _take_lock(self) -> None:
        busy = FailedPreconditionError(
            f"somebody else is saving to {self._folder.name!r} at this moment; save to another path, or later"
        )
        if not isinstance(
            self._folder, LocalFolder
        ):  # of two processes, the last to save wins, with all of its files
            if not _unlocked.take(self.path):
                raise busy
            try:
                with self._folder.create(LOCK) as file:
                    file.write(self._id.encode())
            except BaseException:
                self._release()
                raise
            return
        path = joined(self.path, LOCK)
        try:
            self._lock = FileLock(path, wait=False)
        except BlockingIOError:
            raise busy from None
        try:
            with storage(self.path), open(path, "wb") as file:
                file.write(self._id.encode())
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
        else:
            with contextlib.suppress(Exception):
                self._folder.remove(LOCK)
            _unlocked.give_back(self.path)

    def _discard(self) -> None:
        """Removes the files, unless the checkpoint is complete."""
        for shards in self._replicas:
            shards.drop()
        if self._writer is not None:
            self._writer.drop()
            self._writer.wait(10.0)
        with contextlib.suppress(WorkbenchError, OSError):
            counts = False
            with contextlib.suppress(WorkbenchError):
                counts = read_manifest(self._folder).id == self._id
            for name in self._folder.names():
                if not counts and name.startswith(self._id) and SHARD.fullmatch(name):
                    self._folder.remove(name)
        self._release()


def is_saving_to(path: str) -> bool:
    """Whether this process is saving to a URL."""
    return path in _unlocked


def _check_dtype(name: str, leaf: Leaf) -> None:
    dtype = np.dtype(leaf.value.dtype)
    if stored_form(dtype, ()) is None:
        raise TypeError(
            f"a checkpoint cannot hold {name!r}: safetensors has no dtype {dtype.name}; save numbers, and texts as "
            f"plain Python values"
        )


def _item_bytes(leaf: Leaf) -> int:
    return int(np.dtype(leaf.value.dtype).itemsize)
