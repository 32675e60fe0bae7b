"""What `wb.inspect` has the replicas compute: facts about their components travel, components do not."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.backends.from_gpu import fetched
from workbench.backends.summary import Summary, summary, what_is_read
from workbench.distribute.variable_programs import component
from workbench.errors import BackendUnavailable

if TYPE_CHECKING:
    from workbench.runtime.env import ReplicaEnv

_CHUNK: Final = 1 << 16  # elements, of which nothing leaves the level-2 cache


def summarise(env: ReplicaEnv, components: list[Any], keys: list[str], exact: bool) -> list[Summary | str]:
    """Facts about each of this replica's components.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
      exact: Read all elements of huge arrays, too.
    """
    values = (*components, *(component(env, key) for key in keys))
    return [described(value, exact=exact) for value in values]


def assigned(env: ReplicaEnv, components: list[Any], keys: list[str], exact: bool) -> list[np.ndarray]:
    """How this replica's variables were assigned: the fields of `Written`, and this moment by the same clock."""
    now = time.monotonic_ns()
    return [np.array([*env.store.written(key), now]) for key in keys]


def described(value: Any, *, exact: bool = False) -> Summary | str:
    """Facts about a value, or only its type if it is no array of numbers.

    Raises:
      BackendUnavailable: If it is on a device that this process has no access to.
    """
    try:
        with np.errstate(over="ignore"):  # the spread of huge values is infinite, which the figures show
            return gpu.summary(value) if gpu.is_gpu_array(value) else summary(value, exact=exact)
    except BackendUnavailable:
        raise
    except Exception:  # asked for its numbers, a foreign object may do anything
        return type(value).__name__


def differences(env: ReplicaEnv, components: list[Any], keys: list[str], exact: bool) -> list[float]:
    """The largest difference to replica 0 of each component; NaN where shapes do not allow to tell."""
    values = (*components, *(component(env, key) for key in keys))
    parts = [value if exact or gpu.is_gpu_array(value) else what_is_read(value) for value in values]
    with env.communicator.internal("inspect"):
        firsts = [env.communicator.broadcast(part, 0, site="wb.inspect") for part in parts]
    return [largest_difference(part, first) for part, first in zip(parts, firsts, strict=True)]


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
        buffersize=_CHUNK,
    )
    return max((_largest_gap(x, y) for x, y in pieces), default=0.0)


def _largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # infinities of one sign are equal, which `same` knows
        gaps = np.where(same, 0.0, np.abs(a - b))
    return float(np.max(np.where(np.isnan(gaps), math.inf, gaps), initial=0.0))
