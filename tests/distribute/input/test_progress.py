"""Waits for input are compared with the time in which the notebook asked for it or ran steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.distribute.input import progress
from workbench.distribute.input.progress import ProgressLog


class Notebook:
    """A notebook, its clock, and the replicas of one strategy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.cell = 1
        self.group: Any = SimpleNamespace(
            idle_since_ns=0, at_steps=lambda: [0, 0], gang=SimpleNamespace(run_id="r"), name="g"
        )
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(progress, "running_cell", lambda: self.cell)
        self.log = ProgressLog(0, 2, 0, elements=9)

    def fetch(self, number: int, seconds: float) -> None:
        self.log.ask(self.group)
        self.now += seconds
        self.log.wait([int(seconds * 1e9)] * 2, number, first=number, count=1)
        self.log.give(number, number)

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.group.idle_since_ns = int(self.now * 1e9)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return Notebook(monkeypatch)


def test_a_pause_between_cells_is_left_out(notebook: Notebook) -> None:
    for number in range(3):  # one step per cell
        notebook.fetch(number, 1.0)
        notebook.run(3.0)
        notebook.cell += 1
        notebook.now += 600.0
    now = notebook.log.now(notebook.group)

    assert now.elapsed_seconds == pytest.approx(9.0)  # to the third element
    assert now.waited_share(1) == pytest.approx(3 / 9)
    assert [wait.passed_us for wait in now.waits] == pytest.approx([1_000_000, 4_000_000, 4_000_000])


def test_a_pause_before_the_first_step_is_left_out(notebook: Notebook) -> None:
    notebook.fetch(0, 1.0)
    notebook.cell += 1
    notebook.now += 600.0
    notebook.fetch(1, 1.0)

    assert notebook.log.now(notebook.group).elapsed_seconds == pytest.approx(2.0)


def test_steps_that_still_run_are_no_pause(notebook: Notebook) -> None:
    notebook.fetch(0, 1.0)
    notebook.group.idle_since_ns = None
    notebook.cell += 1
    notebook.now += 3.0
    notebook.fetch(1, 1.0)

    assert notebook.log.now(notebook.group).elapsed_seconds == pytest.approx(5.0)


def test_what_a_cell_does_between_its_steps_is_no_pause(notebook: Notebook) -> None:
    notebook.fetch(0, 1.0)
    notebook.run(1.0)
    notebook.now += 8.0
    notebook.fetch(1, 1.0)

    assert notebook.log.now(notebook.group).elapsed_seconds == pytest.approx(11.0)
