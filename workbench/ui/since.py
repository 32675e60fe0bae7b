"""Since which step a value has been wrong: by the step that made it, or by what earlier inspections have seen."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.runtime.replica_store import Written

if TYPE_CHECKING:
    from workbench.runtime.group import Group
    from workbench.runtime.handles import Handle


@dataclass(slots=True)
class _Known:
    """What inspections have seen of one property of a variable.

    Attributes:
      right: How it had been assigned when the property last held.
      since: In words since when it has not held, "" while it does.
    """

    right: Written
    since: str = ""


_known: weakref.WeakKeyDictionary[Group, dict[Hashable, _Known]] = weakref.WeakKeyDictionary()
_CREATED = Written(1, -1, 0)


def variable_since(group: Group, what: Hashable, holds: bool, written: Written) -> str:
    """Since when a property of a variable, such as being finite, has not held.

    What happened between two inspections is not known: a variable that was assigned once since it was last right
    went wrong in that step, otherwise in one of the steps in between.

    Args:
      group: Its replicas.
      what: Names variable and property.
      holds: Whether it holds now.
      written: How the variable was assigned.

    Returns:
      Such as "at step 5" or "between steps 3 and 9"; "" if it holds, or if no step did it.
    """
    known = _known.setdefault(group, {}).setdefault(what, _Known(_CREATED))
    if holds:
        known.right, known.since = written, ""
    elif not known.since and written.step >= 0 and written.times > known.right.times:
        first, last = known.right.step + 1, written.step
        alone = written.times == known.right.times + 1 or first >= last
        known.since = f"at step {last}" if alone else f"between steps {first} and {last}"
    return known.since


def result_since(handle: Handle, rank: int) -> str:
    """Since when a result has not been finite: "since step 118", or "at step 118" if earlier steps are not known."""
    step = handle.step
    if step.number < 0:
        return ""
    number, known = handle.group.recent.bad_since(step, handle.leaf, rank)
    return f"{'since' if known or number < step.number else 'at'} step {number}" + (
        "" if known or number == step.number else " or before"
    )


def empty_input(handle: Handle, rank: int) -> bool:
    """Whether the step that made a result took an input without rows on a replica; only while that input exists."""
    for reference in handle.step.inputs:
        taken = reference()
        spec = None if taken is None or taken.failed else taken.spec(rank)
        if spec is not None and spec[1][:1] == (0,):
            return True
    return False
