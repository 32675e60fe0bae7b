"""What replicas compute for `wb.inspect`: they send facts about their components, not the components."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import cupy_contents
from workbench.backends.summary import Read, Summary, read
from workbench.distribute.variables.programs import component
from workbench.errors import BackendUnavailable

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv


def summarise(env: ReplicaEnv, components: list[Any], keys: list[str], exact: list[bool]) -> list[Read]:
    """Facts from reading each of this replica's components once.

    Args:
      env: The replica.
      components: Values.
      keys: Names of variables in the replica's store.
      exact: For each component, whether to read all elements, even of a huge array.
    """
    values = (*components, *(component(env, key) for key in keys))
    return [_read(value, exact=all_of_it) for value, all_of_it in zip(values, exact, strict=True)]


def assigned(env: ReplicaEnv, components: list[Any], keys: list[str], _: Any) -> list[np.ndarray]:
    """How this replica's variables were assigned: the fields of `Written`, and the present time by the same clock."""
    now = time.monotonic_ns()
    return [np.array([*env.store.written(key), now]) for key in keys]


def described(value: Any, *, exact: bool = False) -> Summary | str:
    """Facts about a value, or only its type if it is not an array of numbers.

    Raises:
      BackendUnavailable: if it is on a device that this process cannot access.
    """
    return _read(value, exact=exact).summary


def _read(value: Any, *, exact: bool) -> Read:
    try:
        with np.errstate(over="ignore"):  # the spread of huge values is infinite, which the figures show
            return Read(cupy_contents.summary(value)) if gpu.is_gpu_array(value) else read(value, exact=exact)
    except BackendUnavailable:
        raise
    except Exception:  # a foreign object may raise anything when it is converted
        return Read(type(value).__name__)
