"""The values of a dump as the source of a widget: those of one step, which the user chooses with a slider."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np

from workbench.backends.summary import Summary
from workbench.distribute.values.distributed_values import PerReplica
from workbench.errors import InvalidArgumentError
from workbench.ui.inspect.facts import inspected
from workbench.ui.inspect.values_source import ValuesSource
from workbench.ui.models.inspected import InspectedValue, ReplicaSummary, Steps
from workbench.ui.render.plain_values import plain
from workbench.ui.widgets.sources import Message

_MOST_STEPS: Final = 1000
_MOST_VALUES: Final = 100
_Row = dict[str, Any]


class DumpSource:
    """The results of operations in one step of a dump. A request "step" is answered with another step.

    Elements can be shown if the dump has them.
    """

    view = "values"
    interval_seconds = float("inf")

    def __init__(
        self,
        steps: Sequence[int],
        rows_of: Callable[[int], list[_Row]],
        array_of: Callable[[_Row], np.ndarray | None],
    ) -> None:
        """Shows the last step.

        Args:
          steps: Their numbers, in order.
          rows_of: The rows of a step, by time.
          array_of: The elements in a row; None if it has none.
        """
        self._steps = tuple(steps[-_MOST_STEPS:])
        self._rows_of = rows_of
        self._array_of = array_of
        self._show(len(self._steps) - 1)

    def model(self) -> Message:
        """As `Source.model`."""
        steps = plain(Steps(self._steps, self._shown)) if self._steps else None
        return self._values.model() | {"looked_at": 0.0, "steps": steps}

    def change(self) -> Message | None:
        """None: an open dump does not change."""
        return None

    def answer(self, request: Message) -> Message | None:
        """As `Source.answer`.

        Raises:
          InvalidArgumentError: if the request is invalid.
        """
        match request.get("kind"):
            case "step":
                shown = request.get("shown")
                if type(shown) is not int or not 0 <= shown < len(self._steps):
                    raise InvalidArgumentError(f"there is no step number {shown!r} of {len(self._steps)}")
                self._show(shown)
            case "elements":
                self._values.answer(request)
            case _:
                return None
        return {"kind": "model", "model": self.model()}

    @property
    def ended(self) -> bool:
        """Changes only happen on request."""
        return True

    def _show(self, shown: int) -> None:
        self._shown = shown
        rows = self._rows_of(self._steps[shown]) if self._steps else []
        # One operation on all replicas is one value.
        ordered = sorted(rows, key=_operation)
        groups = [sorted(own, key=lambda row: row["replica"]) for _, own in groupby(ordered, key=_operation)]
        arrays = [list(map(self._array_of, group)) for group in groups[:_MOST_VALUES]]
        self._leaves = list(map(_leaf, arrays, groups))  # the view itself keeps no arrays
        values = tuple(map(_value, groups, self._leaves))
        self._values = ValuesSource(values, self._leaves, lambda names, leaves: values, looked_at=0.0)


def _operation(row: _Row) -> tuple[int, str, int]:
    return row["number"], row["op"], row["output"]


def _leaf(arrays: list[np.ndarray | None], group: list[_Row]) -> Any:
    """The elements of a value, one component per replica; None if the dump does not have all of them."""
    if any(array is None for array in arrays):
        return None
    if len(arrays) == 1:
        return arrays[0]
    return PerReplica(arrays) if [row["replica"] for row in group] == list(range(len(group))) else None


def _value(group: list[_Row], leaf: Any) -> InspectedValue:
    first = group[0]
    target = f" of {first['name']}" if first["name"] else ""
    name = f"{first['number']}{target}" + (f", {first['line']}" if first["line"] else "")
    if leaf is not None:
        (found,) = inspected([name], [leaf], exact=True)
        known = tuple(
            ReplicaSummary(row["replica"], row["host"] or "", "", each.summary)
            for row, each in zip(group, found.replicas, strict=True)
        )
        return InspectedValue(name, first["op"], known, None)
    known = tuple(ReplicaSummary(row["replica"], row["host"] or "", "", _facts(row)) for row in group)
    return InspectedValue(name, first["op"], known, None)


def _facts(row: _Row) -> Summary | str:
    """The facts in a row: all figures, or a text on what its mode records."""
    if row["variance"] is not None and row["shape"] is not None:
        size, mean = row["size"], row["mean"]
        infinite = row["positive_infinities"] + row["negative_infinities"]
        finite = size - row["nans"] - infinite
        return Summary(
            shape=tuple(row["shape"]),
            dtype=row["dtype"],
            read=size,
            mean=mean,
            std=math.sqrt(row["variance"]),
            min=row["min"],
            max=row["max"],
            l2=math.sqrt(finite * (row["variance"] + mean * mean)),
            zeros=row["zeros"],
            nan=row["nans"],
            inf=infinite,
            first_bad=-1,
            histogram=(),
            sha256="",
        )
    shape = "" if row["shape"] is None else f"[{','.join(map(str, row['shape']))}]"
    parts = [f"{row['dtype']}{shape}" if row["dtype"] else "an array"]
    if row["nans"] is not None:
        parts.append(f"{row['nans']} NaN, {row['positive_infinities'] + row['negative_infinities']} infinite")
    elif row["bad"] is not None:
        parts.append("NaN or infinity" if row["bad"] else "finite")
    return ", ".join(parts)
