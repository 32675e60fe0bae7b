"""Finds where the first NaN or infinity went into a collective: replica, step, collective and call site.

After a reduction, one replica's NaN is in all copies, so only the first record shows where it came from. Consecutive
steps are one onset, however long it lasts; batches may arrive in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from workbench.telemetry.feed.history import Texts
from workbench.telemetry.formatting import MOST_NAMED, replicas_text
from workbench.telemetry.snapshot import Onset

_MOST: Final = 64
_T = TypeVar("_T")

Group = tuple[int, int]
"""Numbers of the texts of a run and of a group's label, because an onset may outlast a generation."""


@dataclass(slots=True)
class _Seen:
    """What a group reported, by step: where values were not finite, and what was not read."""

    onsets: list[Onset] = field(default_factory=list)
    unread: list[tuple[int, int]] = field(default_factory=list)


class Onsets:
    """The onsets of each group, at most 64; the first is never dropped."""

    def __init__(self, texts: Texts) -> None:
        """Starts empty; `texts` has the texts of the numbers in rows."""
        self._texts = texts
        self._seen: dict[Group, _Seen] = {}
        self._finite = texts.number("finite")
        self._not_finite = texts.number("not finite")
        self._ok = texts.number("ok")

    def update(self, rows: np.ndarray) -> None:
        """Takes new rows of `history.RECORD` into account, those of the user's collectives."""
        told = (rows["purpose"] == 0) & (rows["state"] == self._ok)
        notable = told & (rows["inputs"] != self._finite)
        if not notable.any():
            return
        rows = rows[notable]
        groups = zip(rows["run_id"].tolist(), rows["group"].tolist(), strict=True)
        for run, group in dict.fromkeys(groups):
            seen = self._seen.setdefault((run, group), _Seen())
            own = rows[(rows["run_id"] == run) & (rows["group"] == group)]
            bad = own["inputs"] == self._not_finite
            for low, high in _spans(own["step"][~bad]):
                seen.unread = _with_span(seen.unread, low, high)
            for low, high in _spans(own["step"][bad]):
                seen.onsets = _with_onset(seen.onsets, self._onset(own[bad & (own["step"] == low)], high))

    def of(self, group: Group, *, complete: bool, since: int = 0, until: int | None = None) -> Onset | None:
        """The first onset that lasted beyond step `since` and began by step `until`; None if there is none.

        Args:
          group: The group that the records belong to.
          complete: Whether no record was lost.
          since: The first step of interest.
          until: The last one; None for any.
        """
        seen = self._seen.get(group, _Seen())
        for onset in seen.onsets:
            if onset.last_step >= since and (until is None or onset.step <= until):
                unread = any(low <= onset.step and high >= onset.step - 1 for low, high in seen.unread)
                return replace(onset, certain=complete and not unread)
        return None

    def _onset(self, rows: np.ndarray, last_step: int) -> Onset:
        """The onset for everything that was not finite in a step, and the last step until which that lasted."""
        rows = rows[rows["seq"] == rows["seq"].min()]
        first = rows[0]
        replicas = tuple(sorted(set(rows["replica"].tolist())))
        op, site = self._texts[first["op"]], self._texts[first["site"]]
        return Onset(int(first["step"]), int(first["seq"]), op, site, replicas, int(first["n"]), last_step)


def _spans(steps: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive steps."""
    found = np.unique(steps)
    for part in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1):
        if len(part):
            yield int(part[0]), int(part[-1])


def _with_span(spans: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    apart = [span for span in spans if span[1] < low - 1 or span[0] > high + 1]
    near = [span for span in spans if span not in apart]
    joined = (min([low, *(each[0] for each in near)]), max([high, *(each[1] for each in near)]))
    return _bounded(sorted([*apart, joined]))


def _with_onset(onsets: list[Onset], new: Onset) -> list[Onset]:
    apart = [each for each in onsets if each.last_step < new.step - 1 or each.step > new.last_step + 1]
    near = [each for each in onsets if each not in apart] + [new]
    place = min((each.step, each.seq) for each in near)
    firsts = [each for each in near if (each.step, each.seq) == place]
    replicas = tuple(sorted({replica for each in firsts for replica in each.replicas}))
    joined = replace(firsts[0], replicas=replicas, last_step=max(each.last_step for each in near))
    return _bounded(sorted([*apart, joined], key=lambda each: (each.step, each.seq)))


def _bounded(found: list[_T]) -> list[_T]:
    """If there are too many, drops the second: users want the first, and then the newest."""
    return found if len(found) <= _MOST else [found[0], *found[2:]]


def onset_text(onset: Onset) -> str:
    """The onset in words.

    Returns:
      Such as "replica 3 gave it to all_reduce #1 at In[1]:14 in step 30".
    """
    where = f" at {onset.site}" if onset.site else ""
    step = f"in step {onset.step}" if onset.certain else f"in step {onset.step} at the latest"
    if len(onset.replicas) == onset.n > 1:
        who = f"all {onset.n} replicas"
    else:
        who = replicas_text(onset.replicas, MOST_NAMED)
    return f"{who} gave it to {onset.op} #{onset.seq + 1}{where} {step}"
