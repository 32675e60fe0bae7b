"""Arguments of scatter updates: values of the variable's dtype, and indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends.conversion import conversion, holds
from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import dtype_text, view
from workbench.backends.users_line import apply_at_users_line
from workbench.distribute.arrays.as_array import Array, as_operand, describe
from workbench.errors import WrongType


def fitted(values: Array, dtype: np.dtype[Any], where: str) -> Array:
    """Converts `values` to an array of `dtype`.

    Raises:
      TypeError: if it cannot hold values of their kind.
    """
    if values.dtype == dtype:
        return values
    if not holds(dtype, values):
        raise WrongType(
            f"{where}: values of {dtype_text(values.dtype)} do not fit {dtype_text(dtype)}; {conversion(dtype)}"
        )
    return apply_at_users_line()(values.astype, dtype)  # type: ignore[no-any-return]


def integers(indices: Any, where: str) -> Array:
    """Converts indices to an array of integers. An empty list, which has no dtype, means no indices.

    Raises:
      TypeError: if they are not integers.
    """
    given: Array = as_operand(indices)
    if given.dtype.kind in "iu":
        return given
    if given.size:
        raise WrongType(f"{where}: indices must be integers, got {describe(given)}")
    return given.astype(np.int64)


def on_host(indices: Array) -> Array:
    """Indices as a NumPy array of int64."""
    return np.asarray(view(fetched(indices))).astype(np.int64, copy=False)
