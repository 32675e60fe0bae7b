"""Gathers leaves on every replica: checks them, and supports strings, which the collectives do not."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.distribute.arrays.as_array import as_array, as_operand, describe
from workbench.distribute.arrays.host_reduce import axes_text, gather_components, reduce_slices, require_dense
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import as_reduce_op
from workbench.errors import InvalidArgumentError

_OBJECT = np.dtype(object)

if TYPE_CHECKING:
    from workbench.communicators.communicator import Communicator
    from workbench.communicators.core.options import Options
    from workbench.runtime.replica.env import ReplicaEnv


def checked_axis(value: Any, axis: int) -> int:
    """`axis` counted from the front.

    Raises:
      InvalidArgumentError: if `value` is a scalar or has no such axis.
      NotImplementedError: if it is IndexedSlices.
    """
    require_dense(value)
    array = value if hasattr(value, "ndim") else as_array(value)
    if array.ndim == 0:
        raise InvalidArgumentError(
            f"all_gather needs arrays with at least one dimension, got a scalar {value!r:.40}; "
            "give it one with x[np.newaxis], or use all_reduce"
        )
    if not -array.ndim <= axis < array.ndim:
        raise InvalidArgumentError(
            f"axis {axis} is out of range for {describe(as_operand(value))}; use {axes_text(array.ndim)}"
        )
    return axis % int(array.ndim)


def all_gather_leaves(
    communicator: Communicator,
    leaves: Sequence[Any],
    axis: int,
    site: str,
    options: Options | None,
    nesting: str,
) -> list[Any]:
    """Concatenates each leaf of a structure over all replicas: arrays in one collective, strings one by one.

    Args:
      communicator: The replica's communicator.
      leaves: Arrays that `checked_axis` has accepted.
      axis: The axis that the user gave.
      site: The user's line, for errors and telemetry.
      options: The deadline.
      nesting: The structure in words, such as "[*, *]".
    """
    together = [n for n, leaf in enumerate(leaves) if getattr(leaf, "dtype", None) not in (None, _OBJECT)]
    if len(together) < 2:
        return [all_gather_leaf(communicator, leaf, axis, site, options) for leaf in leaves]
    arrays = [leaves[n] for n in together]
    gathered = communicator.all_gather_arrays(arrays, axis, site=site, options=options, nesting=nesting)
    found = dict(zip(together, gathered, strict=True))
    return [
        found[n] if n in found else all_gather_leaf(communicator, leaf, axis, site, options)
        for n, leaf in enumerate(leaves)
    ]


def all_gather_leaf(
    communicator: Communicator, value: Any, axis: int, site: str, options: Options | None
) -> Any:
    """Concatenates one array of every replica along `axis`; strings travel pickled.

    Args:
      communicator: This replica's end of the group.
      value: An array, numbers or strings; the shape may differ only along `axis`.
      axis: The dimension; negative ones count from the end.
      site: The user's line, for errors and telemetry.
      options: The deadline.
    """
    # A negative axis stays negative, because parts without elements may have another rank.
    checked_axis(value, axis)
    if getattr(value, "dtype", None) != np.dtype(object):
        if isinstance(value, (list, tuple)):
            value = as_array(value)
        return communicator.all_gather(value, axis, site=site, options=options)
    payload = np.frombuffer(pickle.dumps(as_array(value), protocol=5), np.uint8)
    sizes = communicator.all_gather(np.array([payload.size], np.int64), 0, site=site, options=options)
    together = communicator.all_gather(payload, 0, site=site, options=options)
    ends = np.cumsum(sizes)
    parts = [
        pickle.loads(together[end - size : end].tobytes()) for size, end in zip(sizes, ends, strict=True)
    ]
    return gather_components(parts, axis)


def all_reduce_slices(
    env: ReplicaEnv, rows: IndexedSlices, op: str, site: str, options: Options | None
) -> IndexedSlices:
    """The rows of all replicas together, with duplicates; for a mean, divided by the number of replicas.

    Args:
      env: The replica.
      rows: The rows of this replica.
      op: "sum" or "mean".
      site: The user's line, for errors and telemetry.
      options: The deadline.
    """
    values: np.ndarray[Any, Any] = env.communicator.all_gather(rows.values, 0, site=site, options=options)
    indices = env.communicator.all_gather(rows.indices, 0, site=site, options=options)
    together = IndexedSlices(values, indices, rows.dense_shape)
    if op == "sum":
        return together
    if env.traced:
        return IndexedSlices(together.values / env.size, indices, rows.dense_shape)
    # Applies the dtype rules; with one part, this does not divide yet.
    mean = reduce_slices(as_reduce_op(op), [together])
    return IndexedSlices(mean.values / env.size, indices, rows.dense_shape)
