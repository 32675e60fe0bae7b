"""`workbench course` writes the labs without solutions or with notes, and replaces nothing that is not its own."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from workbench.cli import course, main
from workbench.cli.lab import shipped_notebooks
from workbench.cli.lab_versions import LabInvalid, for_instructors, for_students

NAME = "01_first.ipynb"
SOLUTION = "def answer():\n    ### BEGIN SOLUTION\n    return 42\n    ### END SOLUTION"
NOTES = "# Notes\n\nBegin slowly.\n\n## answer\n\n**Marking.** All or nothing.\n"


def graded(id: str, source: str, **form: Any) -> Any:
    return new_code_cell(source, id=id, metadata={"nbgrader": {"grade_id": id, "schema_version": 3, **form}})


def small_lab(solution: str = SOLUTION, title: str = "# Lab 1") -> Any:
    exercise = graded("answer", solution, solution=True, grade=False)
    exercise.outputs, exercise.execution_count = [new_output("stream", text="42")], 3
    check = graded("answer-check", "assert answer() == 42", solution=False, grade=True, points=2)
    return new_notebook(cells=[new_markdown_cell(title, id="title"), exercise, check])


class Shipped:
    """A folder of labs that stands for the one of the installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "instructor").mkdir(parents=True)
        (folder / "README.md").write_text("the map", encoding="ascii")
        self.ship()

    def ship(self, lab: Any = None, notes: str = NOTES) -> None:
        nbformat.write(lab or small_lab(), self.folder / NAME)
        (self.folder / "instructor" / "01_first.md").write_text(notes, encoding="ascii")


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shipped:
    shipped = Shipped(tmp_path / "shipped")
    monkeypatch.setattr(course, "shipped_notebooks", lambda: shipped.folder)
    return shipped


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def sources(folder: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(folder / NAME, as_version=4).cells]


def real_labs() -> list[Path]:
    folder = shipped_notebooks()
    assert folder is not None
    return sorted(folder.glob("*.ipynb"))


@pytest.mark.parametrize("path", real_labs(), ids=lambda path: path.stem)
def test_the_students_version_of_a_lab_has_stubs_for_solutions_and_all_checks(path: Path) -> None:
    lab = nbformat.read(path, as_version=4)
    student = for_students(lab)

    forms = [cell.metadata.get("nbgrader", {}) for cell in lab.cells]
    exercises = [form.get("solution", False) for form in forms]
    assert any(exercises)
    assert [cell.id for cell in student.cells] == [cell.id for cell in lab.cells]
    for cell, original, form in zip(student.cells, lab.cells, forms, strict=True):
        assert "SOLUTION" not in cell.source
        assert ("raise NotImplementedError()" in cell.source) == form.get("solution", False)
        assert form.get("solution") or cell.source == original.source
        assert (cell.metadata.get("editable") is False) == form.get("grade", False)
    nbformat.validate(student)


@pytest.mark.parametrize("path", real_labs(), ids=lambda path: path.stem)
def test_the_instructors_version_has_a_note_on_each_exercise_below_its_check(path: Path) -> None:
    lab = nbformat.read(path, as_version=4)
    notes = (path.parent / "instructor" / f"{path.stem}.md").read_text(encoding="utf-8")
    cells = for_instructors(lab, notes).cells

    assert [cell for cell in cells if "instructor" not in cell.metadata.get("tags", [])] == lab.cells
    assert re.match(r"\*\*For instructors\*\* \(\d exercises, \d+ points\)\n\n\w", cells[1].source)
    for cell, below in zip(cells, [*cells[1:], None], strict=True):
        form = cell.metadata.get("nbgrader", {})
        if form.get("grade"):
            assert below.source.startswith(f"**For instructors** ({form['points']} point")
            assert all(f"\n**{part}.** " in below.source for part in ("Marking", "Typical errors"))
            assert "solution" not in below.metadata
    nbformat.validate(for_instructors(lab, notes))


def test_both_versions_are_written_at_once(
    shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    student, instructor = tmp_path / "a" / "student", tmp_path / "instructor"

    assert main(["course", f"--student={student}", f"--instructor={instructor}"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        f"{student}: 1 lab without solutions, 1 exercise, 2 points",
        f"{instructor}: 1 lab with solutions and notes, 1 exercise, 2 points",
    ]
    stub = "def answer():\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    check = "assert answer() == 42"
    assert sources(student) == ["# Lab 1", stub, check]
    general = "**For instructors** (1 exercise, 2 points)\n\nBegin slowly."
    assert sources(instructor) == [
        "# Lab 1", general, SOLUTION, check, "**For instructors** (2 points)\n\n**Marking.** All or nothing."
    ]  # fmt: skip
    assert set(contents(student)) == {NAME, "README.md", ".workbench-course.json"}


def test_only_the_instructors_map_plans_sessions_and_tells_how_to_get_solutions(tmp_path: Path) -> None:
    student, instructor = tmp_path / "student", tmp_path / "instructor"

    assert main(["course", f"--student={student}", f"--instructor={instructor}"]) == 0

    texts = [(folder / "README.md").read_text(encoding="utf-8") for folder in (student, instructor)]
    assert ["two sessions" in text.lower() for text in texts] == [False, True]
    assert ["--instructor" in text for text in texts] == [False, True]
    assert all("| `10_several_terminals.ipynb` |" in text for text in texts)


def test_students_see_no_outputs() -> None:
    exercise = for_students(small_lab()).cells[1]

    assert (exercise.outputs, exercise.execution_count) == ([], None)


def test_a_cell_may_have_several_solutions_and_lines_between_them() -> None:
    first, second = (
        "### BEGIN SOLUTION\na = 1\n### END SOLUTION",
        "  ### BEGIN SOLUTION\n  b()\n  ### END SOLUTION",
    )
    source = f"{first}\nfor _ in range(2):\n{second}\nc"

    found = for_students(small_lab(source)).cells[1].source

    stub = "# YOUR CODE HERE\nraise NotImplementedError()"
    assert found == f"{stub}\nfor _ in range(2):\n  # YOUR CODE HERE\n  raise NotImplementedError()\nc"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("### BEGIN SOLUTION\nx = 1", "cell 'answer' has no `### END SOLUTION`"),
        ("x = 1\n### END SOLUTION", "cell 'answer' has a `### END SOLUTION` too many"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "has a `### BEGIN SOLUTION` too many"),
    ],
)
def test_a_marker_without_its_counterpart_shows_no_solution_but_an_error(
    source: str, message: str, shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped.ship(small_lab(source))

    assert main(["course", f"--student={tmp_path / 'student'}"]) == 1

    error = capsys.readouterr().err
    assert message in error
    assert NAME in error
    assert not (tmp_path / "student").exists()


def test_notes_have_to_fit_the_exercises() -> None:
    with pytest.raises(LabInvalid, match=r"the exercises \['answer'\], the notes have \['question'\]"):
        for_instructors(small_lab(), "## question\n\ntext\n")


def test_a_second_run_replaces_what_the_first_one_wrote(shipped: Shipped, tmp_path: Path) -> None:
    student = tmp_path / "student"
    assert main(["course", f"--student={student}"]) == 0
    (student / "mine.txt").write_text("mine", encoding="ascii")

    shipped.ship(small_lab(title="# Lab 1, revised"))

    assert main(["course", f"--student={student}"]) == 0
    assert sources(student)[0] == "# Lab 1, revised"
    assert contents(student)["mine.txt"] == b"mine"


@pytest.mark.parametrize("name", [NAME, "README.md"])
def test_a_file_that_changed_since_stops_the_command_before_it_writes_anything(
    name: str, shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    student = tmp_path / "student"
    assert main(["course", f"--student={student}"]) == 0
    (student / name).write_text("{}", encoding="ascii")
    before = contents(student)
    shipped.ship(small_lab(title="# Lab 1, revised"))

    assert main(["course", f"--student={student}", f"--instructor={tmp_path / 'instructor'}"]) == 1

    assert f"nothing was written: in {student}, {name} " in capsys.readouterr().err
    assert contents(student) == before
    assert not (tmp_path / "instructor").exists()


def test_a_file_from_elsewhere_is_left_alone(shipped: Shipped, tmp_path: Path) -> None:
    student, elsewhere = tmp_path / "student", tmp_path / "elsewhere"
    student.mkdir()
    elsewhere.write_text("mine", encoding="ascii")
    (student / NAME).symlink_to(elsewhere)

    assert main(["course", f"--student={student}"]) == 1

    assert elsewhere.read_text(encoding="ascii") == "mine"
    assert [path.name for path in student.iterdir()] == [NAME]


@pytest.mark.parametrize("first", ["student", "instructor"])
def test_a_folder_keeps_to_its_version(
    first: str, shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "course"
    assert main(["course", f"--{first}={folder}"]) == 0
    before = contents(folder)

    other = "instructor" if first == "student" else "student"
    assert main(["course", f"--{other}={folder}"]) == 1

    assert f"{folder} has the {first}'s version" in capsys.readouterr().err
    assert contents(folder) == before


def test_the_versions_do_not_share_a_folder(
    shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "course"

    assert main(["course", f"--student={folder}", f"--instructor={folder}/../course"]) == 1

    assert "a folder each" in capsys.readouterr().err
    assert not folder.exists()


def test_a_damaged_record_is_not_replaced(
    shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / ".workbench-course.json"
    record.write_text(json.dumps(["mine"]), encoding="ascii")

    assert main(["course", f"--student={tmp_path}"]) == 1

    assert f"{record} is damaged" in capsys.readouterr().err
    assert record.read_text(encoding="ascii") == '["mine"]'


def test_a_file_is_no_folder(shipped: Shipped, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()

    assert main(["course", f"--student={file}"]) == 1
    assert capsys.readouterr().err == f"{file} is a file: name a folder\n"

    assert main(["course", f"--student={file / 'student'}"]) == 1
    assert "cannot be read or written" in capsys.readouterr().err


def test_without_a_folder_the_command_says_what_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["course"]) == 2
    assert "--student DIR, --instructor DIR, or both" in capsys.readouterr().err


def test_without_nbformat_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["course", f"--student={tmp_path}"]) == 1
    assert re.match("nbformat is missing, .* install.* nbformat", capsys.readouterr().err)


def test_an_installation_without_labs_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(course, "shipped_notebooks", lambda: None)

    assert main(["course", f"--student={tmp_path}"]) == 1
    assert "reinstall" in capsys.readouterr().err
