"""`wb.nn`: the reference's functions for variables on parameter servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.distribute.arrays.as_array import as_array
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError, WrongType

__all__ = ["embedding_lookup"]


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Any:
    """Rows of a table (as tf.nn.embedding_lookup). For a variable on parameter servers, only these rows are sent.

    Args:
      params: The table, shape `(rows, ...)`: a variable, whole or of several shards, an array, or a list of these with
        consecutive rows.
      ids: The rows, integers of any shape.
      max_norm: Scales down rows whose L2 norm is larger.
      name: Without effect.

    Returns:
      An array of shape `ids.shape + params.shape[1:]`.

    Raises:
      TypeError: if ids are not integers.
      InvalidArgumentError: if an id is outside the table.

    >>> table = np.arange(6.0).reshape(3, 2)
    >>> wb.nn.embedding_lookup(table, [2, 0])
    array([[4., 5.],
           [0., 1.]])
    """
    rows = _rows_of_parts(params, ids) if isinstance(params, list | tuple) else _rows(params, ids)
    if max_norm is None:
        return rows
    limit = as_array(max_norm)
    if limit.dtype.kind not in "iuf":
        raise WrongType(f"embedding_lookup: max_norm is a number, got {max_norm!r:.60}")
    axes = tuple(range(np.ndim(ids), rows.ndim))
    norms = np.sqrt((rows * rows).sum(axis=axes, keepdims=True))
    return rows * np.minimum(1, limit / np.maximum(norms, np.finfo(rows.dtype).tiny)).astype(rows.dtype)


def _rows(table: Any, ids: Any) -> Any:
    if isinstance(table, Variable | ShardedVariable):
        return table.sparse_read(ids)
    array = as_array(table)
    if not array.ndim:
        raise WrongType(f"embedding_lookup needs a table with rows, got {table!r:.60}")
    return array[_checked(ids, len(array))]


def _rows_of_parts(parts: Sequence[Any], ids: Any) -> Any:
    """The rows of a table in parts; requests each part's own rows."""
    tables = [part if isinstance(part, Variable | ShardedVariable) else as_array(part) for part in parts]
    if not tables:
        raise InvalidArgumentError("embedding_lookup needs a table, got an empty list")
    ends = np.cumsum([len(table) for table in tables])
    wanted = _checked(ids, int(ends[-1]))
    flat = wanted.reshape(-1)
    owners, first = np.searchsorted(ends, flat, side="right"), [0, *ends[:-1]]
    rows = np.empty((flat.size, *tables[0].shape[1:]), tables[0].dtype)
    for number in np.unique(owners):
        chosen = owners == number
        rows[chosen] = _rows(tables[number], flat[chosen] - first[number])
    return rows.reshape((*wanted.shape, *rows.shape[1:]))


def _checked(ids: Any, count: int) -> Any:
    """The ids as an array; rejects what variables reject."""
    wanted = np.asarray(ids)
    if wanted.dtype.kind not in "iu" and wanted.size:
        raise WrongType(f"embedding_lookup: ids must be integers, got {wanted.dtype} in {ids!r:.80}")
    wanted = wanted.astype(np.int64, copy=False)
    outside = wanted[(wanted < 0) | (wanted >= count)]
    if outside.size:
        raise InvalidArgumentError(f"embedding_lookup: id {outside[0]} is not in [0, {count})")
    return wanted
