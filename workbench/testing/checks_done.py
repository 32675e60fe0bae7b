"""Which checks of a notebook have passed: "4 of 7 done", kept in a file of the user."""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.data.stored.locks import locked
from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.registry import runtime_folder

_SUFFIX = "-check"
"""The end of the id of a cell that checks an exercise, after the exercise's name."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Exercises of a notebook whose checks have passed, and the others. Draws a bar in a notebook.

    Attributes:
      notebook: The file's name.
      done: Names of the exercises whose check has passed in its present form, in the notebook's order.
      to_do: Names of the others.
    """

    notebook: str
    done: tuple[str, ...]
    to_do: tuple[str, ...]

    def __str__(self) -> str:
        rest = f"To do: {', '.join(self.to_do)}" if self.to_do else "All checks have passed."
        return f"{self.notebook}: {self._count()}. {rest}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        most = max(1, len(self.done) + len(self.to_do))
        bar = f'<progress max="{most}" value="{len(self.done)}" aria-label="{self._count()}"></progress>'
        names = [f"✓ {name}" for name in self.done] + [f"· {name}" for name in self.to_do]
        rows = "".join(f"<div>{html.escape(name)}</div>" for name in names)
        return f"<div>{html.escape(self.notebook)}: <b>{self._count()}</b> {bar}</div>{rows}"

    def _count(self) -> str:
        return f"{len(self.done)} of {len(self.done) + len(self.to_do)} done"


def progress(notebook: str | os.PathLike[str] | None = None) -> Progress:
    """Shows how many exercises of a lab you have solved: those whose check has passed at least once.

    A check that you edit afterwards must pass again. Workbench keeps the result in your data folder, by the path of the
    notebook, and nowhere else.

    Args:
      notebook: The file of a lab; by default the calling notebook, as it is saved.

    Raises:
      InvalidArgumentError: if there is no such notebook, or Jupyter does not say which one makes the call.
    """
    path = _caller() if notebook is None else Path(notebook).absolute()
    if path is None:
        raise InvalidArgumentError(
            "Jupyter does not say which notebook this is; name its file: wb.testing.progress('01_quickstart.ipynb')"
        )
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        checks = {
            str(cell["id"]): "".join(cell["source"])
            for cell in cells
            if cell["metadata"].get("nbgrader", {}).get("grade") and str(cell["id"]).endswith(_SUFFIX)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(f"{path} cannot be read as a notebook: {error}") from error
    passed = _passed(path)
    done = [id for id, source in checks.items() if passed.get(id) == _digest(source)]
    names = [
        tuple(id.removesuffix(_SUFFIX) for id in checks if (id in done) is wanted) for wanted in (True, False)
    ]
    return Progress(path.name, *names)


def keep_if_passed(result: Any) -> None:
    """Records a passed check; other cells and failed checks change nothing.

    Args:
      result: IPython's record of a cell that has run.
    """
    id, path = getattr(result.info, "cell_id", None), _caller()
    if path is None or not id or not id.endswith(_SUFFIX) or not result.success:
        return
    with contextlib.suppress(OSError):  # a full disk or another user's folder is no reason to disturb a lab
        _keep(path, id, _digest(result.info.raw_cell))


def _caller() -> Path | None:
    """This kernel's notebook, according to the Jupyter server."""
    name = os.environ.get("JPY_SESSION_NAME")
    return Path(name).absolute() if name else None


def _passed(notebook: Path) -> dict[str, str]:
    """For each check that has passed, by id, a digest of its source at that time."""
    try:
        found = json.loads(_record(notebook).read_text(encoding="utf-8"))
        return {str(id): str(digest) for id, digest in found["passed"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _keep(notebook: Path, id: str, digest: str) -> None:
    """Adds a check to the record, under a lock and atomically: several kernels may have the same notebook."""
    record = _record(notebook)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(str(record.parent / ".lock")):
        kept = {"notebook": str(notebook), "passed": _passed(notebook) | {id: digest}}
        descriptor, part = tempfile.mkstemp(prefix=".part-", dir=record.parent)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(kept, file, indent=2)
            os.replace(part, record)
        except BaseException:
            os.unlink(part)
            raise


def _record(notebook: Path) -> Path:
    return runtime_folder() / "progress" / f"{hashlib.sha256(os.fsencode(notebook)).hexdigest()[:32]}.json"


def _digest(source: str) -> str:
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()
