"""`wb.overview`: the run at a glance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from workbench.distribute.strategies.strategy import Strategy
from workbench.runtime import Cluster
from workbench.telemetry.formatting import NOTHING, percent, printable, significant
from workbench.telemetry.snapshot import Snapshot
from workbench.telemetry.verdicts.words import count_text
from workbench.ui.cluster.asked_cluster import cluster_of
from workbench.ui.cluster.cluster_model import tell_memory
from workbench.ui.models.collectives import Overview
from workbench.ui.models.overview_model import overview_model
from workbench.ui.render import html
from workbench.ui.render.verdict_lines import verdict_lines
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.collectives import CollectivesSource


@runtime_checkable
class Recorded(Protocol):
    """What an overview needs from a recorded run.

    Attributes:
      path: Its file.
      snapshot: What its views draw.
      status: "replay".
    """

    path: Path
    snapshot: Snapshot
    status: str


class OverviewView:
    """A run at a glance: prints as a sentence and four figures, and updates itself in a notebook."""

    def __init__(self, snapshot: Callable[[], Snapshot], status: Callable[[], str]) -> None:
        """Creates the view.

        Args:
          snapshot: Returns the newest state of the records.
          status: Returns the status of the run, in one word.
        """
        self._snapshot = snapshot
        self._status = status
        self._source = CollectivesSource("overview", snapshot, status)

    def to_dict(self) -> dict[str, Any]:
        """The sentence and the figures now, as JSON-able values."""
        shown: dict[str, Any] = self._source.model()["overview"]
        return shown

    def __repr__(self) -> str:
        model = self._model()
        verdict = model.verdict
        facts = ", ".join(["Overview", *_facts(model), self._status()])
        said = verdict_lines(verdict.severity, verdict.sentence, verdict.evidence)
        figures = [f"  {name:<17} {value}" for name, value in self._figures(model)] if model.group else []
        return "\n".join([printable(facts), *said, *map(printable, figures)])

    def _repr_html_(self) -> str:
        model = self._model()
        verdict = model.verdict
        rows = [list(figure) for figure in self._figures(model)]
        parts = [
            html.verdict(verdict.severity, verdict.sentence, verdict.evidence),
            *([html.table(["figure", "now"], rows, left=1)] if model.group else []),
        ]
        return html.card("Overview", _facts(model), word=self._status(), parts=parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return mimebundle(self._source, text=repr(self), html=self._repr_html_(), include=include)

    def _figures(self, model: Overview) -> list[tuple[str, str]]:
        """The four figures, plus the progress in the data, and the loss if steps return one."""
        groups = self._snapshot().groups
        course = groups[0].told.result if groups else None
        figures = _figures(model)
        if groups and groups[0].told.epoch is not None:
            figures.append(("data", groups[0].told.epoch.text()))
        if course is not None:
            mean = course.mean[-1]
            figures.append((course.name or course.function, NOTHING if mean is None else significant(mean)))
        return figures

    def _model(self) -> Overview:
        return overview_model(self._snapshot(), status=self._status())


def overview(of: Strategy | Cluster | Recorded | None = None) -> OverviewView:
    """Shows the run at a glance: what is wrong, if anything is; how fast it is; which replica waits for which.

    In a notebook it stays up to date, and shows each replica's work and lateness step by step. It begins with the most
    important finding; "makes everyone wait" names a replica only if chance does not explain its lateness.

    Args:
      of: A cluster, or a strategy: its cluster; or a recorded run from `wb.open_run`; by default the current cluster.

    Raises:
      FailedPreconditionError: if there is no cluster yet.
      TypeError: if `of` is something else.

    >>> shown = wb.overview(strategy)  # a live view, as the last line of a cell
    """
    if not isinstance(of, Strategy | Cluster) and isinstance(of, Recorded):
        snapshot, status = of.snapshot, of.status
        return OverviewView(lambda: snapshot, lambda: status)
    cluster = cluster_of(of, "wb.overview({})", takes="a strategy, a cluster or a recorded run")
    if not cluster.closed:
        cluster.flush_telemetry()
        tell_memory(cluster)
    return OverviewView(cluster.feed.snapshot, lambda: cluster.status)


def _facts(model: Overview) -> list[str]:
    if not model.group:
        return []
    replicas = f"{model.replicas} replica{'s' if model.replicas != 1 else ''}"
    hosts = f"{model.hosts} host{'s' if model.hosts != 1 else ''}"
    return [
        model.group,
        f"{replicas} on {hosts}" if model.hosts else replicas,
        *([f"step {model.step}"] if model.step >= 0 else []),
    ]


def _figures(model: Overview) -> list[tuple[str, str]]:
    return [
        ("steps per second", significant(model.steps_per_second)),
        ("replicas live", f"{model.live} of {model.replicas}"),
        (
            "time waited",
            NOTHING
            if model.waited_percent is None
            else f"{percent(model.waited_percent / 100)} of a step, by replicas that were not last",
        ),
        ("not finite", count_text(model.not_finite_steps, "step")),
    ]
