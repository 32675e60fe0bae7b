"""One checkpoint on its way to the disk: a snapshot, then the files, then the manifest, by which it counts.

Layout:

    path/checkpoint.json              the manifest; names the files that count
    path/<id>-<n>.safetensors         those files; each replica that has variables writes one, the notebook another
    path/lock                         locked while somebody writes, with the id in it

A process that is killed leaves files that no manifest names. Who saves to the same path next removes them.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workbench.checkpoint.folder import LocalFolder, folder_at, joined, storage
from workbench.checkpoint.manifest import NAME, SHARD, Manifest, Part, SavedArray, Shard, read_manifest
from workbench.checkpoint.shard_writer import (
    LOCK,
    ShardWriter,
    begin_shard,
    drop_shard,
    file_in,
    shard_name,
    shard_report,
)
from workbench.checkpoint.state import Leaf, State, host_array
from workbench.checkpoint.tensor_file import TensorFile, stored_form
from workbench.data.stored.locks import FileLock
from workbench.distribute.arrays.as_array import Array
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.variable import Variable
from workbench.errors import FailedPreconditionError, NotFoundError, WorkbenchError
from workbench.faults import fault

_POLL_SECONDS: Final = 0.05
_Entry = tuple[str, Piece | None]


class Save:
    """A checkpoint that is being saved. `begin` takes the snapshot, `finish` writes it.

    Attributes:
      path: Where it is going to be.
      total_bytes: Of all arrays.
    """

    def __init__(self, path: str, state: State, save_counter: int, *, after_ns: int = 0) -> None:
        """Prepares to save.

        Args:
          path: Of the checkpoint's folder, or its URL.
          state: What to save.
          save_counter: For the manifest.
          after_ns: The time in the manifest is later than this one.

        Raises:
          TypeError: If a value is of a dtype that cannot be saved.
        """
        self._folder = folder_at(path)
        self.path = self._folder.name
        self._state = state
        self._counter = save_counter
        self._after_ns = after_ns
        self._id = secrets.token_hex(8)
        self._lock: FileLock | None = None
        self._replicas: list[_ReplicaShards] = []
        self._parts: dict[str, list[Part]] = defaultdict(list)
        self._shards: dict[int, Shard] = {}
        self._own: dict[str, tuple[str, Array]] = {}  # by path: name in the file, array
        self._positions: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._kinds: dict[str, tuple[str, str, tuple[int, ...]]] = {}
        self._writer: ShardWriter | None = None
        for name, leaf in state.leaves.items():
            if leaf.kind in ("variable", "array"):
                _check_dtype(name, leaf)
        self.total_bytes = 0

    @property
    def written_bytes(self) -> int:
        """How much is written."""
        own = 0 if self._writer is None else self._writer.written_bytes
        return own + sum(one.written_bytes for one in self._replicas)

    def begin(self) -> None:
        """Takes the snapshot: what is assigned from now on is not in the checkpoint.

        Raises:
          FailedPreconditionError: If somebody else is writing there, or the path is that of a file.
          StorageFull: If no space is left.
        """
        self._folder.make()
        self._take_lock()
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
                shards = _ReplicaShards(strategy, held, self._id, number)
                self._replicas.append(shards)
                for name, variable in shards.begin(self.path, self._state):
                    self._hold(name, "variable", variable.numpy())
                number += strategy.num_replicas_in_sync
            self.total_bytes = sum(
                int(np.prod(shape, dtype=np.int64)) * _item_bytes(self._state.leaves[name])
                for name, (_, _, shape) in self._kinds.items()
            )
            if self._own:
                own = list(self._own.values())
                self._writer = ShardWriter(self._folder, shard_name(self._id, number), own)
        except BaseException:
            self._discard()
            raise

    def finish(self, wait_seconds: float = 0.0, stop: threading.Event | None = None) -> None:
        """Waits for the files, then writes the manifest.

        Args:
          wait_seconds: How long replicas may wait for their own files when they are asked; they run no steps
            meanwhile.
          stop: Ends waiting.

        Raises:
          StorageFull: If no space is left.
          WorkbenchError: If a replica is lost meanwhile.
        """
        stop = stop or threading.Event()
        try:
            for shards in self._replicas:
                while not shards.poll(wait_seconds):
                    if stop.wait(0 if wait_seconds else _POLL_SECONDS):
                        raise WorkbenchError(f"saving {self.path!r} was given up: the program ended")
                for number, file, entries in shards.files():
                    self._add_file(number, shard_name(self._id, number), file, entries)
            if self._writer is not None:
                while not self._writer.wait(_POLL_SECONDS):
                    if stop.is_set():
                        raise WorkbenchError(f"saving {self.path!r} was given up: the program ended")
                if self._writer.error is not None:
                    raise self._writer.error
                assert self._writer.file is not None
                number = max(self._shards, default=-1) + 1
                self._add_file(
                    number, self._writer.name, self._writer.file, [(name, None) for name in self._own]
                )
            self._commit()
        except BaseException:
            self._discard()
            raise

    def _commit(self) -> None:
        for shard in self._shards.values():
            try:
                size = self._folder.size(shard.name)
            except NotFoundError:
                size = -1
            if size != shard.bytes:
                raise WorkbenchError(
                    f"{shard.name} in {self.path!r} has {size:,} bytes here, and {shard.bytes:,} were written by a "
                    f"replica; save to a folder that all hosts share, or to a URL"
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
        )
        self._folder.replace(NAME, manifest.to_bytes())
        fault("checkpoint.committed")
        keep = {shard.name for shard in manifest.shards}
        for name in self._folder.names():
            if (
                SHARD.fullmatch(name) and name not in keep
            ):  # of the checkpoint that was here, or of a killed process
                self._folder.remove(name)
            elif name.startswith(f"{NAME}."):
                self._folder.remove(name)
        fault("checkpoint.cleaned")
        self._release()

    def _add_variable(
        self, name: str, variable: Variable, pieces: dict[DescribedStrategy, list[tuple[str, Piece]]]
    ) -> None:
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

    def _add_file(self, number: int, name: str, file: TensorFile, entries: list[_Entry]) -> None:
        self._shards[number] = Shard(name, file.bytes, file.header_bytes, file.header_checksum)
        for (path, piece), stored in zip(entries, file.arrays, strict=True):
            if not path:
                continue
            shape = self._kinds[path][2] if piece is None else piece.shape
            start = (0,) * len(shape) if piece is None else piece.start
            self._parts[path].append(Part(number, start, shape, stored))

    def _take_lock(self) -> None:
        if not isinstance(self._folder, LocalFolder):  # nothing locks there: who saves last wins, as a whole
            with self._folder.create(LOCK) as file:
                file.write(self._id.encode())
            return
        path = joined(self.path, LOCK)
        try:
            self._lock = FileLock(path, wait=False)
        except BlockingIOError:
            raise FailedPreconditionError(
                f"somebody else is saving to {self.path!r} at this moment; save to another path, or later"
            ) from None
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

    def _discard(self) -> None:
        """Removes what was written, unless it counts."""
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


class _ReplicaShards:
    """The files that the replicas of one strategy write."""

    def __init__(
        self, strategy: DescribedStrategy, held: list[tuple[str, Piece]], save: str, first: int
    ) -> None:
        self._strategy = strategy
        self._save = save
        self._first = first
        self._entries: list[list[_Entry]] = [[] for _ in range(strategy.num_replicas_in_sync)]
        loads = [0] * len(self._entries)
        for name, piece in sorted(held, key=lambda one: -int(np.prod(one[1].shape))):
            rank = min(piece.ranks, key=lambda one: loads[one])
            loads[rank] += int(np.prod(piece.shape)) + 1
            self._entries[rank].append((name, piece))
        self._files: dict[int, TensorFile] = {}
        self._waiting: list[int] = []
        self._written = [0] * len(self._entries)

    @property
    def written_bytes(self) -> int:
        return sum(self._written)

    def begin(self, folder: str, state: State) -> list[tuple[str, Variable]]:
        """Has the replicas begin; returns the variables of those that do not see the folder."""
        assigned = [
            [(tensor_name(name, piece, state), piece.key) for name, piece in entries if piece is not None]
            for entries in self._entries
        ]
        sees = self._strategy.run_internal(begin_shard, (folder, self._save, self._first, assigned)).values()
        unseen: list[tuple[str, Variable]] = []
        for rank, entries in enumerate(self._entries):
            if sees[rank]:
                self._waiting += [rank] if entries else []
                continue
            unseen += [(name, state.leaves[name].value) for name, _ in entries]
            self._entries[rank] = []
        split = {name for name, _ in unseen}
        for entries in self._entries:  # a value of which one part comes here comes whole
            entries[:] = [("" if name in split else name, piece) for name, piece in entries]
        return list(dict(unseen).items())

    def poll(self, wait_seconds: float) -> bool:
        """Asks how far they are; returns whether all have ended.

        Raises:
          WorkbenchError: If one has failed, or is lost.
        """
        if not self._waiting:
            return True
        waiting = list(self._waiting)
        reports = _run_quietly(self._strategy, shard_report, (self._save, wait_seconds), waiting)
        failure: WorkbenchError | None = None
        for rank, report in zip(waiting, reports, strict=True):
            try:
                self._written[rank], file = file_in(report)
            except WorkbenchError as error:
                failure = failure or error
                self._waiting.remove(rank)
                continue
            if file is not None:
                self._files[rank] = file
                self._waiting.remove(rank)
        if failure is not None:
            raise failure
        return not self._waiting

    def files(self) -> list[tuple[int, TensorFile, list[_Entry]]]:
        """Number, file and what is in it, of each replica that has written one."""
        return [(self._first + rank, file, self._entries[rank]) for rank, file in sorted(self._files.items())]

    def drop(self) -> None:
        """Has the replicas give up."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            with contextlib.suppress(WorkbenchError):  # one that is lost writes nothing
                _run_quietly(self._strategy, drop_shard, (self._save,), waiting)


def has_components(variable: Variable) -> bool:
    """Whether a variable is what its replicas have, without a common value."""
    return (
        variable.synchronization is VariableSynchronization.ON_READ
        and variable.aggregation is VariableAggregation.NONE
        and variable.placement is not None
        and variable.placement.by_replica
    )


def tensor_name(path: str, piece: Piece, state: State) -> str:
    """The name of a piece in its file: the path in the state, with the place where it is not all."""
    variable = state.leaves[path].value
    if piece.shape == variable.shape:
        return path
    spans = (f"{start}:{start + size}" for start, size in zip(piece.start, piece.shape, strict=True))
    return f"{path}[{','.join(spans)}]"


def _run_quietly(
    strategy: DescribedStrategy, program: Callable[..., Any], args: tuple[Any, ...], ranks: list[int]
) -> list[Any]:
    """Runs a program of which nobody knows: that a replica is lost is told by the user's next step."""
    group = strategy.group
    prepared = group.prepare(program)
    prepared.quiet = True
    handle = group.run(prepared, args, ranks=ranks)
    return [None if handle is None else handle.value(rank) for rank in ranks]


def _check_dtype(name: str, leaf: Leaf) -> None:
    dtype = np.dtype(leaf.value.dtype)
    if stored_form(dtype, ()) is None:
        raise TypeError(
            f"a checkpoint cannot hold {name!r}: {dtype.name} is no dtype of safetensors; save numbers, and texts as "
            f"plain Python values"
        )


def _item_bytes(leaf: Leaf) -> int:
    return int(np.dtype(leaf.value.dtype).itemsize)
