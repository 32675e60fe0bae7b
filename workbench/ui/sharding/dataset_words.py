"""Statements about a dataset's sharding: which replicas get nothing and why, the cost, and the last steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from workbench.data.sharding.model import Sharding
from workbench.telemetry.verdicts.words import count_text

_MOST_RUNS: Final = 4
_MOST_ROWS: Final = 8


def runs_text(numbers: Sequence[int]) -> str:
    """Ascending numbers, with consecutive ones as first–last.

    >>> runs_text([0, 1, 2, 5]), runs_text(range(0, 20, 2))
    ('0–2, 5', '0, 2, 4, 6 and 6 more')
    """
    begins = [at for at, number in enumerate(numbers) if not at or number != numbers[at - 1] + 1]
    runs = [numbers[first:after] for first, after in pairwise([*begins, len(numbers)])]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs[:_MOST_RUNS]]
    more = sum(len(run) for run in runs[_MOST_RUNS:])
    return ", ".join(texts) + (f" and {more} more" if more else "")


def figures(sharding: Sharding) -> str:
    """What counts and policy do not show; ▲ marks problems."""
    dropped = "– dropped" if sharding.dropped is None else f"{sharding.dropped:,} dropped"
    why = f" ({sharding.dropped_unknown})" if sharding.dropped_unknown else ""
    parts = [
        count_text(sharding.elements, "element"),
        f"{sharding.hosts} hosts × {count_text(sharding.replicas_per_host, 'replica')}"
        if sharding.hosts > 1
        else "",
        sharding.algorithm,
        _wrong(count_text(sharding.duplicates, "duplicate"), sharding.duplicates),
        _wrong(f"{dropped}{why}", sharding.dropped),
        _wrong(f"{count_text(len(sharding.empty), 'turn')} without rows", 1) if sharding.empty else "",
    ]
    return " · ".join(filter(None, parts))


def nothing(sharding: Sharding, replica: int) -> str:
    """Why a replica reads nothing; "" if it reads something."""
    if sharding.counts[replica] or not any(sharding.counts):
        return ""
    host = replica // sharding.replicas_per_host
    if _host_reads(sharding, replica):
        if 0 < sharding.batch_size < sharding.replicas:
            return f"a batch of {sharding.batch_size} has no row for it"
        return "its part of each batch is empty"
    if sharding.policy_used == "FILE":
        return f"host {host} has no file with elements"
    return f"host {host} gets no elements"


def sentence(sharding: Sharding) -> str:
    """Which replicas get nothing, and why; "" if each gets something."""
    without = _without(sharding)
    if not without:
        return ""
    which, gets = ("replica", "gets") if len(without) == 1 else ("replicas", "get")
    return f"{which.capitalize()} {runs_text(without)} {gets} no data: {nothing(sharding, without[0])}"


def advice(sharding: Sharding) -> str:
    """The cost of replicas that get nothing, and the remedy."""
    without = _without(sharding)
    if not without:
        return ""
    most = max(sum(cell.rows for cell in step) for step in sharding.steps)
    size = sharding.batch_size
    cost = f"a step uses {most:,} rows, not {size:,}; " if most < size else ""
    if _host_reads(sharding, without[0]):
        return f"{cost}batches of a multiple of {sharding.replicas} rows have as many for each replica"
    if remedy(sharding):
        return f"{cost}policy DATA deals elements out instead of files"
    return f"{cost}other policies and numbers of hosts can be tried out below"


def remedy(sharding: Sharding) -> str:
    """The name of the remedy for replicas without data because there are too few files; "" if there is none."""
    without = _without(sharding)
    if not without or sharding.policy_used != "FILE" or _host_reads(sharding, without[0]):
        return ""
    return "data_policy"


def remainder_text(sharding: Sharding) -> str:
    """How the last steps differ from the others; "" if they do not, or the last one is unknown."""
    if sharding.limit or not sharding.remainder:
        return ""
    last = len(sharding.steps) - 1
    ends = [
        max((at for at, step in enumerate(sharding.steps) if step[replica].rows), default=-1)
        for replica in range(sharding.replicas)
    ]
    done = [replica for replica, end in enumerate(ends) if 0 <= end < last]
    rows = [count for count in sharding.remainder if count]
    if len(set(rows)) == 1 and len(rows) > 2:
        what = f"{len(rows)} × {rows[0]}"
    elif len(rows) <= _MOST_ROWS:
        what = " + ".join(map(str, rows))
    else:
        what = f"{sum(rows):,}"
    finished = ""
    if done:
        which, have = ("replica", "has") if len(done) == 1 else ("replicas", "have")
        first = min(ends[replica] for replica in done) + 1
        finished = f"{which} {runs_text(done)} {have} no rows from step {first} on; "
    return f"{finished}the remainder is {what}"


def _wrong(text: str, count: int | None) -> str:
    return f"▲ {text}" if count else text


def _without(sharding: Sharding) -> list[int]:
    return [replica for replica in range(sharding.replicas) if nothing(sharding, replica)]


def _host_reads(sharding: Sharding, replica: int) -> bool:
    """Whether a replica's host reads something that another of its replicas gets."""
    first = replica // sharding.replicas_per_host * sharding.replicas_per_host
    return any(sharding.counts[first : first + sharding.replicas_per_host])
