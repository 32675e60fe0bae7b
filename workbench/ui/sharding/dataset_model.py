"""The part of a dataset's sharding that fits in a message: bounded, with positions instead of ids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from workbench.data.provenance import FILE_SHIFT
from workbench.data.sharding.model import ReplicaStep, Sharding, runs_of
from workbench.data.sharding.progress import InputProgress
from workbench.errors import InvalidArgumentError
from workbench.ui.models.sharding import DatasetSharding, ListedElements, Reader, Reading
from workbench.ui.sharding.dataset_words import (
    advice,
    figures,
    nothing,
    remainder_text,
    remedy,
    runs_text,
    sentence,
)

_MAX_READERS: Final = 32
_MAX_READINGS: Final = 2048
_MAX_STEPS: Final = 64
_MAX_RANGES: Final = 4
_MAX_MARKS: Final = 64
_MAX_LISTED_CHARACTERS: Final = 64 << 10


def dataset_model(
    sharding: Sharding, *, progress: InputProgress | None = None, listed: ListedElements | None = None
) -> DatasetSharding:
    """What the view of a dataset's sharding draws.

    Args:
      sharding: The result of `explain_sharding`.
      progress: How far replicas are; by default, what `sharding` knows about it.
      listed: The requested elements.
    """
    progress = progress or sharding.progress
    ids = [element for step in sharding.steps for cell in step for element in cell.ids]
    distinct = np.unique(np.array(ids, np.int64))
    shown = _shown(sharding)
    most = max(1, min(_MAX_STEPS, _MAX_READINGS // max(1, len(shown))))
    at = -1 if progress is None else max(progress.steps, default=-1)
    first = max(0, min(at - most // 2, len(sharding.steps) - most))
    drawn = slice(first, first + most)
    marks = _marks(sharding, distinct)
    return DatasetSharding(
        summary=sharding.summary(),
        policy=sharding.policy,
        reason=sharding.reason,
        algorithm=sharding.algorithm,
        hosts=sharding.hosts,
        replicas_per_host=sharding.replicas_per_host,
        batch_size=sharding.batch_size,
        elements=sharding.elements,
        duplicates=sharding.duplicates,
        dropped=sharding.dropped,
        steps=len(sharding.steps),
        remainder=sharding.remainder,
        readers=tuple(_reader(sharding, replica, distinct, drawn) for replica in shown),
        hidden_readers=sharding.replicas - len(shown),
        counts=sharding.counts,
        positions=len(distinct),
        marks=marks,
        limit=sharding.limit,
        progress=progress,
        together=_together(sharding, shown, drawn),
        read_by=_read_by(sharding, distinct, [at for at, _ in marks]),
        figures=figures(sharding),
        sentence=sentence(sharding),
        advice=advice(sharding),
        remainder_text=remainder_text(sharding),
        remedy=remedy(sharding),
        listed=listed,
    )


def listed_elements(sharding: Sharding, *, step: int, replica: int) -> ListedElements:
    """All elements that a replica reads in a step, as far as they fit in a message.

    Raises:
      InvalidArgumentError: if there is no such step or replica.
    """
    if not (0 <= step < len(sharding.steps) and 0 <= replica < sharding.replicas):
        raise InvalidArgumentError(
            f"step {step} of replica {replica} is not known: there are {len(sharding.steps)} steps and "
            f"{sharding.replicas} replicas"
        )
    cell = sharding.steps[step][replica]
    runs = runs_of(cell.ids, sharding.labels)
    ends = itertools.accumulate(len(run) + 2 for run in runs)
    fit = sum(end <= _MAX_LISTED_CHARACTERS for end in ends)
    return ListedElements(step, replica, cell.rows, tuple(runs[:fit]), len(runs) - fit)


def _shown(sharding: Sharding) -> list[int]:
    """At most 32 replicas, in order. Replicas that get nothing in some step take precedence."""
    replicas = list(range(sharding.replicas))
    if len(replicas) <= _MAX_READERS:
        return replicas
    hungry = {replica for _, replica in sharding.empty}
    return sorted(sorted(replicas, key=lambda replica: replica not in hungry)[:_MAX_READERS])


def _reader(sharding: Sharding, replica: int, distinct: np.ndarray, which: slice) -> Reader:
    steps = list(enumerate(sharding.steps))[which]
    return Reader(
        replica=replica,
        host=replica // sharding.replicas_per_host,
        rows=sharding.counts[replica],
        empty_steps=sum(1 for _, who in sharding.empty if who == replica),
        readings=tuple(_reading(sharding, step, cells[replica], distinct) for step, cells in steps),
        rows_before=sum(cells[replica].rows for cells in sharding.steps[: which.start]),
        label=f"replica {replica}",
        nothing=nothing(sharding, replica),
    )


def _together(sharding: Sharding, shown: list[int], which: slice) -> tuple[Reader, ...]:
    """All replicas as one, preceded by the hidden ones as one, if there are any."""
    hidden = sorted(set(range(sharding.replicas)) - set(shown))
    some = [(f"{len(hidden):,} more", hidden)] if hidden else []
    return tuple(
        _several(sharding, label, replicas, which)
        for label, replicas in (*some, ("all replicas", range(sharding.replicas)))
    )


def _several(sharding: Sharding, label: str, replicas: Sequence[int], which: slice) -> Reader:
    sums = [sum(step[replica].rows for replica in replicas) for step in sharding.steps]
    steps = list(enumerate(sums))[which]
    return Reader(
        replica=-1,
        host=-1,
        rows=sum(sums),
        empty_steps=sums.count(0),
        readings=tuple(Reading(step, rows, (), "") for step, rows in steps),
        rows_before=sum(sums[: which.start]),
        label=label,
    )


def _reading(sharding: Sharding, step: int, cell: ReplicaStep, distinct: np.ndarray) -> Reading:
    ids = np.array(cell.ids, np.int64)
    positions = np.unique(np.searchsorted(distinct, ids))
    parts = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1) if len(positions) else []
    ranges = [(int(part[0]), int(part[-1])) for part in parts]
    names = [_range_text(sharding, distinct, *ends) for ends in ranges[:_MAX_RANGES]]
    hidden = max(0, len(ranges) - _MAX_RANGES)
    if hidden:
        names.append(f"and {hidden} more")
    return Reading(step, cell.rows, tuple(_thinned(ranges)), ", ".join(names), hidden)


def _range_text(sharding: Sharding, distinct: np.ndarray, first: int, last: int) -> str:
    low, high = int(distinct[first]), int(distinct[last])
    start = sharding.labels.get(low, str(low))
    if first == last:
        return start
    return f"{start}–{sharding.labels.get(high, str(high)).rpartition(':')[2]}"


def _thinned(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most 32 evenly chosen ranges. Shuffled elements have many ranges, and a picture needs no more."""
    most = 32
    if len(ranges) <= most:
        return ranges
    return [ranges[index * len(ranges) // most] for index in range(most)]


def _marks(sharding: Sharding, distinct: np.ndarray) -> tuple[tuple[int, str], ...]:
    if not sharding.labels:
        return ()
    first = np.unique(distinct >> FILE_SHIFT, return_index=True)[1]
    of = -(-len(first) // _MAX_MARKS)  # all files share one mark
    return tuple(
        (int(at), sharding.labels[int(distinct[at])].rpartition(":")[0] + _and_more(len(first), index, of))
        for index, at in enumerate(first)
        if index % of == 0
    )


def _and_more(files: int, index: int, of: int) -> str:
    more = min(of, files - index) - 1
    return f" and {more} more" if more else ""


def _read_by(sharding: Sharding, distinct: np.ndarray, begins: list[int]) -> tuple[str, ...]:
    """Which replicas read each of the parts of all elements, by the parts' start positions."""
    readers: list[set[int]] = [set() for _ in begins]
    for replica in range(sharding.replicas if begins else 0):
        ids = np.array([element for step in sharding.steps for element in step[replica].ids], np.int64)
        parts = np.searchsorted(begins, np.searchsorted(distinct, ids), side="right") - 1
        for part in np.unique(parts).tolist():
            readers[part].add(replica)
    return tuple(runs_text(sorted(replicas)) for replicas in readers)
