"""What `wb.inspect` has the replicas compute: facts about their components travel, components do not."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.backends.from_gpu import fetched
from workbench.backends.summary import Summary, summary
from workbench.distribute.variable_programs import component

if TYPE_CHECKING:
    from workbench.runtime.env import ReplicaEnv


def summarise(env: ReplicaEnv, components: list[Any], keys: list[str]) -> list[Summary | str]:
    """Facts about each of this replica's components.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
    """
    return [described(value) for value in (*components, *(component(env, key) for key in keys))]


def assigned(env: ReplicaEnv, components: list[Any], keys: list[str]) -> list[np.ndarray]:
    """How this replica's variables were assigned: the fields of `Written`, and this moment by the same clock."""
    now = time.monotonic_ns()
    return [np.array([*env.store.written(key), now]) for key in keys]


def described(value: Any) -> Summary | str:
    """Facts about a value, or only its type if it is no array of numbers."""
    try:
        with np.errstate(over="ignore"):  # the spread of huge values is infinite, which the figures show
            return gpu.summary(value) if gpu.is_gpu_array(value) else summary(value)
    except (TypeError, ValueError):
        return type(value).__name__


def differences(env: ReplicaEnv, components: list[Any], keys: list[str]) -> list[float]:
    """The largest difference to replica 0 of each component; NaN where shapes do not allow to tell."""
    values = [*components, *(component(env, key) for key in keys)]
    with env.communicator.internal("inspect"):
        return [
            largest_difference(value, env.communicator.broadcast(value, 0, site="wb.inspect"))
            for value in values
        ]


def largest_difference(one: Any, other: Any) -> float:
    """max|one - other|: NaNs in the same places count as equal, in different ones as infinitely far apart."""
    a, b = backend.view(fetched(one)), backend.view(fetched(other))
    if a.shape != b.shape:
        return math.nan
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # infinities of one sign are equal, which `same` knows
        gaps = np.where(same, 0.0, np.abs(a - b))
    return float(np.max(np.where(np.isnan(gaps), math.inf, gaps), initial=0.0))
