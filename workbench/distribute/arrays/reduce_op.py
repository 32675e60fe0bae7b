"""ReduceOp: how values of several replicas are combined."""

from __future__ import annotations

import enum
from typing import Any


class ReduceOp(enum.Enum):
    """How replicas' values are combined (as tf.distribute.ReduceOp). Texts such as "sum" are accepted anywhere."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: enum.Enum) -> ReduceOp:
        """The operation that combines the replicas' updates of a variable with this `VariableAggregation`.

        Raises:
          ValueError: for NONE and ONLY_FIRST_REPLICA, which do not combine updates.
        """
        if (op := ReduceOp.__members__.get(aggregation.name)) is None:
            raise ValueError(f"{aggregation} combines no values; SUM and MEAN do")
        return op


ReduceOpLike = ReduceOp | str

# The usual spellings, so that each collective needs one dictionary look-up instead of a parse.
_NAMES: dict[Any, str] = {
    spelling: op.value.lower()
    for op in ReduceOp
    for spelling in (op, op.value, op.value.lower(), op.value.capitalize())
}


def as_reduce_op(reduce_op: Any) -> ReduceOp:
    """Converts `reduce_op`, a ReduceOp or its name in any letter case, to a ReduceOp.

    Raises:
      ValueError: if it is neither.
    """
    if isinstance(reduce_op, ReduceOp):
        return reduce_op
    if isinstance(reduce_op, str) and reduce_op.upper() in ReduceOp.__members__:
        return ReduceOp[reduce_op.upper()]
    raise ValueError(
        f"unknown reduce_op {reduce_op!r}; use 'SUM' or 'MEAN' (any letter case), or a wb.distribute.ReduceOp"
    )


def collective_name(reduce_op: Any) -> str:
    """The name that collectives use, "sum" or "mean".

    Raises:
      ValueError: if `reduce_op` is neither a ReduceOp nor the name of one.
    """
    if type(reduce_op) in (str, ReduceOp) and (name := _NAMES.get(reduce_op)) is not None:
        return name
    return as_reduce_op(reduce_op).value.lower()
