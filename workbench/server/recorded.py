"""Recorded runs below the server's root folder: what there is, and what the views of one draw."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.telemetry.runs import open_run
from workbench.ui.models import ComparedRow, RunEntry, Runs, plain
from workbench.ui.runs_model import compared, newest_first, replay_model, run_entry

_MAX_DEPTH: Final = 4
_MAX_FOLDERS: Final = 2000
_MAX_RUNS: Final = 200
_MAX_BYTES: Final = 1024**3
_IGNORED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


class RecordedRuns:
    """Parquet files in folders named `runs`, where `wb.record("runs/…")` puts them.

    Attributes:
      root: Nothing outside of it is looked at.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._known: dict[tuple[Path, int, int], RunEntry] = {}

    async def all(self, compare: Sequence[str] = ()) -> dict[str, Any]:
        """All runs, newest first, and two of them compared; see `models.Runs`.

        Raises:
          InvalidArgumentError: if those to compare are not two.
          NotFoundError, DataCorruption: as `open`.
        """
        return await asyncio.to_thread(self._all, compare)

    async def open(self, path: str, steps: Sequence[str] = ()) -> dict[str, Any]:
        """What the views draw of a run; see `models.Replay`.

        Args:
          path: As `all` gives it.
          steps: The first and the last one to show; by default all.

        Raises:
          InvalidArgumentError: if these are no steps.
          NotFoundError: if `path` is none of those that `all` gives.
          DataCorruption: if the file is damaged.
        """
        return await asyncio.to_thread(self._open, path, _steps(steps))

    def _all(self, compare: Sequence[str]) -> dict[str, Any]:
        if len(compare) not in (0, 2):
            raise InvalidArgumentError(f"two runs can be compared, not {len(compare)}")
        rows: tuple[ComparedRow, ...] = ()
        if compare:
            first, second = map(self._inside, compare)
            with self._named_as_asked():
                rows = compared(open_run(first), open_run(second))
        entries = map(self._entry, newest_first(self._files()))
        return plain(Runs(".", tuple(entries), tuple(Path(path).stem for path in compare), rows))

    def _entry(self, file: Path) -> RunEntry:
        """Read once, as long as the file stays as it is."""
        about = file.lstat()
        key = file, about.st_mtime_ns, about.st_size
        if key not in self._known:
            if len(self._known) >= 2 * _MAX_RUNS:
                self._known.clear()
            path = file.relative_to(self.root).as_posix()
            entry = run_entry(file)
            # Where the server's folder is does not concern a page.
            self._known[key] = replace(entry, path=path, problem=entry.problem.replace(str(file), path))
        return self._known[key]

    def _open(self, path: str, steps: range | None) -> dict[str, Any]:
        file = self._inside(path)
        with self._named_as_asked():
            found = replay_model(file, steps)
        return found | {"run": found["run"] | {"path": path}}

    @contextmanager
    def _named_as_asked(self) -> Iterator[None]:
        """Errors name files as a page does: where the server's folder is does not concern it."""
        try:
            yield
        except DataCorruption as error:
            raise DataCorruption(str(error).replace(f"{self.root}/", "")) from error

    def _inside(self, path: str) -> Path:
        """The file that a client means.

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

    def _files(self) -> Iterator[Path]:
        runs = 0
        for folders, (here, names, files) in enumerate(os.walk(self.root)):
            folder = Path(here)
            depth = len(folder.relative_to(self.root).parts)
            names[:] = sorted(name for name in names if depth < _MAX_DEPTH and _is_shown(name))
            if folder.name == "runs" and depth:
                for name in sorted(filter(_is_shown, files)):
                    if name.endswith(".parquet") and stat.S_ISREG((folder / name).lstat().st_mode):
                        runs += 1
                        yield folder / name
            if folders >= _MAX_FOLDERS or runs >= _MAX_RUNS:
                return


def _steps(texts: Sequence[str]) -> range | None:
    if not texts:
        return None
    if len(texts) != 2 or not all(text.isascii() and text.isdigit() and len(text) <= 18 for text in texts):
        raise InvalidArgumentError("steps to show are the numbers of the first and the last one")
    return range(int(texts[0]), int(texts[1]) + 1)


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in _IGNORED
