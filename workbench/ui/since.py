"""Since which step a value has been wrong: by the step that made it, or by what earlier inspections have seen."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from workbench.runtime.replica_store import Written

if TYPE_CHECKING:
    from workbench.runtime.group import Group
    from workbench.runtime.handles import Handle


class Since(NamedTuple):
    """Since when something has been wrong.

    Attributes:
      step: The first step after which it certainly was, -1 if that is not known.
      text: In words, such as "at step 5" or "between steps 3 and 9"; "" if it is not wrong, or not known.
    """

    step: int
    text: str


UNKNOWN: Final = Since(-1, "")


@dataclass(slots=True)
class _Known:
    """What inspections have seen of one property of a variable.

    Attributes:
      times: How often it had been assigned when the property last held.
      after: The step after which that was.
      since: Since when it has not held.
    """

    times: int = 0
    after: int = -1
    since: Since = UNKNOWN


_known: weakref.WeakKeyDictionary[Group, dict[Hashable, _Known]] = weakref.WeakKeyDictionary()


def variable_since(group: Group, what: Hashable, holds: bool, written: Written) -> Since:
    """Since when a property of a variable, such as being finite, has not held.

    What happened between two inspections is not known: a variable that was assigned once since it was last right
    went wrong in that step, otherwise in one of the steps in between. What the notebook itself assigns counts as
    right, so that what was known from before is outdated.

    Args:
      group: Its replicas.
      what: Names variable and property.
      holds: Whether it holds now.
      written: How the variable was assigned.
    """
    known = _known.setdefault(group, {}).setdefault(what, _Known())
    if written.outside_times > known.times:
        known.times, known.after, known.since = written.outside_times, written.outside_after, UNKNOWN
    if holds:
        known.times, known.since = written.times, UNKNOWN
        known.after = max(written.step, written.outside_after)
    elif not known.since.text and written.step >= 0 and written.times > known.times:
        first, last = known.after + 1, written.step
        alone = written.times == known.times + 1 or first >= last
        known.since = Since(last, f"at step {last}" if alone else f"between steps {first} and {last}")
    return known.since


def result_since(handle: Handle, rank: int) -> Since:
    """Since when a result has not been finite: "since step 118", or "at step 118" if earlier steps are not known."""
    step = handle.step
    if step.number < 0:
        return UNKNOWN
    number, known = handle.group.recent.bad_since(step, handle.leaf, rank)
    how = "since" if known or number < step.number else "at"
    before = "" if known or number == step.number else " or before"
    return Since(number, f"{how} step {number}{before}")


def empty_input(handle: Handle, rank: int) -> bool:
    """Whether the step that made a result took an input without rows on a replica; only while that input exists."""
    for reference in handle.step.inputs:
        taken = reference()
        spec = None if taken is None or taken.failed else taken.spec(rank)
        if spec is not None and spec[1][:1] == (0,):
            return True
    return False
