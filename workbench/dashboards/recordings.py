"""Recorded runs for the dashboard: one file, or those of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.errors import InvalidArgumentError
from workbench.ui.runs.recorded_runs import Folder, OneFile, RecordedRuns
from workbench.ui.widgets.sources import Given, Message


class Recordings:
    """The runs that can be opened, and nothing else.

    Attributes:
      path: The file or the folder.
      runs: The runs.
      first: Path of the run to open first; "" for a folder, in which the user picks one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Checks the file or folder.

        Raises:
          NotFoundError: if it does not exist.
          DataCorruption: if the file is damaged or not a recorded run.
        """
        self.path = Path(path)
        is_folder = self.path.is_dir()
        self.first = "" if is_folder else str(self.path)
        self.runs = RecordedRuns(Folder(self.path) if is_folder else OneFile(self.path))
        if self.first:
            self.runs.replay(self.first)

    def source(self, path: str) -> Given:
        """One run, with everything that its views draw, as the source of a view."""

        def answer(request: Message) -> Message | None:
            match request:
                case {"kind": "show_steps", "first": int(first), "last": int(last)}:
                    if not 0 <= first <= last:
                        raise InvalidArgumentError(f"these are not steps of a run: {first} to {last}")
                    return self.runs.replay(path, range(first, last + 1))
            return None

        return Given("replay", lambda: self.runs.replay(path), answer)
