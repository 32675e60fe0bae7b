"""nbgrader itself makes the students' version of the course, and grades what comes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.notebooks import test_collectives, test_course
from tests.notebooks.executed import ROOT, stored
from workbench.cli.lab_versions import for_students

pytestmark = [pytest.mark.installs, pytest.mark.timeout(900)]

NAMES = sorted(test_course.EXERCISES)
PLAUSIBLE = test_course.PLAUSIBLE | {test_collectives.NAME: test_collectives.PLAUSIBLE}
GRADES = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as gradebook:
    graded = gradebook.find_submission("course", sys.argv[1]).notebooks
    print(json.dumps({one.name + ".ipynb": [one.score, one.max_score] for one in graded}))
"""


class Course:
    """A folder of nbgrader with the notebooks of the repository as its only assignment, and nbgrader to run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "environment" / "bin"

    def install(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", self.programs.parent], check=True, timeout=300)
        self.run("pip", "install", "-c", str(ROOT / "constraints.txt"), "nbgrader")
        (packages,) = self.programs.parent.glob("lib/python*/site-packages")
        # Gives its kernels the packages of the tests.
        paths = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
        (packages / "tested.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")

    def run(self, program: str, *arguments: str) -> str:
        """Runs a program of its environment; what it printed.

        Raises:
          AssertionError: if it fails.
        """
        keep = {"PATH": f"{self.programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(self.folder)}
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.folder,
            env=keep | {"WORKBENCH_RUNTIME_DIR": os.environ["WORKBENCH_RUNTIME_DIR"]},
            capture_output=True,
            text=True,
            timeout=800,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def points(self, student: str) -> dict[str, tuple[float, float]]:
        """Autogrades what a student has handed in; points and the most that there are, by notebook."""
        self.run("nbgrader", "autograde", "course", "--create", "--student", student)
        grades = json.loads(self.run("python", "-c", GRADES, student))
        return {name: (got, most) for name, (got, most) in grades.items()}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    course = Course(tmp_path_factory.mktemp("nbgrader"))
    try:
        course.install()
        for student, answers in {"source": {}, "right": {}, "wrong": PLAUSIBLE}.items():
            folder = course.folder / ("source" if student == "source" else f"submitted/{student}") / "course"
            folder.mkdir(parents=True)
            for name in NAMES:
                notebook = stored(name)
                for cell in notebook.cells:
                    right, wrong = answers.get(name, {}).get(cell.id, ("", ""))
                    cell.source = cell.source.replace(right, wrong) if right else cell.source
                nbformat.write(notebook, folder / name)
        config = "c = get_config()\nc.ExecutePreprocessor.timeout = 120\n"
        (course.folder / "nbgrader_config.py").write_text(config, encoding="ascii")
        course.run("nbgrader", "generate_assignment", "course", "--create")
        yield course
    finally:
        shutil.rmtree(course.folder)  # half a GB, which pytest would otherwise keep for three more runs


def test_the_students_version_has_no_solution(course: Course) -> None:
    for name in NAMES:
        cells = nbformat.read(course.folder / "release" / "course" / name, as_version=4).cells
        assert [cell.id for cell in cells if "SOLUTION" in cell.source] == []
        stubs = [cell.id for cell in cells if "raise NotImplementedError()" in cell.source]
        assert stubs == test_course.EXERCISES[name]


def test_the_command_makes_the_same_version(course: Course) -> None:
    for name in NAMES:
        released = nbformat.read(course.folder / "release" / "course" / name, as_version=4)
        ours = for_students(stored(name))
        assert [cell.source for cell in ours.cells] == [cell.source for cell in released.cells]
        for cell, other in zip(ours.cells, released.cells, strict=True):
            assert [cell.metadata.get(lock) for lock in ("editable", "deletable")] == [
                other.metadata.get(lock) for lock in ("editable", "deletable")
            ]


def test_right_answers_get_all_points(course: Course) -> None:
    points = course.points("right")

    assert sorted(points) == NAMES
    assert {name for name, (got, most) in points.items() if got < most or not most} == set()


@pytest.mark.parametrize("student", ["nobody", "wrong"])
def test_no_answers_and_wrong_answers_get_none(course: Course, student: str) -> None:
    if student == "nobody":
        shutil.copytree(
            course.folder / "release" / "course", course.folder / "submitted" / student / "course"
        )
    points = course.points(student)

    assert sorted(points) == NAMES
    assert {name: got for name, (got, _) in points.items() if got} == {}
