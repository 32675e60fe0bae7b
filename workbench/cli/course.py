"""`workbench course`: writes the labs for students, or for their instructor."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.cli import software
from workbench.cli.lab import shipped_notebooks
from workbench.cli.lab_versions import LabInvalid, for_instructors, for_students, points_of
from workbench.cli.whole_files import digest, put
from workbench.runtime.placement_text import counted

_WRITTEN = ".workbench-course.json"
"""In a folder that this command has written: the version, and the digest of each file as it was written, by name."""

_FOR_TEACHERS = "\n## For teachers\n"
"""The start of the part of the map that only the instructor's version has."""

STUDENT, INSTRUCTOR = "student", "instructor"
_DESCRIBED = {STUDENT: "without solutions", INSTRUCTOR: "with solutions and notes"}


class CourseRefused(Exception):
    """Nothing was written; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of the course.

    Attributes:
      name: `STUDENT` or `INSTRUCTOR`.
      files: The files of its folder, by name: the labs and the map of the course.
      points: For each lab, the points of its checks.
    """

    name: str
    files: dict[str, bytes]
    points: list[list[int]]

    def __str__(self) -> str:
        exercises = sum(map(len, self.points))
        total = f"{counted(exercises, 'exercise')}, {counted(sum(map(sum, self.points)), 'point')}"
        return f"{counted(len(self.points), 'lab')} {_DESCRIBED[self.name]}, {total}"


def run(options: argparse.Namespace) -> int:
    """Writes one version or both; returns 1 if a file in the way is not the command's own, 2 if no folder is named."""
    folders = {STUDENT: options.student, INSTRUCTOR: options.instructor}
    asked = {name: Path(folder).absolute() for name, folder in folders.items() if folder is not None}
    if not asked:
        print("name a folder: workbench course --student DIR, --instructor DIR, or both", file=sys.stderr)
        return 2
    try:
        versions = [(folder, _version(name)) for name, folder in asked.items()]
        if len({folder.resolve() for folder in asked.values()}) < len(asked):
            raise CourseRefused("the two versions need a folder each: students must not find the solutions")
        for folder, version in versions:
            _refuse_to_replace(folder, version)
        for folder, version in versions:
            _write(folder, version)
            print(f"{folder}: {version}")
    except (CourseRefused, LabInvalid) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename} cannot be read or written ({error.strerror})", file=sys.stderr)
        return 1
    return 0


def _version(name: str) -> _Version:
    if importlib.util.find_spec("nbformat") is None:
        raise CourseRefused(f"nbformat is missing, which reads notebooks: {software.install('nbformat')}")
    shipped = shipped_notebooks()
    if shipped is None:
        raise CourseRefused("the labs are not part of this installation of workbench: reinstall it")
    files, points = {}, []
    for path in sorted(shipped.glob("[0-9][0-9]_*.ipynb")):
        try:
            lab = _version_of(path, name)
        except LabInvalid as error:
            raise LabInvalid(f"{path}: {error}") from None
        files[path.name] = _text(lab)
        points.append(points_of(lab))
    map_of_course = (shipped / "README.md").read_text(encoding="utf-8")
    if name == STUDENT:
        map_of_course = map_of_course.partition(_FOR_TEACHERS)[0]
    return _Version(name, {**files, "README.md": map_of_course.encode()}, points)


def _version_of(path: Path, version: str) -> Any:
    import nbformat  # part of JupyterLab, which `workbench lab` needs, too

    lab = nbformat.read(path, as_version=4)
    if version == STUDENT:
        return for_students(lab)
    notes = path.parent / "instructor" / f"{path.stem}.md"
    return for_instructors(lab, notes.read_text(encoding="utf-8"))


def _text(notebook: Any) -> bytes:
    import nbformat

    text: str = nbformat.writes(notebook)
    return (text + "\n").encode()


def _refuse_to_replace(folder: Path, version: _Version) -> None:
    """Raises `CourseRefused` if the folder holds another version, or a foreign file under a name that will be written.

    A file may be replaced if it is unchanged since the command wrote it.
    """
    if folder.exists() and not folder.is_dir():
        raise CourseRefused(f"{folder} is a file: name a folder")
    kept_as, digests = _written(folder)
    if kept_as not in ("", version.name):
        raise CourseRefused(
            f"{folder} has the {kept_as}'s version: choose another folder for the {version.name}'s"
        )
    in_the_way = [
        name
        for name, content in version.files.items()
        if os.path.lexists(folder / name) and not _may_replace(folder / name, content, digests.get(name))
    ]
    if in_the_way:
        raise CourseRefused(
            f"nothing was written: in {folder}, {', '.join(in_the_way)} did not come from `workbench course`, or "
            "changed since. Choose another folder, or move these files away"
        )


def _may_replace(path: Path, content: bytes, written: str | None) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    found = path.read_bytes()
    return found == content or digest(found) == written


def _write(folder: Path, version: _Version) -> None:
    """Writes the files and then their record. After an interrupt, each file matches the new record or the old one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in version.files.items():
        put(folder / name, content)
    digests = _written(folder)[1] | {name: digest(content) for name, content in version.files.items()}
    record = json.dumps({"version": version.name, "files": digests}, indent=2) + "\n"
    put(folder / _WRITTEN, record.encode())


def _written(folder: Path) -> tuple[str, dict[str, str]]:
    """The version in the folder ("" for none), and the digest of each file as it was written, by name.

    Raises:
      CourseRefused: if a file has the record's name and is not a record.
    """
    try:
        found = json.loads((folder / _WRITTEN).read_text(encoding="utf-8"))
        return str(found["version"]), {str(name): str(written) for name, written in found["files"].items()}
    except FileNotFoundError:
        return "", {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CourseRefused(
            f"{folder / _WRITTEN} is damaged: choose another folder, or move it away"
        ) from None
