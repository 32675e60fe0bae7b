"""Finds wrong values early, with the names of tf.debugging.

Assertions check shapes, dtypes and numbers, in the notebook, in replica functions, and in values with a component per
replica. `check_numerics` checks one array for NaN and infinity; `enable_check_numerics` makes every step check what it
computes.
"""

from workbench.debugging import experimental
from workbench.debugging.comparisons import (
    Assert,
    assert_all_finite,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
)
from workbench.debugging.device_placement import get_log_device_placement, set_log_device_placement
from workbench.debugging.numerics import check_numerics, disable_check_numerics, enable_check_numerics
from workbench.debugging.shapes import (
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_scalar,
    assert_shapes,
)
from workbench.debugging.types import (
    assert_integer,
    assert_proper_iterable,
    assert_same_float_dtype,
    assert_type,
    is_numeric_tensor,
)

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "enable_check_numerics",
    "experimental",
    "get_log_device_placement",
    "is_numeric_tensor",
    "set_log_device_placement",
]
