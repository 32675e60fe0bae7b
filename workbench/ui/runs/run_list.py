"""`wb.runs`: lists the recorded runs of a folder, and compares two of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from workbench import arguments
from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.telemetry.formatting import (
    NOTHING,
    dtype_text,
    printable,
    shorten,
    significant,
    size_text,
    time_unit,
)
from workbench.ui.models.runs import ComparedRow, RunEntry, Runs, Spread
from workbench.ui.render import html
from workbench.ui.render.text_table import WIDTH, aligned
from workbench.ui.runs.replay import RecordedRun, open_run
from workbench.ui.runs.runs_model import names_of, runs_model
from workbench.ui.widgets.bundle import Bundle, mimebundle
from workbench.ui.widgets.sources import Fixed

_RUNS: Final = ("run", "written", "duration", "replicas", "records", "alerts", "file")
_COMPARED: Final = ("op", "red", "type", "size", "n", "p50", "p50'", "spread", "spread'", "ratio", "verdict")
_SIGNS: Final = {"slower": "▲ slower", "faster": "▼ faster"}
_MAX_ROWS: Final = 32


class RunList:
    """The recorded runs of a folder, newest first. Prints as a table.

    Attributes:
      folder: The folder of the runs.
      entries: What is known about each.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.entries = runs_model(self.folder).runs

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[RunEntry]:
        return iter(self.entries)

    def __getitem__(self, run: str | int) -> RecordedRun:
        """A run by its name, or by its position in the list: 0 is the newest.

        Raises:
          NotFoundError: if there is none with that name.
          IndexError: if there is none at that position.
          DataCorruption: if it is damaged.
        """
        return open_run(self._path(run))

    def compare(self, first: str | int, second: str | int) -> Comparison:
        """Two runs side by side: what got slower, by how much, and whether this exceeds chance.

        Args:
          first: A run by its name or position, as for `[]`.
          second: The run to compare with it.

        Raises:
          NotFoundError, IndexError, DataCorruption: as `[]`.
        """
        return Comparison(self._path(first), self._path(second))

    def to_dict(self) -> dict[str, Any]:
        """The list as JSON-able values."""
        return self._source().model()

    def _path(self, run: str | int) -> str:
        if isinstance(run, int):
            return self.entries[run].path
        for entry in self.entries:
            if run in (entry.name, entry.path, Path(entry.path).name):
                return entry.path
        known = ", ".join(entry.name for entry in self.entries[:8]) or "none"
        raise NotFoundError(f"there is no recorded run {run!r} in {self.folder}; there are: {known}")

    def _source(self) -> Fixed:
        return Fixed("runs", Runs(str(self.folder), self.entries, (), ()), self._answer)

    def _answer(self, request: dict[str, Any]) -> Runs | None:
        """Compares two of these runs, and no others, when a user requests it in the view."""
        if request.get("kind") == "open_run":
            path = self._path(str(request["path"]))
            raise InvalidArgumentError(f"wb.open_run({path!r}) in a cell shows this run")
        if request.get("kind") != "compare_runs":
            return None
        return self.compare(str(request["first"]), str(request["second"])).model

    def __repr__(self) -> str:
        if not self.entries:
            return _none(self.folder)
        lines = aligned(_RUNS, self._cells(), left=("run", "written"), expendable=("file",))
        return "\n".join([self._title(), *lines, *filter(None, [self._hidden()])])

    def _repr_html_(self) -> str:
        parts = [html.table(_RUNS, self._cells(), left=2, caption=self._hidden())] if self.entries else []
        return html.card("Recorded runs", [str(self.folder)], word="replay", parts=parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return mimebundle(self._source(), text=repr(self), html=self._repr_html_(), include=include)

    def _hidden(self) -> str:
        hidden = len(self.entries) - _MAX_ROWS
        return f"… {hidden} older ones not shown" if hidden > 0 else ""

    def _title(self) -> str:
        return shorten(printable(f"{len(self)} recorded runs in {self.folder}"), WIDTH)

    def _cells(self) -> list[list[str]]:
        return [
            [
                shorten(run.name, 32),
                run.written.replace("T", " ")[:19],
                *(
                    [shorten(f"✖ {run.problem}", 40), "", "", ""]
                    if run.problem
                    else [
                        f"{run.duration_seconds:.3g} s",
                        str(run.replicas),
                        f"{run.records:,}",
                        f"▲ {run.alerts}" if run.alerts else "0",
                    ]
                ),
                size_text(run.size_bytes >> 10 << 10 if run.size_bytes >= 1024 else run.size_bytes),
            ]
            for run in self.entries[:_MAX_ROWS]
        ]


class Comparison:
    """Two recorded runs side by side. Prints as a table, with what got slower first.

    Attributes:
      model: The runs, and the comparison.
    """

    def __init__(self, first: str | os.PathLike[str], second: str | os.PathLike[str]) -> None:
        self.model = runs_model(Path(first).parent, (str(first), str(second)))

    @property
    def rows(self) -> tuple[ComparedRow, ...]:
        """One per operation, type, size and number of replicas."""
        return self.model.rows

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-able values."""
        return Fixed("runs", self.model).model()

    def __repr__(self) -> str:
        cells = [_cells(row) for row in self.rows[:_MAX_ROWS]]
        hidden = len(self.rows) - len(cells)
        lines = aligned(
            _COMPARED, cells, left=("op", "red", "type", "verdict"), expendable=("n", "type", "red")
        )
        more = [f"… {hidden} more"] if hidden else []
        return "\n".join([*self._title(), *(lines if cells else ["no collectives in either"]), *more])

    def _repr_html_(self) -> str:
        first, second = self.model.compared
        named = {"p50": f"p50 {first}", "p50'": f"p50 {second}"}
        named |= {"spread": f"spread {first}", "spread'": f"spread {second}"}
        headings = [named.get(heading, heading) for heading in _COMPARED]
        parts = [html.table(headings, [_cells(row) for row in self.rows], left=3)] if self.rows else []
        return html.card(f"{first} and {second}", self._title()[1:], word="replay", parts=parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        source = Fixed("runs", self.model)
        return mimebundle(source, text=repr(self), html=self._repr_html_(), include=include)

    def _title(self) -> list[str]:
        first, second = self.model.compared
        found = [
            f"{word}: {names}" for word in ("slower", "faster") if (names := names_of(self.rows, word))
        ] or ["no difference that can be told from chance"]
        return [
            shorten(printable(f"{second} (') compared with {first}"), WIDTH),
            shorten(printable("; ".join(found)), WIDTH),
        ]


def _cells(row: ComparedRow) -> list[str]:
    return [
        row.op,
        row.redop or NOTHING,
        dtype_text(row.dtype),
        size_text(row.size_bytes),
        str(row.n),
        _time(row.first),
        _time(row.second),
        _quartiles(row.first),
        _quartiles(row.second),
        NOTHING if row.ratio is None else f"{significant(row.ratio)}×",
        _SIGNS.get(row.verdict, row.verdict),
    ]


def _time(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    unit, per_us = time_unit([spread.p50_us])
    return f"{significant(spread.p50_us / per_us)} {unit}"


def _quartiles(spread: Spread | None) -> str:
    """The middle half, in the unit of the median."""
    if spread is None:
        return NOTHING
    _, per_us = time_unit([spread.p50_us])
    return f"{significant(spread.p25_us / per_us)}–{significant(spread.p75_us / per_us)}"


def _none(folder: Path) -> str:
    return printable(
        f"no recorded runs in {folder}: with wb.record({str(folder / 'first.parquet')!r}): … makes one"
    )


def runs(folder: str | os.PathLike[str] = "runs") -> RunList:
    """Lists the runs that `wb.record` wrote to a folder, newest first.

    Args:
      folder: The folder; its subfolders do not count.

    Raises:
      InvalidArgumentError: if it is a file.

    >>> def step():
    ...     return wb.distribute.get_replica_context().all_reduce("sum", np.ones(4))
    >>> for name in ("first", "second"):
    ...     with wb.record(f"runs/{name}.parquet"):
    ...         result = strategy.run(step)
    >>> comparison = wb.runs("runs").compare("first", "second")
    """
    if arguments.path(folder, "the folder of runs").is_file():
        raise InvalidArgumentError(f"{folder} is a file; wb.open_run({str(folder)!r}) opens it")
    return RunList(folder)
