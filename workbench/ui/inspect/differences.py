"""How far components are apart that should be equal: found out where they are, of what differs only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.backends.from_gpu import fetched
from workbench.backends.stretches import STRETCH, numbers_read, stretches
from workbench.distribute.variables.programs import component

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

_MOST_COMPARED: Final = (1 << 24) // STRETCH  # stretches of one component


class Apart(NamedTuple):
    """What is compared of components that are not equal.

    Attributes:
      numbers: Stretches of each component; empty for all of it.
      compared: How many elements these have.
      differing: How many elements there are in all stretches that are known to differ somewhere.
    """

    numbers: np.ndarray
    compared: int
    differing: int


def apart(size: int, checksums: Sequence[np.ndarray], *, exact: bool) -> Apart:
    """What to compare of arrays of so many elements, by the checksums of each that were made when it was read."""
    first = checksums[0]
    if not len(first) or any(each.shape != first.shape for each in checksums):
        return Apart(np.empty(0, np.int64), size, size)
    differs = np.any([each != first for each in checksums], axis=(0, 2))
    numbers = np.array(numbers_read(size, exact=exact))[differs]
    chosen = numbers if exact else numbers[:: max(1, -(-len(numbers) // _MOST_COMPARED))]
    return Apart(chosen, min(size, len(chosen) * STRETCH), min(size, len(numbers) * STRETCH))


def differences(
    env: ReplicaEnv, components: list[Any], keys: list[str], numbers: list[np.ndarray]
) -> list[float]:
    """The largest difference to replica 0 of each component; all have the shape of replica 0's.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
      numbers: Which stretches of each to compare; empty for all of it.
    """
    values = (*components, *(component(env, key) for key in keys))
    parts = [_part(value, wanted) for value, wanted in zip(values, numbers, strict=True)]
    with env.communicator.internal("inspect"):
        return [
            largest_difference(part, env.communicator.broadcast(part, 0, site="wb.inspect")) for part in parts
        ]


def _part(value: Any, numbers: np.ndarray) -> Any:
    if gpu.is_gpu_array(value) or not len(numbers):
        return value
    return np.concatenate(list(stretches(backend.view(value), numbers.tolist())))


def largest_difference(one: Any, other: Any) -> float:
    """max|one - other|: NaNs in the same places count as equal, in different ones as infinitely far apart."""
    a, b = backend.view(fetched(one)), backend.view(fetched(other))
    if a.shape != b.shape:
        return math.nan
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    pieces = np.nditer(
        [a, b],
        ["external_loop", "buffered", "zerosize_ok"],
        [["readonly"], ["readonly"]],
        op_dtypes=[wide, wide],
        order="C",
        casting="unsafe",
        buffersize=STRETCH,
    )
    return max((_largest_gap(x, y) for x, y in pieces), default=0.0)


def _largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):  # of infinities
        gaps = np.abs(a - b)
        largest = float(gaps.max(initial=0.0))
    if not math.isnan(largest):
        return largest
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.where(same, 0.0, np.where(np.isnan(gaps), math.inf, gaps)).max())
