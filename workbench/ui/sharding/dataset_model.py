"""The part of a dataset's sharding that fits a message: bounded, positions instead of ids."""

from __future__ import annotations

from typing import Final

import numpy as np

from workbench.data.provenance import FILE_SHIFT
from workbench.data.sharding.model import ReplicaStep, Sharding
from workbench.data.sharding.progress import InputProgress
from workbench.ui.models.sharding import DatasetSharding, Reader, Reading

_MAX_READERS: Final = 32
_MAX_READINGS: Final = 2048
_MAX_STEPS: Final = 64
_MAX_RANGES: Final = 4
_MAX_MARKS: Final = 64


def dataset_model(sharding: Sharding, *, progress: InputProgress | None = None) -> DatasetSharding:
    """What the view of a dataset's sharding draws.

    Args:
      sharding: The result of `explain_sharding`.
      progress: How far replicas are; by default what `sharding` knows of that.
    """
    progress = progress or sharding.progress
    ids = [element for step in sharding.steps for cell in step for element in cell.ids]
    distinct = np.unique(np.array(ids, np.int64))
    shown = _shown(sharding)
    most = max(1, min(_MAX_STEPS, _MAX_READINGS // max(1, len(shown))))
    at = -1 if progress is None else max(progress.steps, default=-1)
    first = max(0, min(at - most // 2, len(sharding.steps) - most))
    last = first + most
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
        readers=tuple(_reader(sharding, replica, distinct, slice(first, last)) for replica in shown),
        hidden_readers=sharding.replicas - len(shown),
        counts=sharding.counts,
        positions=len(distinct),
        marks=_marks(sharding, distinct),
        limit=sharding.limit,
        progress=progress,
    )


def _shown(sharding: Sharding) -> list[int]:
    """At most 32 replicas, in order: those that get nothing in some step first of all."""
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
    )


def _reading(sharding: Sharding, step: int, cell: ReplicaStep, distinct: np.ndarray) -> Reading:
    ids = np.array(cell.ids, np.int64)
    positions = np.unique(np.searchsorted(distinct, ids))
    parts = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1) if len(positions) else []
    ranges = [(int(part[0]), int(part[-1])) for part in parts]
    names = [_range_text(sharding, distinct, *ends) for ends in ranges[:_MAX_RANGES]]
    if len(ranges) > _MAX_RANGES:
        names.append(f"and {len(ranges) - _MAX_RANGES} more")
    return Reading(step, cell.rows, tuple(_thinned(ranges)), ", ".join(names))


def _range_text(sharding: Sharding, distinct: np.ndarray, first: int, last: int) -> str:
    low, high = int(distinct[first]), int(distinct[last])
    start = sharding.labels.get(low, str(low))
    if first == last:
        return start
    return f"{start}–{sharding.labels.get(high, str(high)).rpartition(':')[2]}"


def _thinned(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most 32 of the ranges, evenly chosen: of shuffled elements, single ones, a picture needs no more."""
    most = 32
    if len(ranges) <= most:
        return ranges
    return [ranges[index * len(ranges) // most] for index in range(most)]


def _marks(sharding: Sharding, distinct: np.ndarray) -> tuple[tuple[int, str], ...]:
    if not sharding.labels:
        return ()
    files, first = np.unique(distinct >> FILE_SHIFT, return_index=True)
    if len(files) > _MAX_MARKS:
        first = first[:: -(-len(files) // _MAX_MARKS)]
    return tuple((int(at), sharding.labels[int(distinct[at])].rpartition(":")[0]) for at in first)
