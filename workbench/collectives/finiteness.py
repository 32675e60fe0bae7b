"""Whether what a replica gives to its collectives is finite, read as far as a hundredth of its time allows.

So the first NaN has a name (replica, step, collective) although nobody asked for checks beforehand. Up to 4,096
elements are always read. More are read where the replica has meanwhile done something else for a hundred times as long:
reading a megabyte takes 17 µs and reducing it 107 µs, but the step around that mostly takes milliseconds. The record
says what was not read; nothing is concluded from a sample.
"""

from __future__ import annotations

import math
from time import perf_counter_ns as _clock
from typing import Final

import numpy as np

FINITE: Final = "finite"
NOT_FINITE: Final = "not finite"
NOT_READ: Final = ""

_ALWAYS: Final = 4096
_SHARE: Final = 100
_MOST_SAVED_NS: Final = 250_000_000
_FIRST_NS: Final = 20_000_000  # the first steps have saved nothing yet, and many NaN come in the first step


class Finiteness:
    """Reads what one replica gives to its collectives. Its thread only.

    Attributes:
      found: About the present collective: `FINITE`, `NOT_FINITE`, or `NOT_READ` if some of it was not read.
      spent_ns: How long reading large arrays took in the present collective.
    """

    __slots__ = ("_left_ns", "_ns_per_byte", "_saved_ns", "found", "spent_ns")

    def __init__(self) -> None:
        self.found = FINITE
        self.spent_ns = 0
        self._saved_ns = _FIRST_NS
        self._left_ns = 0
        self._ns_per_byte = 0.1

    def begin(self, enter_ns: int) -> None:
        """A collective begins; what the replica did since the last one has saved up time for reading."""
        self.found = FINITE
        self.spent_ns = 0
        if self._left_ns:
            self._saved_ns += (enter_ns - self._left_ns) // _SHARE

    def end(self, end_ns: int) -> None:
        """The collective has ended."""
        self._left_ns = end_ns

    def look(self, array: np.ndarray) -> None:
        """Reads an array that this replica gives to the present collective, if there is time for it."""
        if array.dtype.kind not in "fc" and not _is_narrow_float(array.dtype):
            return
        if array.size <= _ALWAYS:
            if not is_finite(array):
                self.found = NOT_FINITE
        elif self.found is not NOT_FINITE:
            self._look_at_large(array)

    def _look_at_large(self, array: np.ndarray) -> None:
        self._saved_ns = min(_MOST_SAVED_NS, self._saved_ns)
        if self._saved_ns < array.nbytes * self._ns_per_byte:
            self.found = NOT_READ
            return
        begin = _clock()
        finite = is_finite(array)
        took = _clock() - begin
        self.spent_ns += took
        self._saved_ns -= took
        self._ns_per_byte += (took / array.nbytes - self._ns_per_byte) / 8
        if not finite:
            self.found = NOT_FINITE


def _is_narrow_float(dtype: np.dtype) -> bool:
    """Whether it is one of those that NumPy knows only as another library's, such as bfloat16; no record or bytes."""
    return dtype.kind == "V" and not issubclass(dtype.type, np.void)


def is_finite(array: np.ndarray) -> bool:
    """Whether an array of floating or complex numbers has neither NaN nor infinity in it. Exact.

    A sum of squares is finite only if all elements are, and BLAS adds it up in one pass, without another array and
    without a warning. It may overflow although all elements are finite: only then they are looked at one by one.
    """
    if array.size == 1 and array.dtype.kind == "f":
        return math.isfinite(array.item())
    if array.dtype.kind == "f" and array.itemsize in (4, 8) and array.flags.c_contiguous:
        flat = array.reshape(-1)
        if math.isfinite(np.vdot(flat, flat)):
            return True
    return bool(np.isfinite(array).all())
