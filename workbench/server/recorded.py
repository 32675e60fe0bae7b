"""Where the Jupyter server finds recorded runs: below its root folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError

_MAX_DEPTH: Final = 4
_MAX_FOLDERS: Final = 2000
_MAX_FILES: Final = 2000
_MAX_BYTES: Final = 1024**3
_IGNORED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


class RunsBelow:
    """A `Shelf`: Parquet files in folders named `runs`, where `wb.record("runs/…")` puts them.

    Pages know them by their paths below the root; where that is does not concern them.

    Attributes:
      root: Nothing outside of it is looked at.
    """

    name = "."

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def files(self) -> Iterable[Path]:
        """As `Shelf.files`."""
        found = 0
        for folders, (here, names, files) in enumerate(os.walk(self.root)):
            folder = Path(here)
            depth = len(folder.relative_to(self.root).parts)
            names[:] = sorted(name for name in names if depth < _MAX_DEPTH and _is_shown(name))
            if folder.name == "runs" and depth:
                for file in _recorded(folder, files):
                    found += 1
                    yield file
            if folders >= _MAX_FOLDERS or found >= _MAX_FILES:
                return

    def path_of(self, file: Path) -> str:
        """As `Shelf.path_of`."""
        return file.relative_to(self.root).as_posix()

    def find(self, path: str) -> Path:
        """As `Shelf.find`.

        Raises:
          NotFoundError: if it is no recorded run below the root; the text names the path, and not what is there.
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
            if file.resolve(strict=True) != file:  # a link somewhere on the way
                raise refused
            about = file.lstat()
        except (OSError, ValueError, RuntimeError) as error:
            raise refused from error
        if not stat.S_ISREG(about.st_mode):
            raise refused
        if about.st_size > _MAX_BYTES:
            raise DataCorruption(f"{path} has {about.st_size} bytes; panes open runs up to {_MAX_BYTES}")
        return file


def steps_from(texts: Sequence[str]) -> range | None:
    """The steps that a query names, the first and the last; None for all.

    Raises:
      InvalidArgumentError: if it names none.
    """
    if not texts:
        return None
    numbers = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 18]
    if len(texts) != 2 or len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InvalidArgumentError("steps to show are the numbers of the first and the last one")
    return range(numbers[0], numbers[1] + 1)


def _recorded(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        if name.endswith(".parquet") and _is_shown(name):
            with contextlib.suppress(OSError):  # it has just gone
                if stat.S_ISREG((folder / name).lstat().st_mode):
                    yield folder / name


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in _IGNORED
