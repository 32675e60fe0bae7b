"""Checks whether a replica's inputs to collectives are finite, in at most a hundredth of its time.

Thus the first NaN can be located (replica, step, collective) even if no checks were switched on. Arrays of up to 4,096
elements are always read. A larger one is read if the replica has meanwhile done other work for a hundred times as
long: reading a megabyte takes 17 µs and reducing it 107 µs, but the step around that mostly takes milliseconds. The
record says what was not read; nothing is concluded from a sample.
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
"""Arrays of up to this many elements are always read."""
SHARE: Final = 100
"""Reading takes at most 1/SHARE of a replica's time."""
MOST_SAVED_NS: Final = 250_000_000
FIRST_NS: Final = 20_000_000
"""Time granted in advance to the first step, in which many NaNs appear but no time has been saved up yet."""


class Finiteness:
    """Reads the inputs of one replica's collectives. Only on its thread.

    The collectives set `found`, `entered_ns` and `inside_ns` directly, because calling a method would cost more.

    Attributes:
      found: The result for the current collective: `FINITE`, `NOT_FINITE`, or `NOT_READ` if some input was not read.
      spent_ns: How long reading large arrays took in the current collective.
      entered_ns: When the current collective was called.
      inside_ns: Time in earlier collectives. All other time of the replica counts towards the time for reading.
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
        """Reads an input of the current collective if there is time for it."""
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
    """Whether an array of floating or complex numbers contains neither NaN nor infinity. Exact.

    A sum of squares is finite only if all elements are, and BLAS computes it in one pass, without another array and
    without a warning. It may overflow although all elements are finite; only then is each element checked.
    """
    if reads_at_once(array.dtype):
        # Flattened, so that strides do not matter.
        flat = array.reshape(-1)
        if isfinite(vdot(flat, flat)):
            return True
    return bool(np.isfinite(array).all())


def reads_at_once(dtype: np.dtype) -> bool:
    """Whether one call, a sum of squares, can show that a flat array of this dtype is finite."""
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative
