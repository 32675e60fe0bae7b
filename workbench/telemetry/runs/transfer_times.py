"""Transfer times of collectives, by kind, to compare two runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import RECORD, Texts, selected, to_rows, together
from workbench.telemetry.feed.join import join
from workbench.telemetry.feed.timing_table import bucket_bytes
from workbench.telemetry.recording.batches import Columns

_MAX_PENDING: Final = 65_536

Kind = tuple[str, str, str, int, int]
"""Operation, reduction, dtype, size bucket in bytes, and replicas."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long the collectives of one kind took.

    Attributes:
      seconds: From the arrival of the last replica to the last result, shape `(collectives,)`.
      size_bytes: Size S of the latest one.
    """

    seconds: np.ndarray
    size_bytes: int


class Transfers:
    """The transfer times of all of the user's successful collectives, eight bytes each."""

    def __init__(self) -> None:
        self._texts = Texts()
        self._ok = self._texts.number("ok")
        self._entered = self._texts.number("entered")
        self._pending = np.zeros(0, RECORD)
        self._seconds: defaultdict[Kind, list[np.ndarray]] = defaultdict(list)
        self._sizes: dict[Kind, int] = {}

    def add(self, columns: Columns) -> None:
        """Adds records of any replicas."""
        rows = to_rows(columns, self._texts)
        joined = join(
            together([self._pending, selected(rows, rows["purpose"] == 0)]),
            entered=self._entered,
            ok=self._ok,
            version=0,
        )
        self._pending = joined.pending[-_MAX_PENDING:]
        done = selected(joined.collectives, joined.collectives["state"] == self._ok)
        seconds = (done["end_ns"] - done["ready_ns"]) / 1e9
        buckets = bucket_bytes(done["bytes"])
        numbers = np.stack([done["op"], done["redop"], done["dtype"], buckets, done["n"]], axis=1)
        kinds, of = np.unique(numbers, axis=0, return_inverse=True)
        for index, (op, redop, dtype, bucket, n) in enumerate(kinds.tolist()):
            mine = np.flatnonzero(of.reshape(-1) == index)
            kind = self._texts[op], self._texts[redop], self._texts[dtype], bucket, n
            self._seconds[kind].append(seconds[mine])
            self._sizes[kind] = int(done["bytes"][mine[-1]])

    def by_kind(self) -> Mapping[Kind, Times]:
        """The transfer times added so far."""
        return {
            kind: Times(np.concatenate(parts), self._sizes[kind]) for kind, parts in self._seconds.items()
        }
