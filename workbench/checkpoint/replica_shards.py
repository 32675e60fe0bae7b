"""ReplicaShards: the notebook's side of the part of a checkpoint that a strategy's replicas write."""

from __future__ import annotations

import contextlib
import posixpath
import weakref
from typing import Any, Final

import numpy as np

from workbench.checkpoint.shard_writer import begin_shard, drop_shard, file_in, sees_folder, shard_report
from workbench.checkpoint.state import State
from workbench.checkpoint.tensor_file import TensorFile
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.variable import Variable
from workbench.errors import WorkbenchError

Entry = tuple[str, Piece]
"""An entry of a file: the path in the state, and the piece of a variable."""
_seen: Final[weakref.WeakKeyDictionary[DescribedStrategy, tuple[str, Any, list[bool]]]] = (
    weakref.WeakKeyDictionary()
)
"""By strategy: the parent folder of the last checkpoint, the places of its replicas, and which of them see that folder.
"""


class ReplicaShards:
    """The files that the replicas of one strategy write.

    Attributes:
      unseen: Paths of the variables that are on no replica that sees the folder.
      blind_hosts: The hosts of replicas that do not see the folder.
    """

    def __init__(
        self, strategy: DescribedStrategy, held: list[tuple[str, Piece]], folder: str, save: str, first: int
    ) -> None:
        """Divides the replicas' variables, by bytes, among the replicas that see the folder.

        Args:
          strategy: The strategy of the replicas.
          held: Path in the state and piece of each variable.
          folder: The folder of the checkpoint, with the save's lock in it.
          save: Id of the checkpoint.
          first: Number of the file of replica 0.
        """
        self._strategy = strategy
        self._folder = folder
        self._save = save
        self._first = first
        self._entries: list[list[Entry]] = [[] for _ in range(strategy.num_replicas_in_sync)]
        self._handle: Any = None
        sees = self._which_see()
        self.blind_hosts = sorted(
            {device.host for device, seen in zip(strategy.devices, sees, strict=True) if not seen}
        )
        self.unseen = {name for name, piece in held if not any(sees[rank] for rank in piece.ranks)}
        loads = [0] * len(self._entries)
        for name, piece in sorted(held, key=lambda one: -int(np.prod(one[1].shape))):
            if name in self.unseen:  # if any part goes through the notebook, the whole value does
                continue
            rank = min((one for one in piece.ranks if sees[one]), key=lambda one: loads[one])
            loads[rank] += int(np.prod(piece.shape)) + 1
            self._entries[rank].append((name, piece))
        self._files: dict[int, TensorFile] = {}
        self._waiting: list[int] = []
        self._written = [0] * len(self._entries)

    @property
    def written_bytes(self) -> int:
        """How many bytes they are known to have written."""
        return sum(self._written)

    @property
    def under_way(self) -> list[int]:
        """The numbers of the files that are being written."""
        return [self._first + rank for rank in self._waiting]

    def begin(self, state: State) -> None:
        """Lets the replicas begin."""
        assigned = [
            [(tensor_name(name, piece, state), piece.key) for name, piece in entries]
            for entries in self._entries
        ]
        self._waiting = [rank for rank, entries in enumerate(self._entries) if entries]
        args = (self._folder, self._save, self._first, assigned)
        self._handle = self._strategy.run_internal(begin_shard, args, beside_steps=True)

    def ask(self, wait_seconds: float) -> None:
        """Requests the replicas' progress. They answer between steps, so wait before you call `heard`.

        Args:
          wait_seconds: How long replicas may wait for their own files before they answer; they run no steps
            meanwhile.
        """
        if self._waiting:
            for rank in self._waiting:
                self._handle.value(rank)  # raises the snapshot's error
            self._handle = self._strategy.run_internal(
                shard_report, (self._save, self._first, wait_seconds), ranks=self._waiting, beside_steps=True
            )

    def heard(self) -> bool:
        """Reads the answers; returns whether all replicas have ended.

        Raises:
          WorkbenchError: if one has failed, or is lost.
        """
        failure: WorkbenchError | None = None
        for rank in list(self._waiting):
            try:
                self._written[rank], file = file_in(self._handle.value(rank))
            except WorkbenchError as error:
                if error.replica < 0:
                    error.replica, error.worker = rank, self._strategy.devices[rank].worker
                failure = failure or error
                self._waiting.remove(rank)
                continue
            if file is not None:
                self._files[rank] = file
                self._waiting.remove(rank)
        if failure is not None:
            _seen.pop(self._strategy, None)
            raise failure
        return not self._waiting

    def files(self) -> list[tuple[int, TensorFile, list[Entry]]]:
        """Number, file and entries, for each replica that has written a file."""
        return [(self._first + rank, file, self._entries[rank]) for rank, file in sorted(self._files.items())]

    def drop(self) -> None:
        """Lets the replicas give up."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            with contextlib.suppress(WorkbenchError):  # a lost replica writes nothing
                dropped = self._strategy.run_internal(
                    drop_shard, (self._save, self._first), ranks=waiting, beside_steps=True
                )
                for rank in waiting:
                    dropped.value(rank)

    def _which_see(self) -> list[bool]:
        """Whether each rank's replica sees the folder. They are asked once for all checkpoints in the parent folder.

        Replicas answer only after all steps sent to them. If an answer is out of date, writing fails and reports it.
        """
        group, above = self._strategy.group, posixpath.dirname(self._folder)
        known = _seen.get(self._strategy)
        if known is not None and known[:2] == (above, group.places) and not group.stale:
            return known[2]
        sees: list[bool] = self._strategy.run_internal(sees_folder, (self._folder, self._save)).values()
        _seen[self._strategy] = above, group.places, sees
        return sees


def has_components(variable: Variable | ShardedVariable) -> bool:
    """Whether a variable has only components on its replicas, without a common value."""
    return (
        isinstance(variable, Variable)
        and variable.synchronization is VariableSynchronization.ON_READ
        and variable.aggregation is VariableAggregation.NONE
        and variable.placement is not None
        and variable.placement.by_replica
    )


def tensor_name(path: str, piece: Piece, state: State) -> str:
    """The name of a piece in its file: the path in the state, and for a partial piece its place.

    Args:
      path: Path of the variable in the state.
      piece: The piece.
      state: The state to save.
    """
    variable = state.leaves[path].value
    if piece.shape == variable.shape:
        return path
    spans = (f"{start}:{start + size}" for start, size in zip(piece.start, piece.shape, strict=True))
    return f"{path}[{','.join(spans)}]"
