"""The history of a number that steps return, up to the newest step, which may be later than the inspected one."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from workbench.backends.summary import Summary
from workbench.runtime.driver.group import group_of
from workbench.ui.inspect.replica_places import place_of

if TYPE_CHECKING:
    from workbench.telemetry.told import ResultCourse
    from workbench.ui.models.inspected import ReplicaSummary

_LEAST: Final = 2
"""Fewer steps are no history."""


def are_numbers(replicas: Sequence[ReplicaSummary]) -> bool:
    """Whether each of several replicas has a single number, so that a history is possible."""
    return len(replicas) > 1 and all(
        isinstance(each.summary, Summary) and math.prod(each.summary.shape) == 1 for each in replicas
    )


class CourseSource:
    """Follows one number that steps return, even after the inspected value itself is gone."""

    def __init__(self, leaf: Any) -> None:
        """Creates the source.

        Args:
          leaf: An inspected value; only results of steps have a history.
        """
        place = place_of(leaf)
        self._group = None
        if place is not None and not isinstance(place[1], str) and place[1].step.number >= 0:
            handle = place[1]
            self._group = weakref.ref(group_of(handle))
            self._place, self._leaf = (handle.step.site, handle.step.name), handle.leaf

    def now(self) -> ResultCourse | None:
        """The history up to the newest step; None if there is none."""
        group = self._group() if self._group is not None else None
        course = None if group is None else group.recent.course_of(self._place, self._leaf)
        return course if course is not None and len(course.steps) >= _LEAST else None

    @property
    def ended(self) -> bool:
        """Whether no step can follow."""
        group = self._group() if self._group is not None else None
        return group is None or group.gang.closed
