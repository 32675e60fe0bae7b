"""Finds recorded runs below the Jupyter server's root folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.server.limits import USUAL

_MAX_DEPTH: Final = 4
_MAX_FOLDERS: Final = 2000
_MAX_FILES: Final = 2000
_IGNORED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


class RunsBelow:
    """A `Shelf`: Parquet files in folders named `runs`, where `wb.record("runs/…")` puts them.

    Pages know them by their paths below the root, but not the root's path.

    Attributes:
      root: The root folder; nothing outside it is read.
      max_bytes: Larger files are listed, but not opened.
    """

    name = "."

    def __init__(self, root: Path, max_bytes: int = USUAL.run_bytes) -> None:
        self.root = root.resolve()
        self.max_bytes = max_bytes

    def files(self) -> Iterable[Path]:
        """As `Shelf.files`. Level by level, so that if there are too many folders, the deepest ones are left out."""
        folders = deque([(self.root, 0)])
        looked = found = 0
        while folders and found < _MAX_FILES:
            folder, depth = folders.popleft()
            looked += 1
            names, runs = _listed(folder)
            if depth < _MAX_DEPTH:
                room = _MAX_FOLDERS - looked - len(folders)
                folders.extend((folder / name, depth + 1) for name in names[:room])
            if folder.name == "runs" and depth:
                found += len(runs)
                yield from (folder / name for name in runs)

    def path_of(self, file: Path) -> str:
        """As `Shelf.path_of`."""
        return file.relative_to(self.root).as_posix()

    def find(self, path: str) -> Path:
        """As `Shelf.find`.

        Raises:
          NotFoundError: if it is not a recorded run below the root; the message names the path, but not what is there.
          DataCorruption: if it is too large for a pane.
        """
        refused = NotFoundError(f"there is no recorded run {path[:200]!r} below the server's folder")
        *folders, name = path.split("/")
        if (
            "\0" in path
            or "\\" in path
            or any(part.startswith(".") or not part for part in (*folders, name))
            or not name.endswith(".parquet")
            or folders[-1:] != ["runs"]
        ):
            raise refused
        file = self.root.joinpath(*folders, name)
        try:
            if file.resolve(strict=True) != file:  # one component of the path is a link
                raise refused
            about = file.lstat()
        except (OSError, ValueError, RuntimeError) as error:
            raise refused from error
        if not stat.S_ISREG(about.st_mode):
            raise refused
        if about.st_size > self.max_bytes:
            raise DataCorruption(
                f"{path} has {about.st_size} bytes; panes open runs up to {self.max_bytes}, which "
                "WorkbenchApp.max_run_bytes in the configuration of the Jupyter server sets"
            )
        return file


def steps_from(texts: Sequence[str]) -> range | None:
    """The range of steps in a query, given by the first and the last; None for all.

    Raises:
      InvalidArgumentError: if the query is invalid.
    """
    if not texts:
        return None
    numbers = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 18]
    if len(texts) != 2 or len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InvalidArgumentError("steps to show are the numbers of the first and the last one")
    return range(numbers[0], numbers[1] + 1)


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the subfolders, "runs" first, and of possible recorded runs; empty if the folder is not readable."""
    folders: list[str] = []
    runs: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not _is_shown(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.name.endswith(".parquet") and entry.is_file(follow_symlinks=False):
                runs.append(entry.name)
    return sorted(folders, key=lambda name: (name != "runs", name)), runs


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in _IGNORED
