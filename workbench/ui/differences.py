"""How far components are apart that should be equal: found out where they are, of what differs only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.backends.from_gpu import fetched
from workbench.backends.stretches import STRETCH, checksums, numbers_read, stretches
from workbench.distribute.variable_programs import component

if TYPE_CHECKING:
    from workbench.collectives import Communicator
    from workbench.runtime.env import ReplicaEnv

_SITE: Final = "wb.inspect"
_SENT_WHOLE: Final = 1 << 20  # elements
_MOST_COMPARED: Final = (1 << 25) // STRETCH  # stretches of one component


def differences(env: ReplicaEnv, components: list[Any], keys: list[str], exact: bool) -> list[np.ndarray]:
    """How far each component is from that of replica 0.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
      exact: Compare all elements of huge arrays, too.

    Returns:
      Of each three floats: the largest difference, NaN where shapes do not allow to tell; of how many elements that is;
      how many there are in stretches that differ on some replica, among those that were read.
    """
    values = (*components, *(component(env, key) for key in keys))
    with env.communicator.internal("inspect"):
        return [np.array(_to_first(env.communicator, value, exact)) for value in values]


def _to_first(communicator: Communicator, value: Any, exact: bool) -> tuple[float, int, int]:
    if gpu.is_gpu_array(value):
        first = communicator.broadcast(value, 0, site=_SITE)
        return largest_difference(value, first), value.size, value.size
    mine = backend.view(value)
    shape = tuple(communicator.broadcast(np.array(mine.shape, np.int64), 0, site=_SITE).tolist())
    size = math.prod(shape)
    if size <= _SENT_WHOLE:
        return largest_difference(mine, communicator.broadcast(mine, 0, site=_SITE)), size, size
    numbers = numbers_read(size, exact=exact)
    alike = mine.shape == shape
    sums = checksums(mine, numbers) if alike else np.empty((0, 2), np.uint64)
    firsts = communicator.broadcast(sums, 0, site=_SITE)
    differs = (sums != firsts).any(axis=1) if alike else np.zeros(len(numbers), bool)
    [somewhere] = communicator.all_reduce([differs.astype(np.uint8)], "max", site=_SITE)
    apart = np.array(numbers)[somewhere > 0]
    compared = apart if exact else apart[:: max(1, -(-len(apart) // _MOST_COMPARED))]
    parts = list(stretches(mine, compared.tolist())) if alike else []
    own = np.concatenate(parts) if parts else np.empty(0, mine.dtype)
    first = communicator.broadcast(own, 0, site=_SITE)
    gap = largest_difference(own, first) if alike else math.nan
    return gap, min(size, len(compared) * STRETCH), min(size, len(apart) * STRETCH)


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
