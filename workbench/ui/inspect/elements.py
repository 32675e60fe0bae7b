"""The elements of one replica's component: a heat map of two of its axes, fetched on request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Final

import numpy as np

from workbench.backends.summary import Summary
from workbench.distribute.values.distributed_values import DistributedValues
from workbench.errors import InvalidArgumentError
from workbench.ui.inspect.replica_places import place_of
from workbench.ui.inspect.windows import Window, elements_of, pooled, window, window_of
from workbench.ui.models.inspected import Elements, InspectedValue
from workbench.ui.render.text_table import figure

Index = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]
_SHADES: Final = "·░▒▓█"
_BAD: Final = "!"
_TEXT_CELLS: Final = (24, 80)


def look_at(
    leaf: Any, found: InspectedValue, number: int, *, replica: int, difference: bool, wanted: Window
) -> Elements:
    """Fetches cells from the replica that holds them; for a difference, from all replicas.

    Args:
      leaf: The value.
      found: The facts about it.
      number: Its number among the inspected values.
      replica: The replica that holds the component.
      difference: Whether to show how it differs from replica 0.
      wanted: Which elements.
    """
    place = place_of(leaf)
    if place is None:
        parts = leaf.values if isinstance(leaf, DistributedValues) else (leaf,)
        mine, first = (elements_of(parts[rank], wanted) for rank in (max(0, replica), 0))
        cells = pooled(mine, wanted.steps, minus=first if difference else None)
    else:
        group, what = place
        passed, stored = ([], [what]) if isinstance(what, str) else ([what], [])
        prepared = group.prepare(window_of, user_function=window_of if difference else None)
        rank = max(0, replica)
        ranks = None if difference else [rank]
        cells = group.run(prepared, (passed, stored, wanted, difference), ranks=ranks).value(rank)
    return Elements(
        value=number,
        replica=replica,
        difference=difference,
        shape=wanted.shape,
        axes=wanted.axes,
        index=wanted.index,
        extent=wanted.extent,
        steps=wanted.steps,
        cells=tuple(tuple(map(_rounded, row)) for row in cells.tolist()),
    )


def shape_at(found: InspectedValue, replica: int, *, difference: bool) -> tuple[int, ...]:
    """The shape of a replica's component.

    Args:
      found: The value.
      replica: Rank of the replica.
      difference: Whether the difference to replica 0 is shown.

    Raises:
      InvalidArgumentError: if there is no such component, or nothing to compare it with, or it has no elements.
    """
    summaries = {each.replica: each.summary for each in found.replicas}
    summary = summaries.get(replica)
    if summary is None:
        known = ", ".join(map(str, summaries))
        raise InvalidArgumentError(f"{found.kind} {found.name} has replicas {known}, not {replica}")
    if not isinstance(summary, Summary) or 0 in summary.shape:
        what = summary if isinstance(summary, str) else f"of shape {summary.shape}"
        raise InvalidArgumentError(
            f"{found.kind} {found.name} of replica {replica} has no elements: it is {what}"
        )
    if difference and (
        0 not in summaries
        or any(getattr(each, "shape", None) != summary.shape for each in summaries.values())
    ):
        raise InvalidArgumentError(
            f"{found.kind} {found.name} cannot be compared with replica 0: its components differ in shape, or are one"
        )
    return summary.shape


def window_at(shape: tuple[int, ...], elements: Index) -> Window:
    """The window for a NumPy index: numbers choose a place, slices the one or two axes to show.

    Args:
      shape: The shape of the array.
      elements: The index, such as `...` for the last two axes, or `np.s_[3, :, 100:200]`; trailing axes may be omitted.

    Raises:
      InvalidArgumentError: if it does not fit the shape, leaves more than two axes, or has a step.
    """
    given = elements if isinstance(elements, tuple) else (elements,)
    if ... in given:
        at = given.index(...)
        missing = len(shape) - len(given) + 1
        # An ellipsis alone means "show me something": the last two axes, at index 0 of the others.
        fill: tuple[Any, ...] = (slice(None),) * missing
        if len(given) == 1:
            fill = (*[0] * max(0, len(shape) - 2), *[slice(None)] * min(2, len(shape)))
        given = (*given[:at], *fill, *given[at + 1 :])
    given = (*given, *[slice(None)] * (len(shape) - len(given)))
    if len(given) > len(shape) or ... in given:
        raise InvalidArgumentError(
            f"elements={elements!r} has more places than an array of shape {shape} has axes"
        )
    axes = [axis for axis, place in enumerate(given) if isinstance(place, slice)]
    if len(axes) > 2:
        raise InvalidArgumentError(
            f"elements={elements!r} leaves {len(axes)} axes of an array of shape {shape}, two can be shown; give a "
            f"number for the others, as in np.s_[{', '.join(['0'] * (len(shape) - 2) + [':', ':'])}]"
        )
    index, extent = [], []
    for axis, (place, size) in enumerate(zip(given, shape, strict=True)):
        if isinstance(place, slice):
            start, stop, step = place.indices(size)
            if step != 1 or stop <= start:
                raise InvalidArgumentError(
                    f"axis {axis}: {place} is empty or has a step; elements are shown side by side"
                )
            index.append(start)
            extent.append(stop - start)
        elif isinstance(place, int | np.integer) and -size <= place < size:
            index.append(int(place) % size)
        else:
            raise InvalidArgumentError(f"axis {axis} has places 0 to {size - 1}, got {place!r}")
    down, right = ([-1, -1, *axes])[-2:]
    rows, columns = ([1, 1, *extent])[-2:]
    return window(shape, axes=(down, right), index=index, extent=(rows, columns))


def elements_text(elements: Elements, name: str) -> list[str]:
    """The heat map as text: a description, and a line of shades per row, at most 24 by 80."""
    values = np.array([[float(cell) for cell in row] for row in elements.cells])
    steps = tuple(max(1, -(-size // most)) for size, most in zip(values.shape, _TEXT_CELLS, strict=True))
    cells = pooled(values, (steps[0], steps[1]), minus=np.zeros_like(values) if elements.difference else None)
    finite = cells[np.isfinite(cells)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    each = [own * more for own, more in zip(elements.steps, steps, strict=True)]
    lines = [
        f"{name}{_index_text(elements)}"
        + (f" of replica {elements.replica}" if elements.replica >= 0 else "")
        + (" minus replica 0" if elements.difference else ""),
        f"{_SHADES[0]} {figure(low)} to {_SHADES[-1]} {figure(high)}, {_BAD} NaN or infinite"
        + (f"; a character is {each[0]} × {each[1]} elements" if max(each) > 1 else ""),
    ]
    return lines + ["".join(_shade(value, low, high) for value in row) for row in cells.tolist()]


def _index_text(elements: Elements) -> str:
    parts = []
    for axis, (place, size) in enumerate(zip(elements.index, elements.shape, strict=True)):
        if axis not in elements.axes:
            parts.append(str(place))
            continue
        stop = place + elements.extent[elements.axes.index(axis)]
        parts.append(":" if (place, stop) == (0, size) else f"{place}:{stop}")
    return f"[{', '.join(parts)}]"


def _shade(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return _BAD
    share = 0.5 if high == low else (value - low) / (high - low)
    return _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))]


def _rounded(value: float) -> float | str:
    return float(f"{value:.3g}") if math.isfinite(value) else str(value)


def requested_window(shape: Sequence[int], request: dict[str, Any]) -> Window:
    """The window that a view requests, moved so that it fits.

    Raises:
      TypeError, ValueError, KeyError: if the request does not have the form in `view.ts`.
    """
    down, right = request["axes"]
    rows, columns = request["extent"]
    return window(
        shape,
        axes=(int(down), int(right)),
        index=[int(place) for place in request["index"]],
        extent=(None if rows is None else int(rows), None if columns is None else int(columns)),
    )
