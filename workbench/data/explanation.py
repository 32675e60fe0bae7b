"""`InputExplanation`: what an input pipeline costs, as text of at most 88 columns and as script-free HTML."""

from __future__ import annotations

import html
import itertools
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from workbench.arguments import count
from workbench.data.cost.bottleneck import verdict
from workbench.data.cost.flow import (
    InputFlow,
    PipelineFlow,
    ReplicaWait,
    StageRange,
    ends_text,
    pipeline_flow,
)
from workbench.data.cost.groups import shown_pipelines
from workbench.data.cost.recent import RECENT_SECONDS
from workbench.data.meter import Meter
from workbench.data.passes import Pass
from workbench.data.tables import Failed, attempts
from workbench.errors import InvalidArgumentError
from workbench.telemetry.formatting import NOTHING, percent, printable, shorten, significant

if TYPE_CHECKING:
    from workbench.data.stage import Pipeline

_WIDTH: Final = 88
_NAME_WIDTH: Final = 30
_MOST_REPLICAS: Final = 32
_LONGEST: Final = 8
"""Above `_MOST_REPLICAS` replicas, only this many are listed: those that waited longest."""
_HEADINGS: Final = ("stage", "elements/s", "range", "now", "MB/s", "busy", "own/element", "queue", "workers")
DEFAULT_SECONDS: Final = 1.0
listeners: Final[list[Callable[[InputExplanation], object]]] = []
"""Each is called with each explanation and must return at once. They keep this layer independent of the views."""


class InputExplanation:
    """What the stages of an input pipeline cost, and which one limits it. Prints as a table.

    Attributes:
      flow: The numbers.
    """

    def __init__(
        self,
        flow: InputFlow,
        *,
        follow: Callable[[], InputFlow] | None = None,
        ended: Callable[[], bool] | None = None,
    ) -> None:
        """Keeps the numbers, and calls the `listeners`.

        Args:
          flow: The numbers now.
          follow: Returns newer numbers while replicas read; None if none do.
          ended: Whether the numbers are final.
        """
        self.flow = flow
        self._follow = follow
        self._ended = ended
        for listener in tuple(listeners):
            listener(self)

    def now(self) -> InputFlow:
        """The newest numbers if replicas are still reading, otherwise `flow`."""
        return self.flow if self._follow is None else self._follow()

    @property
    def ended(self) -> bool:
        """Whether the numbers are final."""
        return self._ended is None or self._ended()

    def __repr__(self) -> str:
        flow = self.flow
        lines = [_title(flow), *textwrap.wrap(printable(verdict_line(flow)), _WIDTH)]
        for pipeline in flow.pipelines:
            if _hosts(flow) > 1:
                lines += ["", printable(_caption(pipeline))]
            lines += _table(pipeline)
        lines += textwrap.wrap(_more(flow), _WIDTH)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        flow = self.flow
        parts = [
            f"<div><b>{html.escape(_title(flow))}</b></div>",
            f"<div>{_escaped(verdict_line(flow))}</div>",
        ]
        for pipeline in flow.pipelines:
            cells = _cells(pipeline)
            used = _used(cells)
            head = "".join(
                f'<th scope="col" style="text-align:right">{_HEADINGS[index]}</th>' for index in used[1:]
            )
            rows = "".join(
                _row([row[index] for index in used], marked=number == pipeline.bottleneck)
                for number, row in enumerate(cells)
            )
            caption = f"<caption>{_escaped(_caption(pipeline))}</caption>" if _hosts(flow) > 1 else ""
            parts.append(
                f'<table>{caption}<thead><tr><th scope="col" style="text-align:left">stage</th>{head}</tr></thead>'
                f"<tbody>{rows}</tbody></table>"
            )
        if more := _more(flow):
            parts.append(f"<div><small>{_escaped(more)}</small></div>")
        return f"<div>{''.join(parts)}</div>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def explain_dataset(
    dataset: Pipeline, current: Pass, *, elements: int | None, seconds: float
) -> InputExplanation:
    """See `Dataset.explain`; `current` is the pass to run."""
    if elements is not None:
        elements = count(elements, "explain: elements", otherwise=", or None for no bound")
    if not seconds > 0:
        raise InvalidArgumentError(f"explain: seconds is {seconds}; measure for a time above 0, such as 1.0")
    meter = Meter(dataset)
    limit = "one pass"
    taken = 0
    failure: Exception | None = None
    runs = dataset.open(current.measured_by(meter))
    began = time.monotonic()
    for item in attempts(runs, False):
        if isinstance(item, Failed):
            failure = failure or item.error
        else:
            taken += 1
        if taken == elements:
            limit = f"the first {_count(taken, 'element')} of a pass"
            break
        if time.monotonic() - began >= seconds:
            limit = f"the first {seconds:g} s of a pass"
            break
    (profile,) = meter.pipelines()
    if failure is not None and not taken:
        raise failure
    return InputExplanation(
        input_flow([pipeline_flow(profile)], elapsed_seconds=profile.elapsed_seconds, limit=limit)
    )


def input_flow(
    pipelines: Sequence[PipelineFlow],
    replicas: Sequence[ReplicaWait] = (),
    *,
    status: str = "measured",
    elapsed_seconds: float,
    limit: str = "",
) -> InputFlow:
    """The model of all pipelines, with what limits them.

    Args:
      pipelines: One per host.
      replicas: How long each waited; empty without replicas.
      status: See `InputFlow.status`.
      elapsed_seconds: How long the measurement took.
      limit: Why it ended.
    """
    sentence, advice = verdict(pipelines, replicas)
    shown, hidden = shown_pipelines(pipelines, replicas)
    most = _MOST_REPLICAS if len(replicas) <= _MOST_REPLICAS else _LONGEST
    longest = sorted(replicas, key=lambda each: -each.waited_share)[:most]
    return InputFlow(
        status=status,
        sentence=sentence,
        advice=advice,
        elapsed_seconds=elapsed_seconds,
        limit=limit,
        pipelines=shown,
        hidden_pipelines=hidden,
        replicas=tuple(sorted(longest, key=lambda each: each.replica)),
        hidden_replicas=len(replicas) - len(longest),
        replica_percent=tuple(round(100 * each.waited_share, 1) for each in replicas),
    )


def verdict_line(flow: InputFlow) -> str:
    """One sentence on what limits the input and what would help."""
    return f"{flow.sentence.rstrip('.')}: {flow.advice}." if flow.advice else flow.sentence


def _title(flow: InputFlow) -> str:
    where = "" if _hosts(flow) <= 1 else f" of {_hosts(flow):,} hosts"
    measured = f"{flow.elapsed_seconds:.3g} s"
    return f"Input{where}: {flow.status}, {measured}" + (f", {flow.limit}" if flow.limit else "")


def _hosts(flow: InputFlow) -> int:
    return sum(max(1, len(pipeline.hosts)) for pipeline in flow.pipelines) + flow.hidden_pipelines


def _caption(pipeline: PipelineFlow) -> str:
    """The pipeline's host, what is special about it, and, for many hosts, that the figures are medians."""
    parts = [pipeline.name, pipeline.why, _count(pipeline.processes, "process", "es")]
    if pipeline.hosts:
        parts.append("medians")
    return ", ".join(filter(None, parts))


def _more(flow: InputFlow) -> str:
    parts = []
    if flow.hidden_pipelines:
        parts.append(f"{_count(flow.hidden_pipelines, 'more host')} with other plans: not shown.")
    if flow.replicas:
        shares = ", ".join(
            f"{each.replica}: {percent(each.waited_share)}{' (starving)' if each.starving else ''}"
            for each in flow.replicas
        )
        hidden = f", and {flow.hidden_replicas} more that waited less" if flow.hidden_replicas else ""
        parts.append(f"Waited for input, by replica: {shares}{hidden}.")
        parts.append("wb.explain_sharding tells who reads what.")
    if any(pipeline.recent_per_second is not None for pipeline in flow.pipelines):
        parts.append(f"now: elements/s in the last {RECENT_SECONDS:g} s.")
    parts += [
        printable(f"{stage.name}: {stage.note}.")
        for pipeline in flow.pipelines[:1]
        for stage in pipeline.stages
        if stage.note
    ]
    return " ".join(parts)


def _table(pipeline: PipelineFlow) -> list[str]:
    cells = _cells(pipeline)
    rows = [list(_HEADINGS), *cells]
    used = _used(cells)
    widths = {index: max(len(row[index]) for row in rows) for index in used}
    for expendable in (_HEADINGS.index("MB/s"), _HEADINGS.index("own/element")):
        if 2 * len(used) + sum(widths[index] for index in used) > _WIDTH and expendable in used:
            used.remove(expendable)
    lines = []
    for number, row in enumerate(rows):
        mark = ">" if number and number - 1 == pipeline.bottleneck else " "
        line = [row[0].ljust(widths[0]), *(row[index].rjust(widths[index]) for index in used[1:])]
        lines.append(shorten(f"{mark} {'  '.join(line)}".rstrip(), _WIDTH))
    return lines


def _used(cells: list[list[str]]) -> list[int]:
    """The columns that have content in any row."""
    return [
        index for index in range(len(_HEADINGS)) if index < 2 or any(row[index] != NOTHING for row in cells)
    ]


def _cells(pipeline: PipelineFlow) -> list[list[str]]:
    ranges: Iterable[StageRange | None] = pipeline.ranges or itertools.repeat(None)
    return [
        [
            shorten(printable("  " * stage.depth + stage.name), _NAME_WIDTH),
            _rate(stage.elements_per_second),
            _rates(spread),
            NOTHING if stage.recent_per_second is None else _rate(stage.recent_per_second),
            NOTHING if stage.bytes_per_second is None else significant(stage.bytes_per_second / 1e6),
            percent(stage.busy_share),
            NOTHING if stage.own_us is None else own_text(stage.own_us),
            stage.queue_text or NOTHING,
            stage.workers_text or NOTHING,
        ]
        for stage, spread in zip(pipeline.stages, ranges, strict=False)
    ]


def _rates(spread: StageRange | None) -> str:
    ends = "" if spread is None else ends_text(spread.elements_per_second, _rate)
    return ends if " to " in ends else NOTHING


def own_text(own_us: float) -> str:
    """Own time per element, in µs so that rows can be compared."""
    if own_us < 0.01:
        return "<0.01 µs"
    return f"{own_us:,.0f} µs" if own_us >= 100 else f"{significant(own_us)} µs"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else significant(per_second)


def _count(number: int, one: str, plural: str = "s") -> str:
    return f"{number:,} {one}{'' if number == 1 else plural}"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _row(cells: list[str], *, marked: bool) -> str:
    """A row of the table. The stage that delays the others also stands out without colours."""
    inside = "".join(
        _cell((f"{'▶' if marked else ' '} {text}" if column == 0 else text), column)
        for column, text in enumerate(cells)
    )
    style = (
        ' style="font-weight:bold;border-left:3px solid currentColor" title="bottleneck"' if marked else ""
    )
    return f"<tr{style}>{inside}</tr>"


def _cell(text: str, column: int) -> str:
    side = "right" if column else "left"
    return f'<td style="text-align:{side};white-space:pre">{html.escape(text)}</td>'
