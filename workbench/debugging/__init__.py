"""Finding wrong values early, with the names of tf.debugging: checks for NaN and infinity.

`check_numerics` looks at one array; `enable_check_numerics` makes every step look at what it computes.
"""

from workbench.debugging.numerics import check_numerics, disable_check_numerics, enable_check_numerics

__all__ = ["check_numerics", "disable_check_numerics", "enable_check_numerics"]
