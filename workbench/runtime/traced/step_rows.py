"""StepRows: the results of traced programs, kept once for all replicas of a worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from workbench.runtime.traced.slices import SlicesRows

if TYPE_CHECKING:
    from workbench.backends.jax.mesh import Rows
    from workbench.runtime.traced.group_programs import GroupPrograms

Key = tuple[int, int]


class StepRows:
    """Results of traced programs, by the serial of the step and the number of the leaf, for all devices of a worker.

    Written by the thread that runs the programs, while the devices' threads are idle.
    """

    def __init__(self) -> None:
        self._kept: dict[Key, tuple[GroupPrograms, Any]] = {}

    def keep(self, key: Key, known: GroupPrograms, leaf: Any) -> None:
        """Keeps a leaf of a result: `Rows`, `SlicesRows`, or a value that is the same on all replicas."""
        self._kept[key] = known, leaf

    def rows(self, key: Key, known: GroupPrograms) -> Rows | None:
        """The rows of a value on this group's replicas, if it is kept here as rows, else None."""
        whose, leaf = self._kept.get(key, (None, None))
        return leaf if whose is known and type(leaf).__name__ == "Rows" else None

    def component(self, key: Key, device: int) -> Any:
        """One device's component of a value.

        Raises:
          KeyError: if nothing is kept as `key`, or nothing for that device.
        """
        known, leaf = self._kept[key]
        position = known.positions[device]
        if type(leaf) is SlicesRows:
            return leaf.fixed.with_arrays(leaf.values.row(position), leaf.indices.row(position))
        return leaf.row(position) if type(leaf).__name__ == "Rows" else leaf

    def release(self, keys: Iterable[Key]) -> list[Key]:
        """Drops values; returns those that are not kept here."""
        return [key for key in keys if self._kept.pop(key, None) is None]

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)


class DeviceValues(dict[Key, Any]):
    """The values of one device: its own, and its components of those in `StepRows`."""

    def __init__(self, step_rows: StepRows, device: int) -> None:
        super().__init__()
        self._step_rows = step_rows
        self._device = device

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._step_rows

    def __missing__(self, key: Key) -> Any:
        return self._step_rows.component(key, self._device)
