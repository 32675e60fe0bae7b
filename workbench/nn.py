"""`wb.nn`: what the reference has there of variables on parameter servers."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.distribute.arrays.as_array import as_array
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError

__all__ = ["embedding_lookup"]


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None) -> Any:
    """Rows of a table (as tf.nn.embedding_lookup). Of a variable on parameter servers these rows alone travel.

    Args:
      params: The table, shape `(rows, ...)`: a variable, whole or of several shards, or an array.
      ids: Integers of any shape: which rows.
      max_norm: Scale rows down whose L2 norm is larger.

    Returns:
      An array of shape `ids.shape + params.shape[1:]`.

    Raises:
      InvalidArgumentError: if an id is outside of the table.

    >>> table = np.arange(6.0).reshape(3, 2)
    >>> wb.nn.embedding_lookup(table, [2, 0])
    array([[4., 5.],
           [0., 1.]])
    """
    rows = params.sparse_read(ids) if isinstance(params, Variable | ShardedVariable) else _rows(params, ids)
    if max_norm is None:
        return rows
    axes = tuple(range(np.ndim(ids), rows.ndim))
    norms = np.sqrt((rows * rows).sum(axis=axes, keepdims=True))
    return rows * np.minimum(1, max_norm / np.maximum(norms, np.finfo(rows.dtype).tiny)).astype(rows.dtype)


def _rows(table: Any, ids: Any) -> Any:
    """Rows of an array; negative ids are refused, as they are for variables."""
    array, wanted = as_array(table), np.asarray(ids)
    outside = wanted[(wanted < 0) | (wanted >= len(array))]
    if outside.size:
        raise InvalidArgumentError(f"embedding_lookup: id {outside[0]} is not in [0, {len(array)})")
    return array[wanted]
