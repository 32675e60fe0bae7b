"""`wb.inspect`: per-replica facts about values, computed on the replicas."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, Final

from workbench.arguments import flag, text, whole_number
from workbench.backends.summary import Summary
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError
from workbench.ui.inspect.elements import Index, elements_text, look_at, shape_at, window_at
from workbench.ui.inspect.facts import inspected
from workbench.ui.inspect.first_bad import first_bad
from workbench.ui.inspect.leaves import leaves_of
from workbench.ui.inspect.text import inspection_html, inspection_text
from workbench.ui.inspect.values_source import ValuesSource
from workbench.ui.models.inspected import Elements, InspectedValue, Values
from workbench.ui.render import html
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets import shown
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.sources import Fixed

_MOST_SHOWN: Final = 100
_MOST_LOOKED_AT: Final = 4_096


class Inspection:
    """What `wb.inspect` found. Prints as a table, with a heat map of elements below if requested.

    If there are many values, it shows some of them, preferably those that are not finite or have diverged; `values` has
    all inspected ones.

    Attributes:
      values: One per leaf of the inspected structure.
      elements: The requested elements, or None.
    """

    def __init__(
        self,
        values: tuple[InspectedValue, ...],
        leaves: Sequence[Any] = (),
        elements: Elements | None = None,
        *,
        exact: bool = False,
        more: bool = False,
    ) -> None:
        """Creates an inspection.

        Args:
          values: One per inspected leaf.
          leaves: The inspected leaves.
          elements: The requested elements.
          exact: Whether all of each leaf was read, and will be when it is inspected again.
          more: Whether there are leaves that were not inspected.
        """
        self.values = values
        self.elements = elements
        self._looked_at = time.time()
        chosen = _worth_showing(values)
        self._leaves = tuple(leaves[number] for number in chosen) if leaves else ()
        note = _note(len(values) - len(chosen), len(values) if more else 0)
        self._shown = _with_note(tuple(values[number] for number in chosen), note)
        self._look = partial(_look_again, note=note, exact=exact)

    @property
    def model(self) -> Values:
        """What the view draws."""
        return Values(self._shown, self.elements, self._looked_at, first_bad(self._shown))

    def to_dict(self) -> dict[str, Any]:
        """All facts as JSON-able values; None for a number without meaning."""
        return {"values": [plain(value) for value in self.values]}

    def __repr__(self) -> str:
        return "\n".join([inspection_text(self._shown), *self._heat_map()])

    def _repr_html_(self) -> str:
        map_ = self._heat_map()
        return inspection_html(self._shown) + (html.preformatted("\n".join(map_)) if map_ else "")

    def source(self) -> ValuesSource:
        """The source of a view of it."""
        return ValuesSource(self._shown, self._leaves, self._look, self.elements, self._looked_at)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return mimebundle(self.source(), text=repr(self), html=self._repr_html_(), include=include)

    def _heat_map(self) -> list[str]:
        elements = self.elements
        if elements is None:
            return []
        return elements_text(elements, self.values[elements.value].name or self.values[elements.value].kind)


def _look_again(
    names: Sequence[str], leaves: Sequence[Any], *, note: str, exact: bool
) -> tuple[InspectedValue, ...]:
    return _with_note(inspected(names, leaves, exact=exact), note)


def _note(hidden: int, looked_at: int) -> str:
    """A note on how many values are hidden, and, if there are more, how many were examined."""
    if looked_at:
        return f"only the first {looked_at:,} values were looked at: inspect a part, or give exact=True"
    return f"{hidden:,} more values are not shown: inspect a part of them" if hidden else ""


def _with_note(values: tuple[InspectedValue, ...], note: str) -> tuple[InspectedValue, ...]:
    if not note:
        return values
    *others, last = values
    return (*others, replace(last, hints=(*last.hints, note)))


def _worth_showing(values: Sequence[InspectedValue]) -> list[int]:
    """The numbers of the values to show, in order."""

    def is_fine(number: int) -> bool:
        value = values[number]
        summaries = [each.summary for each in value.replicas if isinstance(each.summary, Summary)]
        finite = not any(summary.nan or summary.inf for summary in summaries)
        return finite and (value.agreement is None or value.agreement.in_sync)

    return sorted(sorted(range(len(values)), key=is_fine)[:_MOST_SHOWN])


def inspect(
    value: Any,
    *,
    name: str = "",
    elements: Index | None = None,
    replica: int | None = None,
    difference: bool = False,
    exact: bool = False,
) -> Inspection:
    """Looks at a value, replica by replica: shape, mean, spread, zeros, NaNs, and whether copies agree.

    The replicas compute the figures; no component is sent to the notebook. `inspect` waits for the steps that make the
    value. In a notebook, the view shows elements, and how they differ from those of replica 0, when you ask for them.

    Args:
      value: A PerReplica, Mirrored, variable or array, a nested structure of them, or a strategy: its variables.
      name: A name for the value; by default the variable's name, or the name in the calling code.
      elements: Also draw elements of a single value as a heat map: `...` draws the last two axes, an index such as
        `np.s_[3, :, 100:200]` must leave at most two axes. At most 2,500 numbers are sent: if there are more elements,
        each number is the mean of several, and is NaN or infinite if one of them is.
      replica: The replica whose elements to show; by default the first one with NaN or infinity, otherwise the first
        one that differs.
      difference: Draw how the elements differ from those of replica 0; among several values, draw the one that differs
        most.
      exact: Read everything, however long it takes. By default, `inspect` reads about 67 million elements, evenly
        spaced, of an array on a CPU with more than 268 million, and the first 4,096 of more values.

    Raises:
      InvalidArgumentError: if there are no such elements.
      WrongType: if an argument is of another kind.
      WorkbenchError: if the step that made the value failed.

    >>> ids = strategy.run(lambda: wb.distribute.get_replica_context().replica_id_in_sync_group)
    >>> found = wb.inspect(ids, name="ids")  # a live view, as the last line of a cell
    >>> print(found)
    PerReplica 'ids' int64 () over 2 replicas ...
    """
    text(name, "wb.inspect: name")
    difference, exact = flag(difference, "wb.inspect: difference"), flag(exact, "wb.inspect: exact")
    replica = None if replica is None else whole_number(replica, "wb.inspect: replica")
    called = name or name_in(sys._getframe(1), value)
    return inspection_of(
        value, called, elements=elements, replica=replica, difference=difference, exact=exact
    )


def inspection_of(
    value: Any,
    name: str,
    *,
    elements: Index | None = None,
    replica: int | None = None,
    difference: bool = False,
    exact: bool = False,
) -> Inspection:
    """As `inspect`, for a value with this name, or "" if it has none."""
    if isinstance(value, Strategy):
        name, value = "", {variable.name: variable for variable in value.variables}
    structure = leaves_of(value)
    found = list(itertools.islice(structure, None if exact else _MOST_LOOKED_AT))
    leaves = [leaf for _, leaf in found]
    names = [
        leaf.name if isinstance(leaf, Variable | VariableComponent) else name + "".join(map(_part_text, path))
        for path, leaf in found
    ]
    values = inspected(names, leaves, exact=exact)
    drawn = None
    if elements is not None:
        if len(leaves) != 1:
            raise InvalidArgumentError(
                f"elements= shows one value, got a structure of {len(leaves)}; inspect one of them"
            )
        rank = _most_interesting(values[0], difference) if replica is None else replica
        wanted = window_at(shape_at(values[0], rank, difference=difference), elements)
        drawn = look_at(leaves[0], values[0], 0, replica=rank, difference=difference, wanted=wanted)
    inspection = Inspection(values, leaves, drawn, exact=exact, more=next(structure, None) is not None)
    shown.tell("values", lambda: Fixed("values", inspection.model))
    return inspection


def _most_interesting(found: InspectedValue, difference: bool) -> int:
    """The replica whose elements are shown by default."""
    bad = [
        each.replica
        for each in found.replicas
        if isinstance(each.summary, Summary) and each.summary.first_bad >= 0
    ]
    if bad and not difference:
        return bad[0]
    if found.agreement is not None and found.agreement.first_replica > 0:
        return found.agreement.first_replica
    return found.replicas[min(int(difference), len(found.replicas) - 1)].replica


def _part_text(part: Any) -> str:
    """A key or index in the name of a leaf.

    Other objects are shown without their `repr`, which could execute anything.
    """
    return f"[{part!r}]" if type(part) in (str, int, bool, float, bytes) else f"[<{type(part).__name__}>]"


def name_in(frame: FrameType, value: Any) -> str:
    """The name of the value in a frame's code, or ""."""
    return name_among(value, frame.f_locals) or name_among(value, frame.f_globals)


def name_among(value: Any, variables: Mapping[str, Any]) -> str:
    """The name of the value among these variables, or ""."""
    return next(
        (name for name, held in list(variables.items()) if held is value and not name.startswith("_")), ""
    )
