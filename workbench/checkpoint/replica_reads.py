"""ReplicaReads: the notebook's side of variables that replicas read from a checkpoint themselves."""

from __future__ import annotations

import contextlib
import secrets
from typing import Final

from workbench.checkpoint.folder import Folder
from workbench.checkpoint.manifest import Manifest, SavedArray, Shard
from workbench.checkpoint.shard_reader import (
    LOST,
    UNSEEN,
    Wanted,
    begin_read,
    forget_read,
    read_report,
    take_read,
)
from workbench.checkpoint.state import Leaf
from workbench.checkpoint.transfer import Transfer
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.variables.variable import Variable
from workbench.errors import CheckpointInvalid, WorkbenchError

_WAIT_SECONDS: Final = 0.2
_DETOURS: Final = {
    UNSEEN: "the files cannot be seen on {}",
    LOST: "a replica was lost while it read them on {}",
}
"""Why the notebook reads instead of the replicas."""


class ReplicaReads:
    """Variables that replicas read from the files themselves, so that their values do not pass through the notebook.

    Attributes:
      paths: The paths of these variables, without those in files that a replica does not see and those that were
        being read when a replica was lost.
    """

    def __init__(
        self, folder: Folder, manifest: Manifest, leaves: dict[str, Leaf], transfer: Transfer
    ) -> None:
        """Lets the replicas read.

        Args:
          folder: The folder of the checkpoint.
          manifest: The manifest of the checkpoint.
          leaves: The leaves to restore, by path.
          transfer: Gets the progress.

        Raises:
          CheckpointInvalid: if a file is damaged.
        """
        self.paths: set[str] = set()
        self._variables: dict[DescribedStrategy, list[Variable]] = {}
        by_strategy: dict[DescribedStrategy, dict[str, Variable]] = {}
        for path, leaf in leaves.items():
            variable = leaf.value
            if not isinstance(variable, Variable) or variable.strategy is None:
                continue
            if _is_read_by_replicas(variable, manifest.arrays[path]):
                by_strategy.setdefault(variable.strategy, {})[path] = variable
        # Different names, because replicas of several strategies may be in one process.
        self._names = {strategy: secrets.token_hex(8) for strategy in by_strategy}
        try:
            for strategy, variables in by_strategy.items():
                self._variables[strategy] = list(variables.values())
                told = self._read(strategy, folder, _wanted(manifest, variables), transfer)
                if problem := next((text for text in told if text and text not in _DETOURS), ""):
                    raise CheckpointInvalid(problem)
                if any(told):
                    del self._variables[strategy]
                    devices = list(zip(strategy.devices, told, strict=True))
                    why = " and ".join(
                        reason.format(
                            ", ".join(dict.fromkeys(one.host for one, text in devices if text == what))
                        )
                        for what, reason in _DETOURS.items()
                        if what in told
                    )
                    read = sum(
                        part.stored.bytes for path in variables for part in manifest.arrays[path].parts
                    )
                    transfer.detour(read, why)
                    strategy.run_internal(forget_read, (self._names[strategy],))
                else:
                    self.paths |= variables.keys()
        except BaseException:
            self.forget()
            raise

    def _read(
        self,
        strategy: DescribedStrategy,
        folder: Folder,
        wanted: list[tuple[int, Shard, list[Wanted]]],
        transfer: Transfer,
    ) -> list[str]:
        """Lets a strategy's replicas read the files; returns each replica's problem."""
        files = [(shard, entries) for _, shard, entries in wanted]
        strategy.run_internal(begin_read, (folder.name, self._names[strategy], files))
        before = transfer.done_bytes
        while True:
            told = strategy.run_internal(read_report, (self._names[strategy], _WAIT_SECONDS))
            reports = list(zip(*(part.values() for part in told), strict=True))
            read = min(read_bytes for _, read_bytes, _, _ in reports)  # every replica reads all files
            transfer.move(before + read, {wanted[number][0] for ended, _, number, _ in reports if not ended})
            if all(ended for ended, *_ in reports):
                return [problem for *_, problem in reports]

    def take(self) -> None:
        """Assigns the values to the variables."""
        for strategy, variables in self._variables.items():
            library = strategy.library if strategy.devices[0].kind != "TPU" else "numpy"
            strategy.run_internal(take_read, (self._names[strategy], library))
            for variable in variables:  # including those lost with all replicas
                if variable not in strategy.kept:
                    strategy.kept.add(variable)

    def forget(self) -> None:
        """Drops the values that the replicas have read."""
        for strategy in self._variables:
            with contextlib.suppress(WorkbenchError):
                strategy.run_internal(forget_read, (self._names[strategy],))


def _is_read_by_replicas(variable: Variable, saved: SavedArray) -> bool:
    """Whether each replica holds the whole variable, and one file has its whole value."""
    placement = variable.placement
    return (
        placement is not None
        and placement.by_replica
        and bool(placement.pieces(variable))
        and saved.kind != "components"
        and len(saved.parts) == 1
    )


def _wanted(manifest: Manifest, variables: dict[str, Variable]) -> list[tuple[int, Shard, list[Wanted]]]:
    by_shard: dict[int, list[Wanted]] = {}
    for path, variable in variables.items():
        (part,) = manifest.arrays[path].parts
        entry = Wanted(variable.description.key, variable.dtype, variable.shape, part.stored)
        by_shard.setdefault(part.shard, []).append(entry)
    for entries in by_shard.values():
        entries.sort(key=lambda entry: entry.stored.offset)
    return [(number, manifest.shards[number], entries) for number, entries in sorted(by_shard.items())]
