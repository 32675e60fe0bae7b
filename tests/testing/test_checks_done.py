"""Checks of a lab that pass count: in its file's order, as they are now, and for this notebook alone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import workbench as wb
from workbench.errors import InvalidArgumentError
from workbench.testing.checks_done import keep_if_passed

ROOT = Path(__file__).parents[2]


def check(name: str, source: str, **form: Any) -> nbformat.NotebookNode:
    return new_code_cell(
        source, id=f"{name}-check", metadata={"nbgrader": {"grade": True, "points": 1, **form}}
    )


LAB = new_notebook(
    cells=[
        new_markdown_cell("# A lab", id="title"),
        new_code_cell("import workbench as wb\nanswer = 42", id="setup"),
        check("first", "assert answer == 42"),
        check("second", "assert answer == 43"),
        check("third", "assert answer > 0\nprint('right')"),
        new_code_cell("print(wb.testing.progress())\nwb.testing.progress()", id="progress"),
    ]
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab that Jupyter's server says this process runs."""
    path = tmp_path / "01_lab.ipynb"
    nbformat.write(LAB, path)
    monkeypatch.setenv("WORKBENCH_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


def ran(cell: str | None, source: str = "", *, success: bool = True) -> SimpleNamespace:
    """IPython's record of a cell."""
    return SimpleNamespace(info=SimpleNamespace(cell_id=cell, raw_cell=source), success=success)


class WithCellIds(NotebookClient):
    """Sends the ids of cells, as JupyterLab does."""

    async def async_execute_cell(self, cell: Any, *rest: Any, **options: Any) -> Any:
        self.kc.session.metadata = {"cellId": cell.id}
        return await super().async_execute_cell(cell, *rest, **options)


def test_checks_that_pass_in_a_kernel_count(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    notebook = nbformat.read(lab, as_version=4)
    client = WithCellIds(
        notebook, timeout=100, allow_errors=True, resources={"metadata": {"path": str(lab.parent)}}
    )
    asyncio.run(client.async_execute())  # its `execute` would leave an event loop open

    text, drawn = notebook.cells[-1].outputs
    assert text.text == "01_lab.ipynb: 2 of 3 done. To do: second\n"
    assert drawn.data["text/plain"] == text.text.strip()
    assert '<progress max="3" value="2" aria-label="2 of 3 done">' in drawn.data["text/html"]
    assert wb.testing.progress() == wb.testing.progress(lab)


def test_at_the_beginning_everything_is_to_do(lab: Path) -> None:
    assert wb.testing.progress(lab) == wb.testing.Progress("01_lab.ipynb", (), ("first", "second", "third"))


def test_a_check_counts_once_and_in_the_notebooks_order(lab: Path) -> None:
    for name in (4, 2, 4):
        keep_if_passed(ran(LAB.cells[name].id, LAB.cells[name].source))

    assert wb.testing.progress().done == ("first", "third")


@pytest.mark.parametrize(
    "result",
    [
        ran("first-check", "assert answer == 42", success=False),
        ran("first-check", "assert True  # easier"),
        ran("fourth-check", "assert answer == 42"),
        ran("setup", "import workbench as wb\nanswer = 42"),
        ran(None, "assert answer == 42"),
    ],
    ids=["failed", "edited", "unknown", "no check", "no id"],
)
def test_other_cells_do_not_count(result: SimpleNamespace, lab: Path) -> None:
    keep_if_passed(result)

    assert wb.testing.progress().done == ()


def test_a_check_that_is_edited_later_has_to_pass_again(lab: Path) -> None:
    keep_if_passed(ran("first-check", "assert answer == 42"))
    lab.write_text(lab.read_text(encoding="utf-8").replace("answer == 42", "answer == 44"), encoding="utf-8")

    assert wb.testing.progress().to_do == ("first", "second", "third")


def test_each_notebook_has_progress_of_its_own(lab: Path) -> None:
    other = lab.with_name("02_lab.ipynb")
    other.write_bytes(lab.read_bytes())
    keep_if_passed(ran("first-check", "assert answer == 42"))

    assert wb.testing.progress(other).done == ()
    assert wb.testing.progress(lab).done == ("first",)


def test_all_done_says_so(lab: Path) -> None:
    for cell in LAB.cells[2:5]:
        keep_if_passed(ran(cell.id, cell.source))

    assert str(wb.testing.progress()) == "01_lab.ipynb: 3 of 3 done. All checks have passed."


def test_names_are_text_in_html() -> None:
    drawn = wb.testing.Progress("<b>.ipynb", ("<i>",), ())._repr_html_()

    assert "&lt;b&gt;.ipynb" in drawn
    assert "✓ &lt;i&gt;" in drawn


KERNEL = """
import sys
from types import SimpleNamespace
from workbench.testing.checks_done import keep_if_passed
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    info = SimpleNamespace(cell_id=f"{sys.argv[1]}{number}-check", raw_cell="")
    keep_if_passed(SimpleNamespace(info=info, success=True))
"""


def test_kernels_of_one_notebook_lose_no_check_to_each_other(lab: Path) -> None:
    names = [f"{kernel}{number}" for kernel in "ab" for number in range(200)]
    nbformat.write(new_notebook(cells=[check(name, "") for name in names]), lab)
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", KERNEL, kernel],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
        for kernel in "ab"
    ]
    try:
        for kernel in kernels:
            assert kernel.stdout is not None
            assert kernel.stdout.readline() == "ready\n"
        for kernel in kernels:
            assert kernel.stdin is not None
            kernel.stdin.write("go\n")
            kernel.stdin.flush()
        assert [kernel.wait(timeout=100) for kernel in kernels] == [0, 0]
    finally:
        for kernel in kernels:
            kernel.kill()
            kernel.communicate()

    assert wb.testing.progress() == wb.testing.Progress(lab.name, tuple(names), ())


def test_by_default_progress_is_beside_the_running_clusters(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKBENCH_RUNTIME_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    keep_if_passed(ran("first-check", "assert answer == 42"))

    assert len([*(tmp_path / "data" / "workbench" / "runtime" / "progress").glob("*.json")]) == 1


def damaged(folder: Path) -> None:
    (record,) = (folder / "progress").glob("*.json")
    record.write_text("[", encoding="ascii")


def of_another_program(folder: Path) -> None:
    (record,) = (folder / "progress").glob("*.json")
    record.write_text(json.dumps({"passed": ["first-check"]}), encoding="ascii")


@pytest.mark.parametrize("spoil", [damaged, of_another_program])
def test_a_record_that_cannot_be_read_begins_anew(
    spoil: Callable[[Path], None], lab: Path, tmp_path: Path
) -> None:
    keep_if_passed(ran("first-check", "assert answer == 42"))
    spoil(tmp_path / "runtime")
    assert wb.testing.progress().done == ()

    keep_if_passed(ran("first-check", "assert answer == 42"))
    assert wb.testing.progress().done == ("first",)


def test_a_folder_that_cannot_be_written_does_not_disturb_the_lab(lab: Path, tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("a file", encoding="ascii")

    keep_if_passed(ran("first-check", "assert answer == 42"))

    assert wb.testing.progress().done == ()


def test_outside_of_jupyter_the_notebook_has_to_be_named(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    keep_if_passed(ran("first-check", "assert answer == 42"))

    with pytest.raises(InvalidArgumentError, match=r"name its file: wb\.testing\.progress\("):
        wb.testing.progress()
    assert wb.testing.progress(lab).done == ()


@pytest.mark.parametrize("content", [None, "[]", "{", '{"cells": [1]}'])
def test_a_file_that_is_no_notebook_is_named(content: str | None, lab: Path) -> None:
    other = lab.with_name("other.ipynb")
    if content is not None:
        other.write_text(content, encoding="ascii")

    with pytest.raises(InvalidArgumentError, match=r"other\.ipynb cannot be read as a notebook"):
        wb.testing.progress(other)
