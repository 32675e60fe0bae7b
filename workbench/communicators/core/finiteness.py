"""Whether a replica's inputs to collectives are finite, checked within a hundredth of its time.

So the first NaN has a name (replica, step, collective) although nobody asked for checks beforehand. Up to 4,096
elements are always read. More are read where the replica has meanwhile done something else for a hundred times as long:
reading a megabyte takes 17 µs and reducing it 107 µs, but the step around that mostly takes milliseconds. The record
says what was not read; nothing is concluded from a sample.
"""

from __future__ import annotations

from math import isfinite
from time import monotonic_ns as _clock
from typing import Final

import numpy as np
from numpy import vdot

from workbench.backends.numpy import can_be_infinite

FINITE: Final = "finite"
NOT_FINITE: Final = "not finite"
NOT_READ: Final = ""

ALWAYS: Final = 4096
"""Arrays up to this size are read however little time there is."""
SHARE: Final = 100
"""Reading takes at most one part in this many of a replica's time."""
MOST_SAVED_NS: Final = 250_000_000
FIRST_NS: Final = 20_000_000
"""Time in advance for the first step, which has saved none yet and in which many NaNs enter."""


class Finiteness:
    """Reads what one replica gives to its collectives. Its thread only.

    Its replica sets `found`, `entered_ns` and `inside_ns` in its collectives: calling a method for it costs more.

    Attributes:
      found: About the present collective: `FINITE`, `NOT_FINITE`, or `NOT_READ` if some of it was not read.
      spent_ns: How long reading large arrays took in the present collective.
      entered_ns: When the present collective was called.
      inside_ns: Time in collectives so far, without the present one; the replica's other time saves up for reading.
    """

    __slots__ = (
        "_idle_ns",
        "_made_ns",
        "_ns_per_byte",
        "_saved_ns",
        "entered_ns",
        "found",
        "inside_ns",
        "spent_ns",
    )

    def __init__(self) -> None:
        self.found = FINITE
        self.spent_ns = 0
        self.entered_ns = self._made_ns = _clock()
        self.inside_ns = 0
        self._idle_ns = 0
        self._saved_ns = FIRST_NS
        self._ns_per_byte = 0.1

    def look(self, array: np.ndarray) -> None:
        """Reads an array that this replica gives to the present collective, if there is time for it."""
        if not can_be_infinite(array.dtype):
            return
        if array.size <= ALWAYS:
            if not is_finite(array):
                self.found = NOT_FINITE
        elif self.found is not NOT_FINITE:
            self._look_at_large(array)

    def _look_at_large(self, array: np.ndarray) -> None:
        idle = self.entered_ns - self._made_ns - self.inside_ns
        self._saved_ns = min(MOST_SAVED_NS, self._saved_ns + (idle - self._idle_ns) // SHARE)
        self._idle_ns = idle
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


def is_finite(array: np.ndarray) -> bool:
    """Whether an array of floating or complex numbers has neither NaN nor infinity in it. Exact.

    A sum of squares is finite only if all elements are, and BLAS adds it up in one pass, without another array and
    without a warning. It may overflow although all elements are finite: only then they are looked at one by one.
    """
    if reads_at_once(array.dtype):
        # One dimension, so that strides do not matter.
        flat = array.reshape(-1)
        if isfinite(vdot(flat, flat)):
            return True
    return bool(np.isfinite(array).all())


def reads_at_once(dtype: np.dtype) -> bool:
    """Whether a sum of squares says of a flat array of it, in one call, that it is finite."""
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative
