"""Summaries of arrays: figures, a histogram and a digest, computed in one pass."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from workbench.backends.numpy import view
from workbench.backends.stretches import STRETCH, checksum, numbers_read, stretches

BINS: Final = 24
"""Bins of a histogram."""
MOST_IN_HISTOGRAM: Final = 1 << 16
"""For larger arrays, a histogram counts about this many elements, evenly spaced."""
PARTIAL: Final = np.dtype(
    [
        *((name, np.float64) for name in ("n", "mean", "m2", "least", "greatest")),
        *((name, np.uint64) for name in ("zeros", "nans", "infinities")),
        ("digest", np.uint64, 2),
        ("first_bad", np.int64),
    ]
)
"""The facts about one piece of an array. On GPUs, the summary kernel writes one per block."""
NONE_BAD: Final = np.iinfo(np.int64).max
"""`first_bad` of a piece whose elements are all finite."""
_SHORT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Summary:
    """Facts about an array; for complex arrays, the figures are those of absolute values.

    Attributes:
      shape: The array's shape.
      dtype: Name of its dtype.
      read: How many of its elements were read: all, or evenly spaced stretches; the figures and the digest refer to
        these.
      mean: Mean of the finite elements, NaN if there are none.
      std: Standard deviation of the finite elements, NaN if there are none.
      min: Smallest finite element, NaN if there is none.
      max: Largest finite element, NaN if there is none.
      l2: Euclidean norm of the finite elements.
      zeros: Count of elements that are zero.
      nan: Count of elements that are not a number.
      inf: Count of infinite elements.
      first_bad: Position in C order of the first element that is NaN or infinite, -1 if there is none.
      histogram: Counts of finite elements in equal bins from min to max, from evenly spaced elements if there are many;
        empty if all are equal.
      sha256: Digest of the bytes in C order, or of their checksums above 1 MiB; equal digests mean equal arrays, for
        the same dtype, shape and kind of device.
    """

    shape: tuple[int, ...]
    dtype: str
    read: int
    mean: float
    std: float
    min: float
    max: float
    l2: float
    zeros: int
    nan: int
    inf: int
    first_bad: int
    histogram: tuple[int, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Read:
    """The findings from reading an array once.

    Attributes:
      summary: The summary, or the type of anything but an array of numbers.
      checksums: One pair per stretch that was read, shape `(stretches, 2)`; empty up to 1 MiB, and on GPUs.
    """

    summary: Summary | str
    checksums: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.uint64))


def summary(x: Any, *, exact: bool = False) -> Summary:
    """The summary from `read`."""
    found = read(x, exact=exact).summary
    assert isinstance(found, Summary)
    return found


def read(x: Any, *, exact: bool = False) -> Read:
    """Summarises any array that `backends.numpy.view` accepts.

    More than 65,536 floats of at most 32 bits, or integers of at most 16, are summed as 32-bit floats, stretch by
    stretch: the figures have five digits or more.

    Args:
      x: The array.
      exact: Whether to read all elements of arrays with more than `stretches.MOST_READ`.
    """
    array = view(x)
    numbers = numbers_read(array.size, exact=exact)
    short = array.nbytes <= _SHORT_BYTES
    digest = hashlib.sha256()
    sums: list[bytes] = []
    parts = np.zeros(len(numbers), PARTIAL)
    room = np.empty(2 * STRETCH)  # allocating new memory for each stretch takes longer than all the sums
    count = 0
    with np.errstate(all="ignore"):
        for place, (number, stretch) in enumerate(zip(numbers, stretches(array, numbers), strict=True)):
            count += stretch.size
            if short:
                digest.update(stretch.view(np.uint8).data)
            else:
                sums.append(checksum(stretch, room))
                digest.update(sums[-1])
            parts[place] = _part(_magnitudes(stretch, exact=array.size <= STRETCH), number * STRETCH, room)
        figures = merged(parts)
        sample = _magnitudes(array.flat[:: spacing(array.size)], exact=True)
        counts = _counted(sample, figures["min"], figures["max"])
    found = Summary(
        shape=array.shape,
        dtype=array.dtype.name,
        read=count,
        histogram=counts,
        sha256=digest.hexdigest(),
        **figures,
    )
    return Read(found, np.frombuffer(b"".join(sums), np.uint64).reshape(-1, 2))


def merged(parts: np.ndarray) -> dict[str, Any]:
    """The figures of a summary, combined from pieces (of dtype `PARTIAL`), without digest and histogram."""
    n = float(parts["n"].sum())
    mean = float((parts["n"] * parts["mean"]).sum() / n) if n else math.nan
    spread = float(parts["m2"].sum() + (parts["n"] * (parts["mean"] - mean) ** 2).sum()) if n else math.nan
    some = parts[parts["n"] > 0]
    first = int(parts["first_bad"].min())
    return {
        "mean": mean,
        "std": math.sqrt(spread / n) if n else math.nan,
        "min": float(some["least"].min()) if n else math.nan,
        "max": float(some["greatest"].max()) if n else math.nan,
        "l2": math.sqrt(spread + n * mean * mean) if n else 0.0,
        "zeros": int(parts["zeros"].sum()),
        "nan": int(parts["nans"].sum()),
        "inf": int(parts["infinities"].sum()),
        "first_bad": -1 if first == NONE_BAD else first,
    }


def spacing(size: int) -> int:
    """The distance between counted elements: coprime to the size, otherwise some columns would never be counted."""
    every = max(1, size // MOST_IN_HISTOGRAM)
    while math.gcd(every, size) != 1:
        every += 1
    return every


def as_counts(counts: np.ndarray) -> tuple[int, ...]:
    """A histogram in the form of a summary."""
    return tuple(int(count) for count in counts.tolist())


def _magnitudes(stretch: np.ndarray, *, exact: bool) -> np.ndarray:
    """The elements as floats that keep their magnitudes."""
    if stretch.dtype.kind == "c":
        stretch = np.abs(stretch)
    if stretch.dtype == np.float64 or (stretch.dtype == np.float32 and not exact):
        return stretch
    narrow = stretch.dtype.kind not in "biuf" or stretch.dtype.itemsize <= 2
    return stretch.astype(np.float32 if narrow and not exact else np.float64)


def _part(values: np.ndarray, low: int, room: np.ndarray) -> tuple[Any, ...]:
    """The fields of `PARTIAL` for one stretch, whose first element has number `low`; overwrites `room`."""
    nans = infinities = 0
    first_bad = int(NONE_BAD)
    zeros = np.count_nonzero(values == 0)
    if not values.size:
        return 0, 0, 0, 0, 0, 0, 0, 0, (0, 0), first_bad
    least, greatest = float(values.min()), float(values.max())  # with a NaN, both are NaN
    if not math.isfinite(least) or not math.isfinite(greatest):
        finite = np.isfinite(values)
        nans = int(np.count_nonzero(np.isnan(values)))
        infinities = values.size - int(np.count_nonzero(finite)) - nans
        first_bad = low + int(np.argmin(finite))
        values = values[finite]
        if not values.size:
            return 0, 0, 0, 0, 0, zeros, nans, infinities, (0, 0), first_bad
        least, greatest = float(values.min()), float(values.max())
    total, squares = _moments(values, room)
    if not math.isfinite(squares):
        total, squares = _moments(values.astype(np.float64), room)
    n = values.size
    m2 = max(0.0, squares - total * total / n)
    return n, float(values[0]) + total / n, m2, least, greatest, zeros, nans, infinities, (0, 0), first_bad


def _moments(values: np.ndarray, room: np.ndarray) -> tuple[float, float]:
    """Sums of the differences from the first value and of their squares.

    Differences stay small when the spread is small.
    """
    gaps = np.subtract(values, values[0], out=room.view(values.dtype)[: values.size])
    return float(gaps.sum()), float(np.einsum("i,i->", gaps, gaps))


def _counted(values: np.ndarray, low: float, high: float) -> tuple[int, ...]:
    if not low < high:
        return ()
    # Leaves out NaN and numbers outside the sample's range.
    values = values[(low <= values) & (values <= high)]
    # Halved, because the largest float minus the smallest is infinite.
    places = (values / 2 - low / 2) * (BINS / (high / 2 - low / 2))
    return as_counts(np.bincount(np.minimum(places.astype(np.int64), BINS - 1), minlength=BINS))
