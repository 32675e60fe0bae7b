"""Recorded runs for the dashboard: one file, or those of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.ui.plain import plain
from workbench.ui.runs_model import replay_model, runs_model
from workbench.ui.widgets.sources import Given, Message


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
        if self.first:
            self.open(self.first).model()

    def open(self, path: str) -> Given:
        """One run, with all that its views draw.

        Raises:
          NotFoundError: if it is none of these runs.
        """
        if not path or path not in {self.first, *self._listed()}:
            raise NotFoundError(f"there is no recorded run {path[:200]!r} in {self.path}")
        return Given("replay", lambda: replay_model(path), lambda request: _steps_of(path, request))

    def runs(self, compare: tuple[str, str] | None = None) -> dict[str, Any]:
        """The runs of the folder, and two of them compared; see `models.Runs`.

        Raises:
          NotFoundError: if one of the compared runs is none of them.
          DataCorruption: if one of them is damaged.
        """
        for path in compare or ():
            if path not in self._listed():
                raise NotFoundError(f"there is no recorded run {path[:200]!r} in {self.path}")
        return plain(runs_model(self.path, compare))

    def _listed(self) -> frozenset[str]:
        return frozenset() if self.first else frozenset(run.path for run in runs_model(self.path).runs)


def _steps_of(path: str, request: Message) -> Message | None:
    match request:
        case {"kind": "show_steps", "first": int(first), "last": int(last)}:
            if not 0 <= first <= last:
                raise InvalidArgumentError(f"these are no steps of a run: {first} to {last}")
            return replay_model(path, range(first, last + 1))
    return None
