"""Programs of a strategy with central storage that create and update variables, for the holder and other replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.library import Library
from workbench.backends.numpy import view
from workbench.distribute.arrays.as_array import Array
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables import programs
from workbench.distribute.variables.central_memory import CentralMemory, CentralValue, MappedMemory, Place
from workbench.distribute.variables.programs import Update

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

Kind = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of a variable."""
_MEMORY = "central memory"  # key in the store; keys of variables look different
_SITE = "central storage"


def hold(env: ReplicaEnv, key: str, array: Array, forgotten: Sequence[str], library: Library) -> Place:
    """Creates a variable for all replicas, on the holder; returns its place.

    Args:
      env: The replica that holds the variables.
      key: Key of the variable.
      array: Its initial value.
      forgotten: Keys of variables that the driver has dropped.
      library: Array library of the variable.
    """
    programs.forget(env, forgotten)
    return _put(env, key, array, library)


def follow(
    env: ReplicaEnv, key: str, place: Place, kind: Kind, forgotten: Sequence[str], library: Library
) -> None:
    """Creates a variable on a replica other than the holder: records its place.

    Args:
      env: A replica that does not hold the variables.
      key: Key of the variable.
      place: Its place at the holder.
      kind: Its shape and dtype.
      forgotten: Keys of variables that the driver has dropped.
      library: Array library of the variable.
    """
    programs.forget(env, forgotten)
    _follow(env, key, place, kind, library)


def update(env: ReplicaEnv, key: str, how: Update, value: Any) -> Place:
    """Updates a variable on the holder; returns the place of the new value.

    Args:
      env: The replica that holds the variables.
      key: Key of the variable.
      how: The operation, such as "assign_add".
      value: An array of the variable's shape, or rows.
    """
    held = programs.stored(env, key)
    if not isinstance(value, IndexedSlices):
        value = np.asarray(view(fetched(value)))
    return _put(env, key, programs.updated(held.array, how, value), held.library)


def follow_updates(env: ReplicaEnv, places: Mapping[str, Place]) -> None:
    """Records the places of new values on replicas other than the holder."""
    for key, place in places.items():
        held = programs.stored(env, key)
        _follow(env, key, place, (held.array.shape, held.array.dtype), held.library)


def update_together(env: ReplicaEnv, key: str, how: Update, value: Any, holder: int) -> None:
    """Updates a variable in a replica function. All replicas call it; only the holder must pass the value.

    Args:
      env: The replica.
      key: Key of the variable.
      how: The operation, such as "assign_add".
      value: An array of the variable's shape, or rows; used on the holder.
      holder: Rank of the replica that holds the variables.
    """
    mine = update(env, key, how, value) if env.rank == holder else None
    place = env.communicator.broadcast(mine, holder, site=_SITE)
    if env.rank != holder:
        follow_updates(env, {key: place})


def reseed(env: ReplicaEnv, kinds: Mapping[str, Kind], root: int, holder: int, library: Library) -> None:
    """After replicas were replaced, copies the values that the surviving replica `root` can still read to the holder.

    Args:
      env: The replica.
      kinds: Shape and dtype of each variable, by key.
      root: Rank of the survivor.
      holder: Rank of the replica that will hold the variables.
      library: Array library of the variables.
    """
    for key, kind in kinds.items():
        mine = programs.stored(env, key).array if env.rank == root else None
        with env.communicator.internal("recovery"):
            array = env.communicator.broadcast(mine, root, site="recovery")
            mine = _put(env, key, array, library) if env.rank == holder else None
            place = env.communicator.broadcast(mine, holder, site="recovery")
        if env.rank != holder:
            _follow(env, key, place, kind, library)


def values(env: ReplicaEnv) -> dict[str, CentralValue]:
    """The values of all variables, by key."""
    return {str(key): value for key, value in env.store.items() if type(value) is CentralValue}


def changed(env: ReplicaEnv, before: Mapping[str, CentralValue]) -> dict[str, Place]:
    """The places of values that have changed since `values` returned `before`."""
    return {key: value.place for key, value in values(env).items() if before.get(key) is not value}


def _put(env: ReplicaEnv, key: str, array: Array, library: Library) -> Place:
    memory = env.store.get(_MEMORY)
    if type(memory) is not CentralMemory:  # None, or mapped from a replica that was the holder before
        memory = env.store[_MEMORY] = CentralMemory()
    place, there = memory.put(array)
    env.store[key] = CentralValue(place, there, library)
    return place


def _follow(env: ReplicaEnv, key: str, place: Place, kind: Kind, library: Library) -> None:
    memory = env.store.get(_MEMORY)
    if memory is None or memory.name != tuple(place[:3].tolist()):
        memory = env.store[_MEMORY] = MappedMemory(place)
    env.store[key] = CentralValue(place, memory.at(place, *kind), library)
