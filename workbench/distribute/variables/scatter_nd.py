"""Changes elements or slices of a variable by coordinates (as tf.Variable.scatter_nd_add and related methods)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.distribute.arrays.as_array import Array, as_operand
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables.scatter import scattered
from workbench.distribute.variables.scatter_operands import fitted, integers, on_host
from workbench.errors import InvalidArgumentError


def changed(old: Array, how: str, indices: Any, updates: Any, where: str) -> Array:
    """Returns `old` with some elements changed, as a new array; repeated coordinates are applied each time.

    Args:
      old: The array before.
      how: The operation, such as "scatter_add".
      indices: Coordinates, shape `(..., k)`; each denotes a slice of `old` of shape `old.shape[k:]`.
      updates: Shape `indices.shape[:-1] + old.shape[k:]`.
      where: The method and the variable, for messages.

    Raises:
      TypeError: if indices are not integers, or the dtype of `old` cannot hold `updates`.
      ValueError: if shapes do not match.
      InvalidArgumentError: if coordinates are out of range.
    """
    rows, depth = _rows(old.shape, indices, where)
    values: Array = as_operand(updates, old.dtype)
    wanted = (*rows.shape, *old.shape[depth:])
    if tuple(values.shape) != wanted:
        raise ValueError(f"{where}: these indices need values of shape {wanted}, got {tuple(values.shape)}")
    values = fitted(values, old.dtype, where)
    slices = IndexedSlices(values.reshape(rows.size, *old.shape[depth:]), rows.reshape(-1))
    new: Array = scattered(_flat(old, depth), how, slices).reshape(old.shape)
    return new


def gathered(array: Array, indices: Any, where: str) -> Array:
    """The slices at some coordinates.

    Args:
      array: The array.
      indices: See `changed`.
      where: See `changed`.

    Returns:
      An array of shape `indices.shape[:-1] + array.shape[k:]`.

    Raises:
      TypeError: if indices are not integers.
      ValueError: if there are more coordinates than dimensions.
      InvalidArgumentError: if coordinates are out of range.
    """
    rows, depth = _rows(array.shape, indices, where)
    found: Array = _flat(array, depth)[rows]
    return found


def coordinates(indices: Any, where: str) -> Array:
    """Coordinates of the slices that `batch_scatter_update` changes: each index, preceded by its own position.

    Args:
      indices: Shape `(b1, ..., bm, n)`, integers.
      where: See `changed`.

    Returns:
      Shape `(b1, ..., bm, n, m + 1)`.
    """
    own = on_host(integers(indices, where))
    if own.ndim == 0:
        raise ValueError(f"{where}: indices need at least one dimension, got a single number")
    return np.stack([*np.indices(own.shape)[:-1], own], axis=-1)


def _rows(shape: tuple[int, ...], indices: Any, where: str) -> tuple[Array, int]:
    """The slices' numbers, counted over the first dimensions, and the number of these dimensions."""
    places = on_host(integers(indices, where))
    depth = places.shape[-1] if places.ndim else 0
    if not 0 < depth <= len(shape):
        raise ValueError(
            f"{where}: the last dimension of indices holds coordinates, 1 to {len(shape)} of them for a variable of "
            f"shape {shape}; got indices of shape {places.shape}"
        )
    extent = np.array(shape[:depth])
    flat = places.reshape(math.prod(places.shape[:-1]), depth)
    outside = np.flatnonzero(np.any((flat < 0) | (flat >= extent), axis=1))
    if outside.size:
        raise InvalidArgumentError(
            f"{where}: indices[{outside[0]}] = {flat[outside[0]].tolist()} is outside of {tuple(shape[:depth])}"
        )
    steps = np.cumprod([1, *extent[:0:-1]])[::-1]
    rows: Array = (flat @ steps).reshape(places.shape[:-1])
    return rows, depth


def _flat(array: Array, depth: int) -> Array:
    """The array with its first `depth` dimensions merged."""
    return array.reshape(math.prod(array.shape[:depth]), *array.shape[depth:])
