"""Recorded runs below the server's root folder: what there is, and what the views of one draw."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from workbench.errors import DataCorruption, NotFoundError
from workbench.telemetry.runs import open_run

_MAX_DEPTH: Final = 4
_MAX_FOLDERS: Final = 2000
_MAX_RUNS: Final = 500
_MAX_BYTES: Final = 1024**3
_IGNORED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


class RecordedRuns:
    """Parquet files in folders named `runs`, where `wb.record("runs/…")` puts them.

    Attributes:
      root: Nothing outside of it is looked at.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    async def all(self) -> list[dict[str, Any]]:
        """Path, size and time of each, newest first."""
        return await asyncio.to_thread(self._all)

    async def open(self, path: str) -> dict[str, Any]:
        """What the views draw of a run: a frame and a snapshot.

        Raises:
          NotFoundError: if `path` is none that `all` could give.
          DataCorruption: if the file is damaged.
        """
        return await asyncio.to_thread(self._open, path)

    def _all(self) -> list[dict[str, Any]]:
        found = []
        for file in self._files():
            about = file.lstat()
            found.append(
                {
                    "path": file.relative_to(self.root).as_posix(),
                    "size_bytes": about.st_size,
                    "written": datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds"),
                }
            )
        return sorted(found, key=lambda run: str(run["written"]), reverse=True)

    def _open(self, path: str) -> dict[str, Any]:
        file = self._inside(path)
        snapshot = open_run(file).snapshot()
        whole: dict[str, Any] = json.loads(json.dumps(snapshot.as_dict(), allow_nan=False))
        return {"frame": {"status": "replay", "silent": []}, "snapshot": whole}

    def _inside(self, path: str) -> Path:
        """The file that a client means.

        Raises:
          NotFoundError: if it is no recorded run below the root; the text names the path, and not what is there.
        """
        refused = NotFoundError(f"there is no recorded run {path[:200]!r} below the server's folder")
        parts = path.split("/")
        if (
            "\0" in path
            or "\\" in path
            or any(part in ("", ".", "..") or part.startswith(".") for part in parts)
            or not path.endswith(".parquet")
            or len(parts) < 2
            or parts[-2] != "runs"
        ):
            raise refused
        file = self.root.joinpath(*parts)
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
            names[:] = sorted(
                name
                for name in names
                if not name.startswith(".") and name not in _IGNORED and depth < _MAX_DEPTH
            )
            if folder.name == "runs" and folder != self.root:
                for name in sorted(files):
                    if (
                        name.endswith(".parquet")
                        and not name.startswith(".")
                        and not (folder / name).is_symlink()
                    ):
                        runs += 1
                        yield folder / name
            if folders >= _MAX_FOLDERS or runs >= _MAX_RUNS:
                return
