"""Tables as text, at most 88 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from workbench.telemetry.formatting import printable, shorten, significant

WIDTH: Final = 88
MAX_ROWS: Final = 32
"""Tables of more replicas, devices or workers have no row for each."""
_LEAST_WRAPPED: Final = 24
_MOST_LINES: Final = 8
_Item = TypeVar("_Item")


def odd_first(items: Sequence[_Item], is_odd: Callable[[_Item], object]) -> list[_Item]:
    """The items in their order; if a table has no room for all, those first that stand out."""
    return sorted(items, key=lambda item: len(items) > MAX_ROWS and not is_odd(item))


def aligned(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    expendable: Sequence[str] = (),
    wrapped: str = "",
    width: int = WIDTH,
) -> list[str]:
    """Lines of a table: a heading and one line per row, two spaces between columns.

    Args:
      headings: One per column.
      rows: Cells, as many in each row.
      left: Columns that are aligned to the left; the others are figures.
      expendable: Columns to drop, in this order, until the table is no wider than `width`.
      wrapped: The last column, if its long cells may continue on up to seven more lines.
      width: In characters.
    """
    columns = {
        title: [printable(cell) for cell in (title, *(row[index] for row in rows))]
        for index, title in enumerate(headings)
    }
    widths = {title: max(map(len, cells)) for title, cells in columns.items()}
    for title in expendable:
        if sum(widths[name] + 2 for name in columns) - 2 <= width:
            break
        columns.pop(title, None)
    begin = sum(widths[title] + 2 for title in columns if title != wrapped)
    lines = []
    for cells in zip(*columns.values(), strict=True):
        parts = [
            cell.ljust(widths[title]) if title in left else cell.rjust(widths[title])
            for title, cell in zip(columns, cells, strict=True)
        ]
        more: list[str] = []
        if wrapped in columns:
            parts[-1], *more = _wrapped(cells[-1], max(_LEAST_WRAPPED, width - begin), _MOST_LINES)
        lines += [
            shorten(line, width)
            for line in ("  ".join(parts).rstrip(), *(" " * begin + each for each in more))
        ]
    return lines


def figure(value: float) -> str:
    """A value of an array with 3 significant digits, with an exponent if it is very small or large.

    >>> [figure(x) for x in (0.0, 0.41234, -12.0, 3.2e-9, 1.5e12, float("nan"), 7)]
    ['0', '0.412', '-12.0', '3.20e-09', '1.50e+12', 'nan', '7.00']
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return significant(value)
    return f"{value:.2e}" if value == value else "nan"


def _wrapped(text: str, width: int, most: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, max_lines=most, placeholder=" …") or [""]  # it was blank
