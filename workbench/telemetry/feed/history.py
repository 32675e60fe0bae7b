"""Records in memory, as arrays of fixed-size rows: what the feed computes on.

Text is replaced by its number in one table of texts, so that comparing, sorting and grouping are integer
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from workbench.telemetry.recording.batches import Columns, Text
from workbench.telemetry.records import COLUMNS, INT32_COLUMNS, TEXT_COLUMNS

_MAX_TEXTS: Final = 65_536


def _kind(name: str) -> str:
    return "i4" if name in TEXT_COLUMNS or name in INT32_COLUMNS else "i8"


RECORD: Final = np.dtype([*((name, _kind(name)) for name in COLUMNS), ("late_ns", "i8"), ("ready_ns", "i8")])
"""A record, with text as numbers, and the columns that the join fills in.

`late_ns`: how much later than the first replica it entered; `ready_ns`: when the last replica entered, by the driver's
clock.
"""

KEY: Final = ("run_id", "generation", "group", "step", "seq")
"""What records of one collective have in common."""

COLLECTIVE: Final = np.dtype(
    [
        *((name, _kind(name)) for name in KEY),
        *((name, "i4") for name in ("op", "redop", "dtype", "algorithm", "packs", "transport", "purpose")),
        *((name, "i4") for name in ("state", "n")),
        *((name, "i8") for name in ("count", "bytes", "enter_ns", "ready_ns", "end_ns", "err_ns")),
        *((name, "i8") for name in ("wait_ns", "spent_ns")),
        *((name, "i4") for name in ("late_replica", "late_host")),
        ("version", "i8"),
    ]
)
"""One collective over all its replicas; times are of the driver's clock.

`enter_ns`: first replica entered; `ready_ns`: last replica entered; `end_ns`: last replica had its result; `err_ns`: a
skew below it is meaningless; `wait_ns`, `spent_ns`: summed over replicas, time until ready and in total;
`late_replica`, `late_host`: who entered last; `version`: the fold that completed it.
"""


class Texts:
    """Every distinct text seen, by number; number 0 is "", and replaces texts that no longer fit."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._texts: list[str] = [""]

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def number(self, text: str) -> int:
        """The number of `text`, a new one if it was not seen before."""
        number = self._numbers.get(text)
        if number is None:
            if len(self._texts) >= _MAX_TEXTS:
                return 0
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def encode(self, column: Text) -> np.ndarray | int:
        """The numbers of a text column, int32, shape `(rows,)`; a single one if all rows have the same."""
        if len(column.values) == 1:
            return self.number(column.values[0])
        numbers = np.array([self.number(value) for value in column.values] or [0], np.int32)
        return np.take(numbers, column.codes)

    def decode(self, numbers: np.ndarray) -> Text:
        """The text column with these numbers; only texts that occur are in it, sorted."""
        used, codes = np.unique(numbers, return_inverse=True)
        values = [self._texts[number] for number in used]
        order = sorted(range(len(values)), key=values.__getitem__)
        # Numbers were assigned in order of arrival, which the table must not show.
        position = np.argsort(np.array(order, np.int32)).astype(np.int32)
        return Text(position[codes], tuple(values[index] for index in order))


def to_rows(columns: Columns, texts: Texts) -> np.ndarray:
    """Converts a batch to rows of `RECORD`, shape `(rows,)`."""
    rows = np.zeros(len(columns["seq"]), RECORD)
    for name in COLUMNS:
        column = columns[name]
        rows[name] = texts.encode(column) if isinstance(column, Text) else column
    return rows


def to_columns(rows: np.ndarray, texts: Texts) -> Columns:
    """The inverse of `to_rows`."""
    return {name: texts.decode(rows[name]) if name in TEXT_COLUMNS else rows[name] for name in COLUMNS}


def together(chunks: Sequence[np.ndarray]) -> np.ndarray:
    """The rows of all chunks of one dtype; not a copy if only one chunk has any."""
    chunks = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate([_raw(chunk) for chunk in chunks]).view(chunks[0].dtype)


def _raw(rows: np.ndarray) -> np.ndarray:
    """The rows as bytes, because NumPy copies rows with many fields twenty times as slowly, field by field."""
    return rows.view(np.dtype((np.void, rows.itemsize)))


def picked(rows: np.ndarray, which: np.ndarray) -> np.ndarray:
    """A copy of the rows with these numbers; indexing is slow for rows of many fields."""
    return np.take(rows, which)


def selected(rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The rows for which the mask holds: not a copy if it holds for all, which is the usual case in views."""
    return rows if mask.all() else picked(rows, np.flatnonzero(mask))


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `np.unique` with the inverse, but without sorting if the values are whole numbers close to each other.

    If they are not, as in a damaged recording, memory depends on how many there are, not on their range.
    """
    low = int(values.min())
    if int(values.max()) - low > 8 * len(values):
        unique, inverse = np.unique(values, return_inverse=True)
        return unique, inverse
    there = np.bincount(values - low) > 0
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


def changes(rows: np.ndarray, names: Sequence[str], order: np.ndarray) -> np.ndarray:
    """Where, in this order, a row differs from the one before in any of the columns; the first always does.

    Args:
      rows: A structured array.
      names: The columns to compare.
      order: Indices of rows.
    """
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for name in names:
        column = rows[name][order]
        changed[1:] |= column[1:] != column[:-1]
    return changed


class Newest:
    """Keeps the newest `limit` rows of one dtype, by column `by`.

    Which rows survive depends only on their times, never on the order or the batches in which they arrived.
    """

    def __init__(self, dtype: np.dtype[np.void], by: str, limit: int) -> None:
        self._by = by
        self._limit = limit
        # Twice the limit, so that rows move to the front only once per `limit` rows rather than with every addition.
        self._buffer = np.empty(2 * limit, dtype)
        self._raw = _raw(self._buffer)  # in the same memory
        self._begin = 0
        self._end = 0

    def add(self, rows: np.ndarray) -> None:
        """Adds rows, in any order."""
        rows = self._sorted(rows)[-self._limit :]
        if not len(rows):
            return
        if self._end + len(rows) > len(self._buffer):
            self._move_to_front()
        # Most new rows are newer than the existing ones; only the overlap needs sorting again.
        before, now = self.rows()[self._by], rows[self._by]
        at = self._begin + int(np.searchsorted(before, now[0]))
        older = int(np.searchsorted(now, before[-1], side="right")) if len(before) else 0
        apart, end = self._end + older, self._end + len(rows)
        if older:
            overlap = together([self._buffer[at : self._end], rows[:older]])
            self._raw[at:apart] = _raw(self._sorted(overlap))
        self._raw[apart:end] = _raw(rows[older:])
        self._begin, self._end = max(self._begin, end - self._limit), end

    def rows(self) -> np.ndarray:
        """The kept rows, oldest first. Not a copy: do not modify or keep it."""
        return self._buffer[self._begin : self._end]

    def _move_to_front(self) -> None:
        kept = self._raw[self._begin : self._end]
        # In parts that do not overlap their new place; otherwise, NumPy would copy them first.
        for at in range(0, len(kept), self._begin):
            part = kept[at : at + self._begin]
            self._raw[at : at + len(part)] = part
        self._begin, self._end = 0, len(kept)

    def _sorted(self, rows: np.ndarray) -> np.ndarray:
        # Sorts by more than the time, so that the result does not depend on the order of arrival.
        order = np.lexsort((rows["seq"], rows["step"], rows["group"], rows[self._by]))
        return picked(rows, order)
