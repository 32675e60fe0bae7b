"""Reports NaN and infinity found by an inspection to a cluster's log, once until they are gone."""

from __future__ import annotations

import time
import weakref
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from workbench.backends.summary import Summary
from workbench.runtime.placement_text import counted
from workbench.telemetry.events import Event
from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.formatting import MOST_NAMED, replicas_text
from workbench.ui.inspect.replica_places import place_of

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.ui.models.inspected import InspectedValue, ReplicaSummary

_told: weakref.WeakKeyDictionary[Group, tuple[int, set[tuple[Hashable, int]]]] = weakref.WeakKeyDictionary()
"""The generation, and what was not finite in it at the last look, by replica: a variable, or a result at a place in the
user's code. Verdicts use the events of the newest generation, so each generation starts over.
"""


def tell_not_finite(looked_at: Iterable[tuple[Any, InspectedValue]]) -> None:
    """Adds an alert, one per cluster, for values that were finite or not inspected before.

    Args:
      looked_at: Values, and the facts about each.
    """
    news: dict[Group, list[tuple[InspectedValue, list[ReplicaSummary]]]] = {}
    for leaf, found in looked_at:
        place = place_of(leaf)
        if place is None:
            continue
        group, what = place
        generation, known = _told.get(group, (-1, set()))
        if generation != group.generation:
            known = set()
            _told[group] = group.generation, known
        key = what if isinstance(what, str) else (what.step.site, what.step.name, what.leaf)
        bad = {(key, each.replica): each for each in found.replicas if _is_bad(each)}
        if new := [each for at, each in bad.items() if at not in known]:
            news.setdefault(group, []).append((found, new))
        before = bool(known)
        known -= {(key, each.replica) for each in found.replicas}
        known |= set(bad)
        if before and not known:
            group.gang.notify(_over(group))
    for group, found_in in news.items():
        group.gang.notify(_alert(group, found_in))


def _is_bad(replica: ReplicaSummary) -> bool:
    return isinstance(replica.summary, Summary) and bool(replica.summary.nan or replica.summary.inf)


def _alert(group: Group, news: list[tuple[InspectedValue, list[ReplicaSummary]]]) -> Event:
    found, replicas = news[0]
    first = replicas[0]
    assert isinstance(first.summary, Summary)
    where = (
        "" if first.replica < 0 else f" on {replicas_text([each.replica for each in replicas], MOST_NAMED)}"
    )
    more = f", and in {counted(len(news) - 1, 'more value')}" if len(news) > 1 else ""
    origin = "" if found.entered is None else f"; first, {onset_text(found.entered)}"
    return Event(
        "alert",
        "nan" if first.summary.nan else "inf",
        f"{group.label}: wb.inspect found in {found.name or found.kind}{where}: {first.note}{more}{origin}",
        time.monotonic_ns(),
        severity="warning",
        replica=first.replica if len(replicas) == 1 else -1,
        host=first.host if len(replicas) == 1 else "",
        step=first.bad_since,
        generation=group.generation,
        group=group.name,
    )


def _over(group: Group) -> Event:
    return Event(
        "lifecycle",
        "finite",
        f"{group.label}: what was not finite is finite",
        time.monotonic_ns(),
        generation=group.generation,
        group=group.name,
    )
