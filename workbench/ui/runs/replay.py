"""`wb.open_run`: shows a recorded run in every view, without a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from workbench import arguments
from workbench.telemetry.events import Event
from workbench.telemetry.formatting import printable
from workbench.telemetry.runs import recorded_run
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.collectives.timings import Timings
from workbench.ui.render import html
from workbench.ui.runs.runs_model import LOOKED_AT, replay_of
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.sources import Given


class RecordedRun(Timings):
    """A recorded run. Prints as the table of its collectives; a notebook shows everything that was recorded.

    Attributes:
      path: The file.
      steps: The steps to show, or None for all, of which the table shows the newest.
    """

    def __init__(self, path: Path, *, internal: bool = False, steps: range | None = None) -> None:
        run = recorded_run.open_run(path)
        super().__init__(_Steps(run, steps), internal=internal, status="replay")
        self.path = path
        self.steps = steps
        self._run = run

    @property
    def events(self) -> tuple[Event, ...]:
        """Events besides the collectives in the whole run: output of replicas, alerts, losses; oldest first."""
        return self._run.events

    def model(self) -> dict[str, Any]:
        """Everything that its views draw, JSON-able; see `models.runs.Replay`."""
        return replay_of(self._run, self.steps)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        source = Given("replay", self.model, self._answer)
        return mimebundle(source, text=repr(self), html=self._repr_html_(), include=include)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        if request.get("kind") != "show_steps":
            return None
        return replay_of(self._run, range(int(request["first"]), int(request["last"]) + 1))

    def __repr__(self) -> str:
        return f"{self._title()}\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        return html.card(self._title(), word=self.status, parts=[super()._repr_html_()])

    def _title(self) -> str:
        span = self._run.span()
        facts = [f"run {self.path.stem}: {span.records:,} records in {span.seconds:.3g} s"]
        if self.steps is not None:
            facts.append(f"steps {self.steps.start} to {self.steps.stop - 1}")
        if kept := [view.replace("_", " ") for view in LOOKED_AT if view in self._run.looks.models]:
            facts.append(f"with {', '.join(kept)}")
        return printable(", ".join(facts))


class _Steps:
    """Some steps of a run, as a source of timings."""

    def __init__(self, run: recorded_run.Run, steps: range | None) -> None:
        self._run = run
        self._steps = steps

    def snapshot(self) -> Snapshot:
        return self._run.snapshot() if self._steps is None else self._run.snapshot_of(self._steps)

    def to_arrow(self) -> Any:
        import pyarrow.compute as pc

        records = self._run.to_arrow()
        if self._steps is None:
            return records
        step = records["step"]
        return records.filter(
            pc.and_(pc.greater_equal(step, self._steps.start), pc.less(step, self._steps.stop))
        )


def open_run(
    path: str | os.PathLike[str], *, internal: bool = False, steps: range | None = None
) -> RecordedRun:
    """Opens a run that `wb.record` wrote, without a cluster.

    Nothing in the file is executed.

    Args:
      path: The file.
      internal: See `collectives`.
      steps: The steps to show, such as `range(100, 200)`; by default all.

    Raises:
      NotFoundError: if there is no such file.
      DataCorruption: if the file is damaged or not a recorded run.
      InvalidArgumentError: if `steps` cannot be steps of a run.

    >>> def step():
    ...     return wb.distribute.get_replica_context().all_reduce("sum", np.ones(4))
    >>> with wb.record("one.parquet"):
    ...     result = strategy.run(step)
    >>> wb.open_run("one.parquet")
    run one: ...
    """
    file = arguments.path(path, "the file of a run")
    return RecordedRun(file, internal=arguments.flag(internal, "open_run: internal"), steps=steps)
