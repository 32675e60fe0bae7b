"""Recorded runs for the dashboard: one file, or those of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.errors import NotFoundError
from workbench.telemetry.runs import open_run
from workbench.ui.collectives_model import collectives_model
from workbench.ui.models import Collectives, RunEntry, Runs
from workbench.ui.runs_model import runs_model


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
        self._opened: dict[str, tuple[int, Collectives]] = {}
        if self.first:
            self.open(self.first)

    def open(self, path: str) -> Collectives:
        """What the views of one run draw.

        Raises:
          NotFoundError: if it is none of these runs.
          DataCorruption: if the file is damaged or no recorded run.
        """
        if not path or path not in {self.first, *(run.path for run in self._listed())}:
            raise NotFoundError(f"there is no recorded run {path[:200]!r} in {self.path}")
        written = Path(path).stat().st_mtime_ns if Path(path).exists() else 0
        known = self._opened.get(path)
        if known is None or known[0] != written:
            known = written, collectives_model(open_run(path).snapshot(), status="replay")
            self._opened = {path: known}  # the newest only: a run may be large
        return known[1]

    def runs(self, compare: tuple[str, str] | None = None) -> Runs:
        """The runs of the folder, and two of them compared.

        Raises:
          NotFoundError: if one of the compared runs is none of them.
          DataCorruption: if one of them is damaged.
        """
        if compare is not None:
            here = {run.path for run in self._listed()}
            for path in compare:
                if path not in here:
                    raise NotFoundError(f"there is no recorded run {path[:200]!r} in {self.path}")
        return runs_model(self.path, compare)

    def _listed(self) -> tuple[RunEntry, ...]:
        return () if self.first else runs_model(self.path).runs
