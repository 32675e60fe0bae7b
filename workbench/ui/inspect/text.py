"""The output of `wb.inspect`: a text table per value, and the same as HTML."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from workbench.backends.summary import Summary
from workbench.runtime.placement_text import counted
from workbench.telemetry.formatting import NOTHING, dtype_text, percent, printable, shorten
from workbench.ui.render import html
from workbench.ui.render.text_table import MAX_ROWS, WIDTH, aligned, figure

if TYPE_CHECKING:
    from workbench.ui.models.inspected import Agreement, InspectedValue, ReplicaSpread, ReplicaSummary

_NAMES: Final = ("replica", "host:device", "array")
_FIGURES: Final = ("mean", "std", "min", "max", "L2", "zeros", "nan", "inf")
_OVER: Final = ("over replicas",)
_HISTOGRAM: Final = "histogram"
_AGE: Final = "age"
_STEP: Final = "step"
_EXPENDABLE: Final = ("L2", "zeros", _HISTOGRAM, _STEP, "min", "max", "array")
_COLUMNS: Final = "▁▂▃▄▅▆▇█"


def inspection_text(values: Sequence[InspectedValue]) -> str:
    """A heading and a table for each value."""
    return "\n".join("\n".join(_value_lines(value)) for value in values) or "nothing to inspect"


def inspection_html(values: Sequence[InspectedValue]) -> str:
    """The same as cards."""
    return "".join(_value_card(value) for value in values) or html.card("nothing to inspect")


def _value_lines(value: InspectedValue) -> list[str]:
    heading = _heading(value)
    if value.agreement is not None:
        heading += f": {_agreement_text(value.agreement)}"
    elif len(value.replicas) > 1:
        heading += "  # not synchronised"
    if all(isinstance(replica.summary, str) for replica in value.replicas):
        return [shorten(heading, WIDTH)]
    headings, rows, note = _table(value)
    lines = aligned(*_quantile_table(value.spread), left=_OVER, width=WIDTH - 2) if value.spread else []
    if rows:
        left = [*_NAMES, _HISTOGRAM, ""]
        lines += aligned([*headings, ""], rows, left=left, expendable=_EXPENDABLE, width=WIDTH - 2)
    hints = [
        line
        for hint in value.hints
        for line in textwrap.wrap(printable(hint), WIDTH, initial_indent="  ", subsequent_indent="  ")
    ]
    return [*_folded(heading), *(f"  {line}" for line in lines), *([f"  {note}"] if note else []), *hints]


def _folded(heading: str) -> list[str]:
    """The heading in one line, or in two if the replicas' agreement would not fit."""
    if len(heading) <= WIDTH:
        return [heading]
    what, _, agreement = heading.rpartition(": ")
    return [shorten(what or heading, WIDTH), *([f"  {agreement}"] if what else [])]


def _value_card(value: InspectedValue) -> str:
    headings, rows, note = _table(value)
    names = sum(heading in _NAMES for heading in headings)
    parts = [html.table(*_quantile_table(value.spread), left=1)] if value.spread else []
    if rows or note:
        parts.append(html.table([*headings, ""] if rows else [], rows, left=names, caption=note))
    parts += map(html.alert, value.hints)
    word, facts = "", []
    if value.agreement is not None:
        word, _, rest = _agreement_text(value.agreement).partition(" (" if value.agreement.in_sync else ", ")
        facts = [rest.rstrip(")").replace("), ", ", ")]
    elif len(value.replicas) > 1:
        facts = ["not synchronised"]
    return html.card(_heading(value), facts, word=word, parts=parts)


def _heading(value: InspectedValue) -> str:
    parts = [value.kind]
    if value.name:
        parts.append(value.name if "[" in value.name else repr(value.name))
    kinds = {_array_text(replica.summary) for replica in value.replicas}
    if len(kinds) == 1:
        first = value.replicas[0].summary
        shape = "" if isinstance(first, str) else f" ({','.join(map(str, first.shape))})"
        plain = "(no numbers)" if first == value.kind else first
        parts.append((plain if isinstance(plain, str) else plain.dtype) + shape)
    if (
        value.agreement is None
        and value.replicas[0].replica >= 0
        and (len(value.replicas) > 1 or value.kind != "VariableComponent")
    ):
        parts.append(f"over {counted(len(value.replicas), 'replica')}")
    return printable(" ".join(parts))


def _agreement_text(agreement: Agreement) -> str:
    """The agreement in words.

    Returns:
      For example "in sync (sha 9f3c…), max|Δ|=0" or "diverged at step 5, max|Δ|=0.25, first replica 2".
    """
    if agreement.in_sync:
        return f"in sync (sha {agreement.sha256[:4]}…), max|Δ|=0"
    gap = agreement.max_abs_difference
    size = "shapes differ" if math.isnan(gap) else f"max|Δ|={figure(gap)}"
    when = f" {printable(agreement.since)}" if agreement.since else ""
    return f"diverged{when}, {size}, first replica {agreement.first_replica}"


def _table(value: InspectedValue) -> tuple[list[str], list[list[str]], str]:
    """Headings, rows, and a note on omitted rows; all cells are text."""
    replicas = list(value.replicas)
    same = value.agreement is not None and value.agreement.in_sync and len(replicas) > 1
    mixed = len({_array_text(replica.summary) for replica in replicas}) > 1
    shown = replicas[:1] if same else _most_telling(value)
    stepped = any(replica.step >= 0 for replica in shown)
    aged = any(replica.age_seconds is not None for replica in replicas)
    spread = any(isinstance(found := replica.summary, Summary) and found.histogram for replica in shown)
    rows = []
    for replica in shown:
        name = f"all {len(replicas)}" if same else "–" if replica.replica < 0 else str(replica.replica)
        place = [] if same else [f"{replica.host}:{replica.device}" if replica.host else "notebook"]
        array = [_array_text(replica.summary)] if mixed else []
        age = [age_text(replica.age_seconds)] if aged else []
        step = [str(replica.step) if replica.step >= 0 else NOTHING] if stepped else []
        histogram = [_histogram(replica.summary)] if spread else []
        rows.append(
            [name, *place, *array, *_figures(replica.summary), *histogram, *age, *step, _mark(replica)]
        )
    headings = [
        "replica",
        *([] if same else ["host:device"]),
        *(["array"] if mixed else []),
        *_FIGURES,
        *([_HISTOGRAM] if spread else []),
        *([_AGE] if aged else []),
        *([_STEP] if stepped else []),
    ]
    return headings, rows, "" if same else _rest_text(value, len(shown))


def _rest_text(value: InspectedValue, shown: int) -> str:
    """A line about the replicas that are not shown."""
    hidden = len(value.replicas) - shown
    if not hidden:
        return ""
    spread = value.spread
    if spread is None:
        return f"… {hidden} more replicas"
    if not spread.outlying:
        return f"no replica is far from the others; all {len(value.replicas)} are finite"
    return spread.rest


def _most_telling(value: InspectedValue) -> list[ReplicaSummary]:
    """The replicas that get a row: all or, of more than 32, those that are not finite or far from the others."""
    replicas = list(value.replicas)
    if value.spread is not None:
        return [replica for replica in replicas if replica.replica in value.spread.outliers]
    return replicas[:MAX_ROWS]


def _quantile_table(spread: ReplicaSpread) -> tuple[list[str], list[list[str]]]:
    rows = [
        [part.figure, *map(figure, (part.low, part.p10, part.median, part.p90, part.high))]
        for part in spread.quantiles
    ]
    return [*_OVER, "min", percent(0.1), "median", percent(0.9), "max"], rows


def _figures(summary: Summary | str) -> list[str]:
    if isinstance(summary, str):
        return [NOTHING] * len(_FIGURES)
    moments = [
        NOTHING if math.isnan(x) else figure(x) for x in (summary.mean, summary.std, summary.min, summary.max)
    ]
    if summary.nan and moments[0] == NOTHING:
        moments[0] = "nan"
    return [*moments, figure(summary.l2), *(f"{n:,}" for n in (summary.zeros, summary.nan, summary.inf))]


def _histogram(summary: Summary | str) -> str:
    return "" if isinstance(summary, str) else columns_text(summary.histogram)


def columns_text(counts: Sequence[int]) -> str:
    """A histogram as 8 columns of text, from the smallest element on the left; nothing for an empty one.

    >>> columns_text((1, 0, 0, 4, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    '▂██    ▂'
    >>> columns_text(())
    ''
    """
    each = len(counts) // len(_COLUMNS)
    sums = [sum(counts[at : at + each]) for at in range(0, len(counts), max(1, each))]
    most = max(sums, default=0)
    return "".join(_COLUMNS[-(-n * len(_COLUMNS) // most) - 1] if n else " " for n in sums)


def _mark(replica: ReplicaSummary) -> str:
    summary = replica.summary
    if isinstance(summary, str) or not (summary.nan or summary.inf):
        return ""
    return f"<-- {replica.note or ('NaN' if summary.nan else 'Inf')}"


def age_text(seconds: float | None) -> str:
    """An age, to two digits.

    >>> [age_text(s) for s in (None, 0.04, 9.96, 75, 7300, 90000, 864000)]
    ['–', '0.0s', '10s', '75s', '2.0h', '25h', '10d']
    """
    if seconds is None:
        return NOTHING
    for unit, size, most in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800), ("d", 86_400, math.inf)):
        if seconds < most:
            value = seconds / size
            return f"{value:.1f}{unit}" if round(value, 1) < 10 else f"{value:.0f}{unit}"
    raise AssertionError


def _array_text(summary: Summary | str) -> str:
    if isinstance(summary, str):
        return summary
    return f"{dtype_text(summary.dtype)}[{','.join(map(str, summary.shape))}]"
