"""Restores from a checkpoint: compares and reads everything before it changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench.checkpoint.folder import Folder
from workbench.checkpoint.manifest import Manifest, SavedArray, dtype_of
from workbench.checkpoint.replica_reads import ReplicaReads
from workbench.checkpoint.replica_shards import has_components
from workbench.checkpoint.shard_reader import (
    damaged,
    open_shard,
)
from workbench.checkpoint.state import Leaf, State, like
from workbench.checkpoint.tensor_file import read_array
from workbench.checkpoint.transfer import Transfer
from workbench.distribute.arrays.as_array import Array
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.values.distributed_values import PerReplica
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.variable import Variable
from workbench.errors import CheckpointInvalid, InvalidArgumentError, UnavailableError

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored; the methods are those of TensorFlow's load status.

    Attributes:
      path: The checkpoint; "" if none was given.
      matched: Paths that were restored.
      missing: Paths in the program that the checkpoint does not have; they are unchanged.
      unexpected: Paths in the checkpoint that the program does not have.
    """

    path: str
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]

    def assert_consumed(self) -> Restored:
        """Makes sure that program and checkpoint have the same paths.

        Raises:
          AssertionError: if they differ.
        """
        return self._require(self.missing + self.unexpected)

    def assert_existing_objects_matched(self) -> Restored:
        """Makes sure that all of the program's state was restored.

        Raises:
          AssertionError: if it was not.
        """
        return self._require(self.missing)

    def assert_nontrivial_match(self) -> Restored:
        """Makes sure that something was restored.

        Raises:
          AssertionError: if nothing was.
        """
        self._require(())
        if not self.matched:
            raise AssertionError(
                f"nothing was restored from {self.path!r}: program and checkpoint have no path alike"
            )
        return self

    def expect_partial(self) -> Restored:
        """Does nothing: `restore(path, expect_partial=True)` allows differences."""
        return self

    def _require(self, different: tuple[str, ...]) -> Restored:
        if not self.path:
            raise AssertionError("no checkpoint was given (restore(None)), so nothing was restored")
        if different:
            raise AssertionError(
                f"not restored from {self.path!r}: {', '.join(map(repr, different[:_SHOWN]))}"
            )
        return self


def restore(
    folder: Folder, manifest: Manifest, state: State, *, expect_partial: bool
) -> tuple[Restored, dict[str, Any]]:
    """Restores variables and positions.

    Args:
      folder: The folder of the checkpoint.
      manifest: The manifest of the checkpoint.
      state: The state of the program.
      expect_partial: Whether program and checkpoint may have paths that the other does not have.

    Returns:
      What was restored, and the values that are neither variables nor iterators, by path.

    Raises:
      InvalidArgumentError: if program and checkpoint differ; the message names all differences.
      CheckpointInvalid: if a file is damaged or missing; nothing has changed.
    """
    saved = manifest.arrays.keys() | manifest.values.keys() | manifest.positions.keys()
    missing = tuple(path for path in state.leaves if path not in saved)
    unexpected = tuple(sorted(saved - state.leaves.keys()))
    both = {path: leaf for path, leaf in state.leaves.items() if path in saved}
    different = [text for path, leaf in both.items() if (text := _difference(path, leaf, manifest))]
    if different or ((missing or unexpected) and not expect_partial):
        raise InvalidArgumentError(_told(folder.name, different, missing, unexpected, expect_partial))
    transfer = Transfer("restore", folder.name, state.strategies())
    try:
        new = _restored(folder, manifest, both, transfer)
    except BaseException as error:
        transfer.end(error)
        raise
    transfer.end()
    return Restored(folder.name, tuple(both), missing, unexpected), new


def _restored(
    folder: Folder, manifest: Manifest, both: dict[str, Leaf], transfer: Transfer
) -> dict[str, Any]:
    """Restores what both the program and the checkpoint have.

    Returns the values that are neither variables nor iterators, by path.
    """
    parts = [part for path in both if path in manifest.arrays for part in manifest.arrays[path].parts]
    transfer.begin(sum(part.stored.bytes for part in parts), len({part.shard for part in parts}))
    on_replicas = ReplicaReads(folder, manifest, both, transfer)
    try:
        here = [path for path in both if path in manifest.arrays and path not in on_replicas.paths]
        arrays = read_arrays(folder, manifest, here, transfer)
    except BaseException:
        on_replicas.forget()
        raise
    on_replicas.take()
    new: dict[str, Any] = {}
    for path, leaf in both.items():
        if leaf.kind == "variable" and path in arrays:
            assign(leaf.value, arrays[path], manifest.arrays[path])
        elif leaf.kind == "array":
            new[path] = like(leaf.value, arrays[path])
        elif leaf.kind == "value":
            new[path] = manifest.values[path]
    for path, leaf in both.items():
        if leaf.kind == "iterator":
            leaf.value.go_to(manifest.positions[path])
    return new


def read_arrays(folder: Folder, manifest: Manifest, paths: list[str], transfer: Transfer) -> dict[str, Array]:
    """Reads arrays of a checkpoint, by path.

    Args:
      folder: The folder of the checkpoint.
      manifest: The manifest of the checkpoint.
      paths: The paths of the arrays.
      transfer: Gets the progress.

    Raises:
      CheckpointInvalid: if a file is damaged or missing.
      UnavailableError: if the server of a URL cannot be reached.
    """
    arrays: dict[str, Array] = {}
    by_shard: dict[int, list[tuple[str, int]]] = {}
    for path in paths:
        for number, part in enumerate(manifest.arrays[path].parts):
            by_shard.setdefault(part.shard, []).append((path, number))
    for shard, wanted in sorted(by_shard.items()):

        def count(count_bytes: int, shard: int = shard) -> None:
            transfer.move(transfer.done_bytes + count_bytes, (shard,))

        name = manifest.shards[shard].name
        try:
            with open_shard(folder, manifest.shards[shard]) as file:
                wanted.sort(key=lambda one: manifest.arrays[one[0]].parts[one[1]].stored.offset)
                for path, number in wanted:
                    _place(arrays, path, manifest.arrays[path], number, file, count)
        except UnavailableError:  # an unreachable file need not be damaged
            raise
        except (CheckpointInvalid, ValueError, OSError) as error:
            raise CheckpointInvalid(damaged(folder.name, manifest.shards[shard], error), file=name) from error
    return {path: arrays[path] if path in arrays else _empty(manifest.arrays[path]) for path in paths}


def assign(variable: Variable | ShardedVariable, array: Array, saved: SavedArray) -> None:
    """Assigns a value from a checkpoint to a variable, whatever strategy it was saved with.

    Args:
      variable: The variable.
      array: The value, of the variable's shape.
      saved: How the checkpoint describes it.
    """
    if isinstance(variable, ShardedVariable):
        variable.assign(array)
        return
    strategy = variable.strategy
    if strategy is not None and variable.placement is not None and variable not in strategy.kept:
        # The variable was lost together with its replicas.
        variable.placement.create(variable, np.zeros(variable.shape, variable.dtype))
    if saved.kind == "components":
        variable.assign(PerReplica(tuple(array)))
    elif (
        variable.synchronization is VariableSynchronization.ON_READ
        and variable.aggregation is VariableAggregation.SUM
        and variable.strategy is not None
        and variable.strategy.num_replicas_in_sync > 1
    ):  # replica 0 gets the whole value: equal shares would truncate integers
        rest = [np.zeros_like(array)] * (variable.strategy.num_replicas_in_sync - 1)
        variable.assign(PerReplica((array, *rest)))
    else:
        variable.assign(array)


def _place(
    arrays: dict[str, Array],
    path: str,
    saved: SavedArray,
    number: int,
    file: Any,
    count_bytes: Callable[[int], None],
) -> None:
    part = saved.parts[number]
    array = read_array(file, part.stored, dtype_of(saved.dtype), part.shape, count_bytes)
    if part.shape == saved.shape:
        arrays[path] = array
        return
    whole = arrays.get(path)
    if whole is None:
        whole = arrays[path] = _empty(saved)
    whole[tuple(slice(start, start + size) for start, size in zip(part.start, part.shape, strict=True))] = (
        array
    )


def _empty(saved: SavedArray) -> Array:
    return np.zeros(saved.shape, dtype_of(saved.dtype))


def _difference(path: str, leaf: Leaf, manifest: Manifest) -> str:
    """How the checkpoint's entry differs from the program's at a common path; "" if it does not."""
    kind = "array" if path in manifest.arrays else "value" if path in manifest.values else "iterator"
    wanted = "array" if leaf.kind == "variable" else leaf.kind
    if kind != wanted:
        return f"{path}: {kind} in the checkpoint, {leaf.kind} in the program"
    if kind == "iterator":
        try:
            leaf.value.check(manifest.positions[path])
        except InvalidArgumentError as error:
            return f"{path}: {error}"
    if kind != "array":
        return ""
    saved = manifest.arrays[path]
    dtype, shape = np.dtype(leaf.value.dtype).name, tuple(leaf.value.shape)
    components = leaf.kind == "variable" and has_components(leaf.value)
    if components:
        shape = (leaf.value.strategy.num_replicas_in_sync, *shape)
    if (saved.kind == "components") != components:
        return f"{path}: {'components' if saved.kind == 'components' else 'one value'} in the checkpoint, not so here"
    if (saved.dtype, saved.shape) == (dtype, shape):
        return ""
    return f"{path}: {_extent(saved.dtype, saved.shape)} in the checkpoint, {_extent(dtype, shape)} in the program"


def _told(
    name: str,
    different: list[str],
    missing: tuple[str, ...],
    unexpected: tuple[str, ...],
    expect_partial: bool,
) -> str:
    lines = [f"the checkpoint {name!r} does not fit the program; nothing was restored"]
    lines += _listed("different", different)
    if not expect_partial:
        lines += _listed("only in the program", missing)
        lines += _listed("only in the checkpoint", unexpected)
        if not different:
            lines.append("to restore what both have: restore(path, expect_partial=True)")
    return "\n  ".join(lines)


def _listed(title: str, entries: list[str] | tuple[str, ...]) -> list[str]:
    more = [f"... and {len(entries) - _SHOWN} more"] if len(entries) > _SHOWN else []
    return [f"{title}: {entry}" for entry in entries[:_SHOWN]] + more


def _extent(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"
