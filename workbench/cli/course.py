"""`workbench course`: writes the labs for students, or for their instructor."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from workbench.cli import software
from workbench.cli.lab import shipped_notebooks
from workbench.cli.lab_versions import LabInvalid, counted, for_instructors, for_students, points_of

_WRITTEN = ".workbench-course.json"
"""In a folder that this command has written to: the version, and by name the digest of each file as it was written."""

STUDENT, INSTRUCTOR = "student", "instructor"
_DESCRIBED = {STUDENT: "without solutions", INSTRUCTOR: "with solutions and notes"}


class CourseRefused(Exception):
    """Nothing was written; the text says why and what to do."""


def run(options: argparse.Namespace) -> int:
    """Writes one version or both; returns 1 if a file in the way is not the command's own, 2 if no folder is named."""
    folders = {STUDENT: options.student, INSTRUCTOR: options.instructor}
    asked = {version: Path(folder).absolute() for version, folder in folders.items() if folder is not None}
    if not asked:
        print("name a folder: workbench course --student DIR, --instructor DIR, or both", file=sys.stderr)
        return 2
    try:
        written = {version: _files(version) for version in asked}
        if len({folder.resolve() for folder in asked.values()}) < len(asked):
            raise CourseRefused("the two versions need a folder each: students must not find the solutions")
        for version, folder in asked.items():
            _refuse_to_replace(folder, version, written[version])
        for version, folder in asked.items():
            _write(folder, version, written[version])
            print(f"{folder}: {_summary(version, written[version])}")
    except (CourseRefused, LabInvalid) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename} cannot be read or written ({error.strerror})", file=sys.stderr)
        return 1
    return 0


def _files(version: str) -> dict[str, bytes]:
    """By name, what the folder of a version consists of: the labs and the map of the course."""
    if importlib.util.find_spec("nbformat") is None:
        raise CourseRefused(f"nbformat is missing, which reads notebooks: {software.install('nbformat')}")
    shipped = shipped_notebooks()
    if shipped is None:
        raise CourseRefused("the labs are not part of this installation of workbench: reinstall it")
    files = {}
    for path in sorted(shipped.glob("[0-9][0-9]_*.ipynb")):
        try:
            files[path.name] = _text(_version_of(path, version))
        except LabInvalid as error:
            raise LabInvalid(f"{path}: {error}") from None
    return {**files, "README.md": (shipped / "README.md").read_bytes()}


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


def _refuse_to_replace(folder: Path, version: str, files: dict[str, bytes]) -> None:
    """Raises `CourseRefused` if the folder has another version, or something under a name that will be written.

    A file is replaced if it is as the command has written it before.
    """
    if folder.exists() and not folder.is_dir():
        raise CourseRefused(f"{folder} is a file: name a folder")
    kept_as, digests = _written(folder)
    if kept_as not in ("", version):
        raise CourseRefused(
            f"{folder} has the {kept_as}'s version: choose another folder for the {version}'s"
        )
    in_the_way = [
        name
        for name, content in files.items()
        if os.path.lexists(folder / name) and not _may_replace(folder / name, content, digests.get(name))
    ]
    if in_the_way:
        raise CourseRefused(
            f"nothing was written: in {folder}, {', '.join(in_the_way)} did not come from `workbench course`, or "
            "changed since. Choose another folder, or move these files away"
        )


def _may_replace(path: Path, content: bytes, digest: str | None) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    found = path.read_bytes()
    return found == content or _digest(found) == digest


def _write(folder: Path, version: str, files: dict[str, bytes]) -> None:
    """Writes the files, then the record of them: after an interrupt, a file is as this or the old record has it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _put(folder / name, content)
    digests = _written(folder)[1] | {name: _digest(content) for name, content in files.items()}
    record = json.dumps({"version": version, "files": digests}, indent=2) + "\n"
    _put(folder / _WRITTEN, record.encode())


def _put(target: Path, content: bytes) -> None:
    """Replaces `target` in one piece: after an interrupt there is the old file or the new one."""
    part = target.with_name(f".{target.name}.part-{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _written(folder: Path) -> tuple[str, dict[str, str]]:
    """The version in the folder, "" for none, and by name the digest of each file as it was written.

    Raises:
      CourseRefused: If a file has the record's name and is none.
    """
    try:
        found = json.loads((folder / _WRITTEN).read_text(encoding="utf-8"))
        return str(found["version"]), {str(name): str(digest) for name, digest in found["files"].items()}
    except FileNotFoundError:
        return "", {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CourseRefused(
            f"{folder / _WRITTEN} is damaged: choose another folder, or move it away"
        ) from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _summary(version: str, files: dict[str, bytes]) -> str:
    import nbformat

    labs = [nbformat.reads(text.decode(), as_version=4) for name, text in files.items() if name.endswith("b")]
    points = [points_of(lab) for lab in labs]
    exercises = sum(map(len, points))
    total = f"{counted(exercises, 'exercise')}, {counted(sum(map(sum, points)), 'point')}"
    return f"{counted(len(labs), 'lab')} {_DESCRIBED[version]}, {total}"
