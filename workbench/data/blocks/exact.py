"""NumPy functions whose result for an element is the same, bit for bit, whatever the number of elements.

These are the functions that IEEE 754 or integer arithmetic defines exactly. Excluded are: exponentials, sines and other
functions that NumPy computes differently for long arrays than for single numbers; the maximum of floats, where zeros
differ in sign; powers of floats; half precision and complex numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_FLOATS: Final = (np.float32, np.float64)
_WHOLE_NUMBERS: Final = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
DTYPES: Final = frozenset((bool, int, float, np.bool_, *_FLOATS, *_WHOLE_NUMBERS))
"""Types of the numbers that functions may compute with."""
ALLOWED: Final = frozenset(np.dtype(kind) for kind in DTYPES)

WRAPPING: Final = frozenset((np.add, np.subtract, np.multiply, np.negative, np.absolute, np.square))
"""Operations whose integer results may exceed their dtype; single numbers then warn, arrays do not."""
WHOLE: Final = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.maximum, np.minimum))
"""Operations for bool and integers only."""
BY_CONSTANT: Final = frozenset((np.floor_divide, np.remainder))
"""Operations on integers that are divided by a constant."""
FUNCTIONS: Final = (
    WRAPPING
    | WHOLE
    | BY_CONSTANT
    | {np.true_divide, np.positive, np.sqrt, np.isnan, np.isinf, np.isfinite}
    | {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
    | {np.logical_and, np.logical_or, np.logical_not, np.logical_xor}
)
_SPELLINGS: Final = {"abs", "divide", "mod", "bitwise_not", "bool", "pi", "e", "astype"}
ATTRIBUTES: Final = frozenset(
    {function.__name__ for function in FUNCTIONS}
    | {kind.__name__ for kind in DTYPES if kind.__module__ == "numpy"}
    | {"bool_", "true_divide", *_SPELLINGS}
)


def fits(number: Any, dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` can represent a whole number."""
    limits = np.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)
