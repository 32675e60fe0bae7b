"""Since which step a value has been wrong, from the step that made it or from earlier inspections."""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from workbench.runtime.driver.group import Group, group_of
from workbench.runtime.replica.replica_store import Written
from workbench.telemetry.feed.step_window import STEPS
from workbench.telemetry.told import ResultCourse

if TYPE_CHECKING:
    from workbench.runtime.driver.handle import Handle


class Since(NamedTuple):
    """Since when something has been wrong.

    Attributes:
      step: The first step after which it certainly was, -1 if unknown.
      text: In words, such as "at step 5" or "between steps 3 and 9"; "" if it is not wrong or unknown.
      first: The first step in which it may have become so.
    """

    step: int
    text: str
    first: int = -1

    @property
    def exact(self) -> int:
        """The step in which it went wrong, -1 if unknown."""
        return self.step if self.first == self.step else -1


UNKNOWN: Final = Since(-1, "")


@dataclass(slots=True)
class _Known:
    """The history of one property of a variable, according to inspections.

    Attributes:
      times: How often each replica had assigned the variable when the property last held.
      after: The step after which it last held.
      doubtful: Whether the notebook has since assigned only some replicas, and no inspection has followed.
      since: The step since which it has not held.
    """

    times: tuple[int, ...]
    after: int = -1
    doubtful: bool = False
    since: Since = UNKNOWN


_seen: weakref.WeakKeyDictionary[Group, dict[Hashable, dict[int, float | None]]] = weakref.WeakKeyDictionary()
_known: weakref.WeakKeyDictionary[Group, dict[Hashable, _Known]] = weakref.WeakKeyDictionary()


def variable_since(group: Group, what: Hashable, holds: bool, written: Sequence[Written]) -> Since:
    """Since when a property of a variable, such as being finite, has not held.

    Nothing is known between two inspections: if a variable was assigned in only one step since it was last right, it
    went wrong in that step, otherwise in one of the steps in between. Values assigned by the notebook itself count as
    right, which makes earlier knowledge obsolete; if it assigns only some replicas, nothing is known until an
    inspection finds that the property holds.

    Args:
      group: Its replicas.
      what: Identifies variable and property.
      holds: Whether it holds now.
      written: How the variable was assigned on each replica that the property concerns.
    """
    known = _known.setdefault(group, {}).setdefault(what, _Known((0,) * len(written)))
    # A replaced replica counts from zero again, with a value from another replica.
    known.times = tuple(map(min, known.times, (each.times for each in written)))
    outside = tuple(each.outside_times for each in written)
    newer = [now > before for now, before in zip(outside, known.times, strict=True)]
    if any(newer):
        known.doubtful = not all(newer)
        known.times = tuple(map(max, known.times, outside))
        known.after = max(known.after, *(each.outside_after for each in written))
        known.since = UNKNOWN
    # How often replicas have assigned it in steps since then, and the last of these steps.
    later = [
        (each.times - before, each.step)
        for each, before in zip(written, known.times, strict=True)
        if each.times > before
    ]
    if holds:
        known.times, known.doubtful, known.since = tuple(each.times for each in written), False, UNKNOWN
        known.after = max(known.after, *(max(each.step, each.outside_after) for each in written))
    elif later and not known.doubtful and not known.since.text:
        first, last = known.after + 1, max(step for _, step in later)
        alone = first >= last or set(later) == {(1, last)}
        text = f"at step {last}" if alone else f"between steps {first} and {last}"
        known.since = Since(last, text, last if alone else first)
    return known.since


def differences_seen(
    group: Group, what: Hashable, largest: float, written: Sequence[Written]
) -> ResultCourse | None:
    """The largest difference between the copies of a variable, at each step after which it was inspected.

    Args:
      group: Its replicas.
      what: Identifies the variable.
      largest: The largest difference now.
      written: How the variable was assigned on each replica.

    Returns:
      The newest 64 differences, None if there is only one.
    """
    seen = _seen.setdefault(group, {}).setdefault(what, {})
    # Comparing copies takes a step, too, so the newest step did not make them differ.
    step = max(each.step for each in written) if largest else group.committed_step
    if step >= 0:
        seen.pop(step, None)
        seen[step] = float(f"{largest:.6g}") if math.isfinite(largest) else None
    while len(seen) > STEPS:
        del seen[next(iter(seen))]
    if len(seen) < 2:
        return None
    steps = tuple(sorted(seen))
    return ResultCourse("largest difference", "", steps, tuple(seen[each] for each in steps), ())


def result_since(handle: Handle, rank: int) -> Since:
    """Since when a result has not been finite: "since step 118", or "at step 118" if earlier steps are not known."""
    step = handle.step
    if step.number < 0:
        return UNKNOWN
    number, known = group_of(handle).recent.bad_since(step, handle.leaf, rank)
    how = "since" if known or number < step.number else "at"
    before = "" if known or number == step.number else " or before"
    return Since(number, f"{how} step {number}{before}", 0 if before else number)


def empty_input(handle: Handle, rank: int) -> bool:
    """Whether the step that made a result took an input without rows on a replica; only while that input exists."""
    for reference in handle.step.inputs:
        taken = reference()
        spec = None if taken is None or taken.failed else taken.spec(rank)
        if spec is not None and spec[1][:1] == (0,):
            return True
    return False
