"""How far components that should be equal differ, computed on the replicas."""

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
    """Which parts of unequal components to compare.

    Attributes:
      numbers: Stretches of each component; empty for all of it.
      compared: How many elements these have.
      differing: How many elements are in all stretches that are known to have a difference.
    """

    numbers: np.ndarray
    compared: int
    differing: int


def apart(size: int, checksums: Sequence[np.ndarray], *, exact: bool) -> Apart:
    """What to compare of arrays with `size` elements, by the checksums that were computed when each was read."""
    first = checksums[0]
    if not len(first) or any(each.shape != first.shape for each in checksums):
        return Apart(np.empty(0, np.int64), size, size)
    differs = np.any([each != first for each in checksums], axis=(0, 2))
    numbers = np.array(numbers_read(size, exact=exact))[differs]
    chosen = numbers if exact else numbers[:: max(1, -(-len(numbers) // _MOST_COMPARED))]
    return Apart(chosen, min(size, len(chosen) * STRETCH), min(size, len(numbers) * STRETCH))


class Gap(NamedTuple):
    """How far a component differs from that of replica 0.

    Attributes:
      largest: The largest difference: NaNs in the same places count as equal, in different places as infinite; NaN if
        shapes differ.
      elements: How many of the compared elements differ.
      first: The first index on the first axis at which one differs, -1 if none does.
      last: The last such index.
      rows: How many such indices there are.
    """

    largest: float
    elements: int = 0
    first: int = -1
    last: int = -1
    rows: int = 0


def differences(
    env: ReplicaEnv, components: list[Any], keys: list[str], numbers: list[np.ndarray]
) -> list[np.ndarray]:
    """The gap between each component and replica 0's, as the fields of a `Gap`; all have the shape of replica 0's.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
      numbers: Which stretches of each to compare; empty for all of it.
    """
    values = (*components, *(component(env, key) for key in keys))
    return [_to_first(env, value, wanted) for value, wanted in zip(values, numbers, strict=True)]


def _to_first(env: ReplicaEnv, value: Any, numbers: np.ndarray) -> np.ndarray:
    """The gap to replica 0's component, which is not kept, because it may be as large as the variable."""
    part = _part(value, numbers)
    with env.communicator.internal("inspect"):
        first = env.communicator.broadcast(part, 0, site="wb.inspect")
    return np.array(gap_between(part, first, row=math.prod(np.shape(value)[1:]), numbers=numbers), np.float64)


def _part(value: Any, numbers: np.ndarray) -> Any:
    if gpu.is_gpu_array(value) or not len(numbers):
        return value
    return np.concatenate(list(stretches(backend.view(value), numbers.tolist())))


def gap_between(one: Any, other: Any, *, row: int = 1, numbers: Sequence[int] | np.ndarray = ()) -> Gap:
    """How far two arrays differ.

    Args:
      one: An array, or consecutive stretches of it.
      other: The same of replica 0.
      row: How many elements each index of the first axis of the whole array has.
      numbers: Which stretches these are; empty for all of it.
    """
    a, b = backend.view(fetched(one)), backend.view(fetched(other))
    if a.shape != b.shape:
        return Gap(math.nan)
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
    begin, gap = 0, Gap(0.0)
    # Arrays on GPUs are compared whole, even if only stretches of them were requested.
    starts = (
        np.asarray(numbers, np.int64) * STRETCH if a.ndim == 1 and a.size <= len(numbers) * STRETCH else None
    )
    for x, y in pieces:
        sizes = _sizes(x, y)
        places = begin + np.flatnonzero(sizes)
        begin += len(sizes)
        if not len(places):
            continue
        if starts is not None:
            places = starts[places // STRETCH] + places % STRETCH
        rows = places // max(1, row)
        distinct = 1 + int(np.count_nonzero(np.diff(rows))) - int(rows[0] == gap.last)
        gap = Gap(
            largest=max(gap.largest, float(sizes.max())),
            elements=gap.elements + len(places),
            first=int(rows[0]) if gap.first < 0 else gap.first,
            last=int(rows[-1]),
            rows=gap.rows + distinct,
        )
    return gap


def _sizes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The absolute difference of each pair of elements."""
    with np.errstate(invalid="ignore"):  # between infinities
        sizes: np.ndarray = np.abs(a - b)
        if not math.isnan(float(sizes.max(initial=0.0))):
            return sizes
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(sizes), math.inf, sizes))
