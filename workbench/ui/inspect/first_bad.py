"""Which inspected value went wrong first, in the words of all views, without guessing a replica or step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from workbench.backends.summary import Summary
from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.snapshot import Onset
from workbench.ui.models.inspected import FirstBad, InspectedValue, ReplicaSummary

FIND_IT: Final = "wb.debugging.enable_check_numerics() makes the next run stop where it appears"


class _Bad(NamedTuple):
    """A component that is not finite. `order` sorts the earliest first, and those of unknown age last."""

    order: tuple[bool, int]
    value: int
    replica: ReplicaSummary
    summary: Summary


def first_bad(values: Sequence[InspectedValue]) -> FirstBad | None:
    """What went wrong first, None if everything is finite."""
    found = [
        _Bad(_order(each, value.entered), number, each, each.summary)
        for number, value in enumerate(values)
        for each in value.replicas
        if isinstance(each.summary, Summary) and each.summary.first_bad >= 0
    ]
    if not found:
        return None
    first = min(found, key=lambda bad: (bad.order, bad.value, bad.replica.replica))
    value = values[first.value]
    same = [bad for bad in found if (bad.order, bad.value) == (first.order, first.value)]
    givers = value.entered.replicas if value.entered is not None else ()
    chosen = next((bad for bad in same if bad.replica.replica in givers), first)
    kind = "NaN" if chosen.summary.nan else "Inf"
    parts = [f"first {kind}: {value.name or value.kind}", *_origin(same, value)]
    if chosen.summary.shape:
        place = np.unravel_index(chosen.summary.first_bad, chosen.summary.shape)
        parts.append(f"[{', '.join(map(str, map(int, place)))}]")
    return FirstBad(chosen.value, chosen.replica.replica, " · ".join(parts))


def _order(replica: ReplicaSummary, entered: Onset | None) -> tuple[bool, int]:
    steps = [step for step in (replica.bad_since, entered.step if entered else -1) if step >= 0]
    return not steps, min(steps, default=0)


def _origin(bad: Sequence[_Bad], value: InspectedValue) -> list[str]:
    """Replica and step, as far as they are known, of the first components of one value to go wrong."""
    entered, replicas = value.entered, [each.replica.replica for each in bad]
    if entered is not None:
        return [onset_text(entered)]
    if replicas == [-1]:
        return []
    exact = bad[0].replica.bad_since
    if len(bad) == 1:
        who = f"replica {replicas[0]}"
    else:
        who = f"all {len(bad)} copies" if len(bad) == len(value.replicas) else f"{len(bad)} copies"
    when = f"step {exact}" if exact >= 0 else bad[0].replica.note.partition(", at")[0].partition(" ")[2]
    unknown = "origin not known" if len(bad) > 1 else ""
    return [part for part in (who, when, unknown) if part]


def origin_hints(
    replicas: Sequence[ReplicaSummary], entered: Onset | None, silent: Sequence[str] = ()
) -> tuple[str, ...]:
    """Sentences on where a value's NaN or infinity came from or, if unknown, how to find it.

    Args:
      replicas: The value's components.
      entered: The first collective that received it, according to the records so far.
      silent: Addresses of workers whose newest records are missing.
    """
    bad = [each for each in replicas if isinstance(each.summary, Summary) and each.summary.first_bad >= 0]
    if not bad:
        return ()
    if entered is not None:
        first = f"The first NaN or infinity: {onset_text(entered)}."
        if entered.certain:
            return (first,)
        return (f"{first} {_to_come(silent) or f'Not everything was read before; {FIND_IT}.'}",)
    if len(bad) > 1 and bad[0].replica >= 0:
        unknown = "Which replica it came from is not known"
        if silent:
            return (f"{unknown} yet. {_to_come(silent)}",)
        return (f"{unknown}: no collective was seen to take it in. {FIND_IT}.",)
    return ()


def _to_come(silent: Sequence[str]) -> str:
    """Says that workers have not sent their newest records; "" if there are no such workers."""
    if not silent:
        return ""
    who = (
        f"Worker {silent[0]} has" if len(silent) == 1 else f"{len(silent)} workers, such as {silent[0]}, have"
    )
    return f"{who} not sent the newest records: inspect the value again."
