"""The view of values as the source of a widget: figures immediately, elements on request."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.ui.inspect.elements import look_at, requested_window, shape_at
from workbench.ui.inspect.first_bad import first_bad
from workbench.ui.inspect.result_courses import CourseSource, are_numbers
from workbench.ui.models.inspected import Elements, InspectedValue, Values
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.sources import Message

_COURSE_SECONDS: Final = 0.5

Look = Callable[[Sequence[str], Sequence[Any]], tuple[InspectedValue, ...]]
"""Inspects leaves that have names."""


class ValuesSource:
    """Facts about values, and more on request. Does not keep the values.

    A request "elements" is answered with a heat map, "again" with the present figures. Histories of numbers continue
    automatically.
    """

    view = "values"

    def __init__(
        self,
        values: tuple[InspectedValue, ...],
        leaves: Sequence[Any],
        look: Look,
        elements: Elements | None = None,
        looked_at: float | None = None,
    ) -> None:
        """Creates the source.

        Args:
          values: The facts about the values.
          leaves: The values.
          look: Finds the facts again.
          elements: A heat map to show from the start.
          looked_at: When the facts were found, seconds since 1970; by default now.
        """
        self._values = values
        self._leaves = [_kept(leaf) for leaf in leaves]
        self._look = look
        self._elements = elements
        self._looked_at = time.time() if looked_at is None else looked_at
        self._courses = {
            number: source
            for number, (value, leaf) in enumerate(zip(values, leaves, strict=False))
            if are_numbers(value.replicas) and not (source := CourseSource(leaf)).ended
        }
        self.interval_seconds = _COURSE_SECONDS if self._courses else float("inf")

    def model(self) -> Message:
        """As `Source.model`."""
        return plain(Values(self._values, self._elements, self._looked_at, first_bad(self._values)))

    def change(self) -> Message | None:
        """As `Source.change`, for histories: values are inspected only on request."""
        newest = {
            number: course.now() or self._values[number].course for number, course in self._courses.items()
        }
        if all(self._values[number].course == course for number, course in newest.items()):
            return None
        self._values = tuple(
            replace(value, course=newest.get(number, value.course))
            for number, value in enumerate(self._values)
        )
        return {"kind": "model", "model": self.model()}

    def answer(self, request: Message) -> Message | None:
        """As `Source.answer`.

        Raises:
          InvalidArgumentError: if the request is invalid.
          FailedPreconditionError: if a value is gone.
          WorkbenchError: what went wrong on the replicas.
        """
        match request.get("kind"):
            case "elements":
                try:
                    self._elements = self._fetched(request)
                except (KeyError, IndexError, TypeError, ValueError) as error:
                    raise InvalidArgumentError(f"these elements cannot be shown: {error!r}") from error
            case "again":
                names = [value.name for value in self._values]
                leaves = [self._leaf(number) for number in range(len(self._leaves))]
                self._values, self._elements = self._look(names, leaves), None
                self._looked_at = time.time()
            case _:
                return None
        return {"kind": "model", "model": self.model()}

    @property
    def ended(self) -> bool:
        """Whether no history continues."""
        return all(course.ended for course in self._courses.values())

    def _fetched(self, request: Message) -> Elements:
        number, replica, difference = (
            int(request["value"]),
            int(request["replica"]),
            bool(request["difference"]),
        )
        found, leaf = self._values[number], self._leaf(number)
        wanted = requested_window(shape_at(found, replica, difference=difference), request)
        return look_at(leaf, found, number, replica=replica, difference=difference, wanted=wanted)

    def _leaf(self, number: int) -> Any:
        leaf = self._leaves[number]()
        if leaf is None:
            raise FailedPreconditionError(
                f"{self._values[number].kind} {self._values[number].name} is gone; keep it in a variable to look at "
                f"its elements later"
            )
        return leaf


def _kept(leaf: Any) -> Callable[[], Any]:
    """Returns the leaf while something else keeps it: a view must not hold the replicas' memory."""
    try:
        return weakref.ref(leaf)
    except TypeError:  # a number, which cannot be referenced weakly
        return lambda: leaf
