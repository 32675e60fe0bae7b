"""The two versions of a lab: the student's has no solutions, the instructor's has notes."""

from __future__ import annotations

import copy
import re
from typing import Any

from workbench.runtime.placement_text import counted

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"
_STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")


class LabInvalid(Exception):
    """A lab, or the notes on it, cannot be turned into a version; the message says where and what to change."""


def points_of(lab: Any) -> list[int]:
    """The points of each check of a lab, in order.

    Args:
      lab: A notebook from `nbformat.read`.
    """
    return [cell.metadata.nbgrader.points for cell in lab.cells if _is_check(cell)]


def for_students(lab: Any) -> Any:
    """A copy of a lab without solutions and outputs, in which checks cannot be edited.

    Solutions are replaced as by `nbgrader generate_assignment`. Checks keep nbgrader's metadata, so nbgrader can
    collect and grade submissions.

    Args:
      lab: A notebook from `nbformat.read`.

    Raises:
      LabInvalid: if a marker has no counterpart.
    """
    lab = copy.deepcopy(lab)
    for cell in lab.cells:
        cell.source = _without_solutions(cell.source, cell.id)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if "nbgrader" in cell.metadata:
            cell.metadata.deletable = False
        if _is_check(cell):
            cell.metadata.editable = False
    return lab


def for_instructors(lab: Any, notes: str) -> Any:
    """A copy of a lab with the solutions, a note at the top, and a note on each exercise below its check.

    Args:
      lab: A notebook from `nbformat.read`.
      notes: Markdown: notes on the whole lab, then a section `## NAME` for each exercise, by its `grade_id`.

    Raises:
      LabInvalid: if exercises and sections are not the same.
    """
    general, sections = _sections(notes)
    exercises = [
        cell.metadata.nbgrader.grade_id.removesuffix("-check") for cell in lab.cells if _is_check(cell)
    ]
    if sorted(exercises) != sorted(sections):
        raise LabInvalid(f"the lab has the exercises {sorted(exercises)}, the notes have {sorted(sections)}")
    lab = copy.deepcopy(lab)
    most = points_of(lab)
    cells = []
    for number, cell in enumerate(lab.cells):
        cells.append(cell)
        if number == 0:
            text = f"**For instructors** ({counted(len(most), 'exercise')}, {counted(sum(most), 'point')})\n\n{general}"
            cells.append(_note(f"{cell.id}-notes", text))
        if _is_check(cell):
            name = cell.metadata.nbgrader.grade_id.removesuffix("-check")
            points = counted(cell.metadata.nbgrader.points, "point")
            cells.append(_note(f"{name}-notes", f"**For instructors** ({points})\n\n{sections[name]}"))
    lab.cells = cells
    return lab


def _without_solutions(source: str, where: str) -> str:
    """Replaces each solution by its stub, indented like its first marker."""
    if _BEGIN not in source and _END not in source:
        return source
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        marker = _BEGIN if _BEGIN in line else _END if _END in line else ""
        if (marker == _BEGIN and inside) or (marker == _END and not inside):
            raise LabInvalid(f"cell {where!r} has a `{marker}` too many")
        if marker == _BEGIN:
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + stub for stub in _STUB]
        elif not marker and not inside:
            lines.append(line)
        inside = inside != bool(marker)
    if inside:
        raise LabInvalid(f"cell {where!r} has no `{_END}`")
    return "\n".join(lines)


def _sections(notes: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, without the page's heading, and the text of each section, by name."""
    general, *parts = re.split(r"^## (\S+)\n", notes, flags=re.MULTILINE)
    texts = (text.strip() for text in parts[1::2])
    return re.sub(r"\A# .*\n", "", general).strip(), dict(zip(parts[::2], texts, strict=True))


def _is_check(cell: Any) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _note(id: str, text: str) -> Any:
    from nbformat.v4 import new_markdown_cell

    return new_markdown_cell(text, id=id, metadata={"tags": ["instructor"]})
