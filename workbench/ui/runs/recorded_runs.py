"""Recorded runs for servers of pages: lists them, replays one, compares two."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from workbench import forks
from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.telemetry.runs.recorded_run import Run, open_run
from workbench.telemetry.runs.transfer_times import Kind, Times
from workbench.ui.models.runs import ComparedRow, RunEntry, Runs
from workbench.ui.render.plain_values import plain
from workbench.ui.runs.runs_model import (
    MAX_RUNS,
    compared_times,
    newest_first,
    recorded_in,
    replay_of,
    run_entry,
)

_MAX_OPEN: Final = 4

Version = tuple[Path, int, int, int]
"""A file's inode, time of the last change and size, which together show whether it is still the same."""
Read = TypeVar("Read")


class Shelf(Protocol):
    """A place with runs, and their names in pages.

    Attributes:
      name: The folder's name in pages.
    """

    name: str

    def files(self) -> Iterable[Path]:
        """The files, in any order."""
        ...

    def find(self, path: str) -> Path:
        """The file that a page refers to.

        Raises:
          NotFoundError: if it is not one of these files.
          DataCorruption: if it must not be opened here.
        """
        ...

    def path_of(self, file: Path) -> str:
        """A file's name in pages."""
        ...


class Folder:
    """The runs in a folder, not below it; pages refer to them by their paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def files(self) -> Iterable[Path]:
        """As `Shelf.files`."""
        return recorded_in(self.path)

    def find(self, path: str) -> Path:
        """As `Shelf.find`."""
        found = next((file for file in self.files() if str(file) == path), None)
        if found is None:
            raise NotFoundError(f"there is no recorded run {path[:200]!r} in {self.path}")
        return found

    def path_of(self, file: Path) -> str:
        """As `Shelf.path_of`."""
        return str(file)


class OneFile:
    """A single run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def files(self) -> Iterable[Path]:
        """As `Shelf.files`."""
        return (self.path,)

    def find(self, path: str) -> Path:
        """As `Shelf.find`."""
        if path != str(self.path):
            raise NotFoundError(f"there is no recorded run {path[:200]!r}")
        return self.path

    def path_of(self, file: Path) -> str:
        """As `Shelf.path_of`."""
        return str(file)


class RecordedRuns:
    """Opens the runs of a shelf, and nothing else.

    Opening a run with millions of records takes seconds, so servers call these methods in a thread. A file is read once
    for all requests, until it changes.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lock = forks.lock(threading.Lock())  # guards the next two; never held while a file is read
        self._entries: dict[Version, RunEntry] = {}
        self._open: dict[Version, Run] = {}

    @property
    def name(self) -> str:
        """The name, in pages, of the place with the runs."""
        return self._shelf.name

    def all(self, compare: Sequence[str] = ()) -> dict[str, Any]:
        """All runs, newest first, and two of them compared; see `models.runs.Runs`.

        Raises:
          InvalidArgumentError: if there are not exactly two to compare.
          NotFoundError: if one of them is not one of these runs.
          DataCorruption: if one of them is damaged.
        """
        if len(compare) not in (0, 2):
            raise InvalidArgumentError(f"two runs can be compared, not {len(compare)}")
        rows: tuple[ComparedRow, ...] = ()
        if compare:
            rows = compared_times(*map(self._transfers, compare))
        files = newest_first(self._shelf.files())[:MAX_RUNS]
        entries = tuple(filter(None, map(self._entry, files)))
        return plain(Runs(self._shelf.name, entries, tuple(Path(path).stem for path in compare), rows))

    def replay(self, path: str, steps: range | None = None) -> dict[str, Any]:
        """What the views of a run draw; see `models.runs.Replay`.

        Args:
          path: A path that `all` lists.
          steps: The steps to show; by default all, of which views show the newest.

        Raises:
          NotFoundError: if it is not one of these runs.
          DataCorruption: if it is damaged.
        """
        with self._opened(path) as run:
            found = replay_of(run, steps)
            return found | {"run": found["run"] | {"path": path}}

    def _transfers(self, path: str) -> Mapping[Kind, Times]:
        with self._opened(path) as run:
            return run.transfers()

    @contextmanager
    def _opened(self, path: str) -> Iterator[Run]:
        """The run that a page refers to. Errors use the page's name for it, so as not to reveal where the folder is."""
        file = self._shelf.find(path)
        try:
            yield self._kept(self._open, _MAX_OPEN, file, open_run)
        except NotFoundError as error:
            raise NotFoundError(f"there is no recorded run {path[:200]!r}") from error
        except DataCorruption as error:
            raise DataCorruption(str(error).replace(str(file), path)) from error

    def _entry(self, file: Path) -> RunEntry | None:
        """The entry of a run; None if the file has just vanished."""
        try:
            entry = self._kept(self._entries, 2 * MAX_RUNS, file, run_entry)
        except NotFoundError:
            return None
        path = self._shelf.path_of(file)
        return replace(entry, path=path, problem=entry.problem.replace(str(file), path))

    def _kept(self, kept: dict[Version, Read], most: int, file: Path, read: Callable[[Path], Read]) -> Read:
        version = _version(file)
        with self._lock:
            found = kept.pop(version, None)
        if found is None:
            found = read(file)
        with self._lock:
            # Two simultaneous requests have both opened it; from now on there is one.
            found = kept.setdefault(version, found)
            while len(kept) > most:
                del kept[next(iter(kept))]  # the last requested run is the last one
        return found


def _version(file: Path) -> Version:
    try:
        about = os.stat(file)
    except OSError as error:
        raise NotFoundError(f"there is no recorded run {file}") from error
    return file, about.st_ino, about.st_mtime_ns, about.st_size
