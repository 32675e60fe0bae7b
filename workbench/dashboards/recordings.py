"""Recorded runs for the dashboard: one file, or those of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.telemetry.runs import Run, open_run
from workbench.ui.plain import plain
from workbench.ui.runs_model import replay_of, runs_model
from workbench.ui.widgets.sources import Given, Message

_MAX_OPEN: Final = 4


class Recordings:
    """What there is to open; nothing else is.

    Attributes:
      path: The file or the folder.
      first: Path of the run to open first; "" for a folder, in which a person picks one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Looks at the file or folder.

        Raises:
          NotFoundError: if it is not there.
          DataCorruption: if the file is damaged or no recorded run.
        """
        self.path = Path(path)
        self.first = "" if self.path.is_dir() else str(self.path)
        self._open: dict[tuple[str, int, int], Run] = {}
        if self.first:
            self.open(self.first).model()

    def open(self, path: str) -> Given:
        """One run, with all that its views draw.

        Raises:
          NotFoundError: if it is none of these runs.
        """
        run = self._run(path)
        return Given("replay", lambda: replay_of(run), lambda request: _steps_of(run, request))

    def runs(self, compare: tuple[str, str] | None = None) -> dict[str, Any]:
        """The runs of the folder, and two of them compared; see `models.Runs`.

        Raises:
          NotFoundError: if one of the compared runs is none of them.
          DataCorruption: if one of them is damaged.
        """
        for path in compare or ():
            self._check(path)
        return plain(runs_model(self.path, compare))

    def _run(self, path: str) -> Run:
        """Its file is read once for all pages, as long as it stays as it is."""
        self._check(path)
        about = os.stat(path)
        key = path, about.st_mtime_ns, about.st_size
        run = self._open.pop(key, None)
        if run is None:
            run = open_run(path)
        self._open[key] = run  # what was asked for last is the last
        while len(self._open) > _MAX_OPEN:
            del self._open[next(iter(self._open))]
        return run

    def _check(self, path: str) -> None:
        there = {self.first} if self.first else set(map(str, self.path.glob("*.parquet")))
        if path not in there or not os.path.exists(path):
            among = "" if self.first else f" in {self.path}"
            raise NotFoundError(f"there is no recorded run {path[:200]!r}{among}")


def _steps_of(run: Run, request: Message) -> Message | None:
    match request:
        case {"kind": "show_steps", "first": int(first), "last": int(last)}:
            if not 0 <= first <= last:
                raise InvalidArgumentError(f"these are no steps of a run: {first} to {last}")
            return replay_of(run, range(first, last + 1))
    return None
