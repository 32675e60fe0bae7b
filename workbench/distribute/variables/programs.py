"""Programs for variables on replicas. Components are in the replica's store, under the variable's key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.library import Library, owned
from workbench.backends.numpy import require_values, view
from workbench.backends.users_line import Line, apply_at, apply_at_users_line
from workbench.distribute.arrays.as_array import Array, namespace_of
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables.central_memory import CentralValue
from workbench.distribute.variables.scatter import Scatter, scattered
from workbench.errors import FailedPreconditionError

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

Update = Literal["assign", "assign_add", "assign_sub"] | Scatter


def create(
    env: ReplicaEnv, key: str, value: Array, forgotten: Sequence[str], library: Library = "numpy"
) -> None:
    """Creates a variable, and drops those that the driver has dropped.

    Args:
      env: The replica.
      key: Key of the variable.
      value: The initial value of its component.
      forgotten: Keys of variables that the driver has dropped.
      library: Array library of the component.
    """
    forget(env, forgotten)
    env.store[key] = owned(library, value)  # replicas of one process must not share it


def forget(env: ReplicaEnv, forgotten: Sequence[str]) -> None:
    """Drops variables."""
    for old in forgotten:
        if old in env.store:
            del env.store[old]


def read_variable(env: ReplicaEnv, key: str) -> Array:
    """This replica's component in host memory, for the notebook."""
    return np.asarray(view(fetched(component(env, key))))


def component(env: ReplicaEnv, key: str) -> Array:
    """This replica's component, or a copy of the holder's value.

    Raises:
      FailedPreconditionError: if the replica does not have the variable.
    """
    value = stored(env, key)
    array: Array = value.read() if type(value) is CentralValue else value
    return array


def stored(env: ReplicaEnv, key: str) -> Any:
    """The stored form of a variable on the replica: an array, or a `CentralValue`.

    Raises:
      FailedPreconditionError: if the replica does not have the variable.
    """
    try:
        return env.store[key]
    except KeyError:
        name = key.rpartition("@")[0]
        raise FailedPreconditionError(
            f"replica {env.rank} does not hold the variable '{name}:0': it was lost with its worker, or its notebook "
            f"object was deleted; assign a value to it, or create it again"
        ) from None


def update(env: ReplicaEnv, key: str, how: Update, value: Array | IndexedSlices) -> None:
    """Replaces this replica's component by a new array; the old one stays unchanged, for undoing.

    Args:
      env: The replica.
      key: Key of the variable.
      how: The operation, such as "assign_add".
      value: An array of the variable's shape and dtype, or rows.
    """
    if not env.traced:
        require_values(value.values if isinstance(value, IndexedSlices) else value)
    env.store[key] = updated(component(env, key), how, value)


def update_at_line(env: ReplicaEnv, line: Line | None, program: Callable[..., Any], *args: Any) -> Any:
    """Runs a program as if called from `line` of the notebook, which NumPy's warnings then name.

    Args:
      env: The replica.
      line: The line of the notebook; None if it is unknown.
      program: One of this file's programs.
      *args: Its arguments after `env`.
    """
    return apply_at(line)(program, env, *args)


def updated(old: Array, how: Update, value: Array | IndexedSlices) -> Array:
    """Returns `old` after an update, as a new array.

    Args:
      old: The component before.
      how: The operation, such as "assign_add".
      value: An array of the same shape and dtype, or rows.
    """
    if isinstance(value, IndexedSlices):
        return scattered(old, how, value)
    xp = namespace_of(old)
    if xp is not np:
        if how == "assign":
            return xp.array(value, dtype=old.dtype)  # type: ignore[no-any-return]
        change = xp.asarray(value, dtype=old.dtype)
        result: Array = old + change if how == "assign_add" else old - change
        return result
    if how == "assign":
        return np.array(value)
    combine = np.add if how == "assign_add" else np.subtract
    return np.asarray(apply_at_users_line()(combine, old, value, dtype=old.dtype))


def reseed(env: ReplicaEnv, variables: Sequence[tuple[str, str]], root: int, lost: Sequence[int]) -> None:
    """Sends the components of replica `root` to replaced replicas; see `recovery`.

    Args:
      env: The replica.
      variables: (key, policy) of each variable; policy "copy", or "zero" for components that are summed over replicas.
      root: A surviving replica.
      lost: Replicas without components.
    """
    for key, policy in variables:
        mine = component(env, key) if env.rank == root else None
        with env.communicator.internal("recovery"):
            seed = env.communicator.broadcast(mine, root, site="recovery")
        if env.rank in lost:
            xp = namespace_of(seed)
            env.store[key] = xp.zeros_like(seed) if policy == "zero" else xp.array(seed)
