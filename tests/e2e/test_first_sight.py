"""What people see first: the overview opens beside the notebook, follows the run, and leads to what explains it.

With `WORKBENCH_FILM` in the environment, a stranger's first ten minutes are kept as screenshots in the folder it names.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import workbench as wb
from tests.chromium import why_not
from tests.e2e.conftest import (
    NOTEBOOK_IS_READY,
    ROOT,
    Lab,
    command,
    drag,
    expect,
    open_notebook,
    page_of,
    serving,
)
from tests.notebooks.executed import stored
from workbench.cli.lab_versions import for_students

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELL = """
import time
import numpy as np, workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
def step():
    replica = wb.distribute.get_replica_context()
    if replica.replica_id_in_sync_group == 1:
        time.sleep(0.03)
    replica.all_reduce("sum", np.ones(64, np.float32))
for _ in range(40):
    strategy.run(step)
"""


@pytest.fixture(scope="module")
def untouched(built: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab in which nobody has set anything."""
    if why := why_not():
        pytest.skip(why)
    with serving(tmp_path_factory.mktemp("lab"), built.LAB_BUNDLE, panes={}) as lab:
        yield lab


def test_the_overview_opens_first_and_leads_to_the_pane_that_explains_it(
    untouched: Lab, context: Any
) -> None:
    with page_of(untouched, context, "first_sight") as page:
        page.set_viewport_size({"width": 1500, "height": 900})
        open_notebook(page, untouched, untouched.notebook("first.ipynb", CELL))
        command(page, "notebook:run-all-cells")
        shown = page.locator(".wb-pane .wb-overview")
        expect(page.locator(".wb-pane")).to_have_count(1)
        expect(shown.locator(".wb-verdict")).to_contain_text("Replica 1 makes everyone wait")
        expect(shown.locator(".wb-figure").first).to_contain_text("Steps per second")
        hint = shown.get_by_role("note", name="First steps")
        expect(hint).to_contain_text("The panel “Workbench” at the left lists all other views.")
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            command(page, "apputils:change-theme", theme=theme)
            light = str(theme == "JupyterLab Light").lower()
            page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
            expect(shown).to_have_attribute("data-tone", "light" if light == "true" else "dark")
            page.wait_for_selector("#jupyterlab-splash", state="detached")
            page.screenshot(path=f"artifacts/first_sight_{shown.get_attribute('data-tone')}.png")

        shown.get_by_role("button", name="Show the").click()
        expect(page.locator("#workbench-pane-heat_map")).to_be_visible()

        command(page, "workbench:open-pane", view="overview")
        expect(hint).to_have_count(0)  # a user who has opened another view knows how
        strip = shown.locator(".wb-module-lanes .wb-chart")
        drag(page, strip.locator("canvas"), 0.5, 0.75)
        button = shown.locator(".wb-brushed")
        expect(button).to_have_text(re.compile(r"^steps? \d+( to \d+)? ×$"))
        steps = button.inner_text()
        (first, *_, last) = 2 * re.findall(r"\d+", steps)
        expect(strip).to_have_attribute("aria-label", f"What 2 replicas did in steps {first} to {last}")
        expect(shown.get_by_role("group", name=f"Figures of {steps[:-2]}", exact=True)).to_be_visible()
        page.screenshot(path="artifacts/first_sight_steps.png")
        for view in ("heat_map", "devices", "log"):
            command(page, "workbench:open-pane", view=view)
            expect(page.locator(f"#workbench-pane-{view} .wb-brushed")).to_have_text(steps)
        command(page, "workbench:open-pane", view="devices")
        page.screenshot(path="artifacts/first_sight_steps_of_devices.png")
        command(page, "workbench:open-pane", view="overview")
        strip.press("Escape")
        expect(button).to_have_count(0)
        command(page, "workbench:open-pane", view="devices")
        expect(page.locator("#workbench-pane-devices .wb-brushed")).to_have_count(0)


@pytest.fixture
def scene() -> Callable[[Any, str], None]:
    """Takes a screenshot of a page, if a film is wanted; the scenes are numbered."""
    folder, numbers = os.environ.get("WORKBENCH_FILM"), itertools.count(1)

    def take(page: Any, name: str) -> None:
        if folder:
            page.screenshot(path=Path(folder) / f"{next(numbers):02}_{name}.png")

    return take


@pytest.mark.timeout(300)  # two notebooks, in the order of a user
def test_a_strangers_first_ten_minutes(
    untouched: Lab, context: Any, scene: Callable[[Any, str], None]
) -> None:
    quickstart, sharding = "01_quickstart.ipynb", "02_data_sharding.ipynb"
    shutil.copy(ROOT / "notebooks" / quickstart, untouched.root)
    lab = for_students(stored(sharding))
    (untouched.root / sharding).write_text(json.dumps(lab), encoding="utf-8")
    place = {cell.id: index for index, cell in enumerate(lab.cells)}
    with page_of(untouched, context, "first_ten_minutes") as page:
        page.set_viewport_size({"width": 1500, "height": 900})
        open_notebook(page, untouched, quickstart)
        scene(page, "the_quickstart_is_open")
        command(page, "notebook:run-all-cells")
        expect(page.locator(".wb-pane .wb-overview .wb-figure").first).to_contain_text("Steps per second")
        scene(page, "it_trains_beside_the_overview")
        overview = page.locator(".wb-pane .wb-overview")
        expect(overview.locator(".wb-verdict")).to_contain_text("%")  # waited, or starved, or late
        page.wait_for_function(NOTEBOOK_IS_READY)  # it has run to its end
        scene(page, "the_overview_says_what_happened")
        overview.get_by_role("button", name="Time waited").click()
        expect(page.locator("#workbench-pane-heat_map .wb-heat-map")).to_contain_text("on time")
        scene(page, "a_click_explains_the_time_waited")

        open_notebook(page, untouched, sharding)
        command(page, "notebook:run-all-cells")
        exercise = cell_at(page, place["batch-size"])
        expect(exercise.locator(".jp-OutputArea-output")).to_contain_text("NotImplementedError")
        scene(page, "the_exercise_waits_for_an_answer")
        question = cell_at(page, place["exercise-batch"])
        question.locator("summary").click()
        expect(question.locator("details")).to_contain_text("a divisor of 1440")
        expect(question.locator("details p").first).to_be_visible()
        scene(page, "a_hint_helps")
        exercise = cell_at(page, place["batch-size"])
        exercise.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        asked = "raise NotImplementedError()"
        page.keyboard.insert_text(lab.cells[place["batch-size"]].source.replace(asked, "batch_size = 120"))
        page.keyboard.press("Shift+Enter")
        expect(exercise.locator(".wb-dataset-sharding")).to_contain_text("1,440")
        page.keyboard.press("Shift+Enter")
        command(page, "notebook:insert-cell-below")
        page.keyboard.press("Enter")
        page.keyboard.insert_text("wb.testing.progress()")
        page.keyboard.press("Shift+Enter")
        expect(page.locator(".jp-Notebook")).to_contain_text("1 of 7 done")
        scene(page, "the_exercise_is_solved")


def cell_at(page: Any, index: int) -> Any:
    """A cell of the notebook in front, brought into sight: JupyterLab draws only those."""
    page.evaluate(
        "(index) => window.jupyterapp.shell.currentWidget.content.scrollToItem(index, 'center')", index
    )
    return page.locator(f".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell[data-windowed-list-index='{index}']")


def test_before_there_is_a_run_every_pane_inserts_the_line_that_begins_one(
    untouched: Lab, context: Any
) -> None:
    with page_of(untouched, context, "nothing_yet") as page:
        open_notebook(page, untouched, untouched.notebook("empty.ipynb", ""))
        command(page, "workbench:open-pane", view="overview")
        shown = page.locator(".wb-pane .wb-overview")
        expect(shown).to_contain_text("Nothing is running yet")
        shown.get_by_role("button", name="Insert this line").click()
        expect(page.locator(".jp-Notebook .jp-Cell").nth(1)).to_contain_text("wb.connect(replicas=4)")
        command(page, "workbench:open-pane", view="lanes")
        expect(page.locator(".wb-pane .wb-lanes")).to_contain_text("Nothing is running yet")
        command(page, "workbench:open-pane", view="values")
        shown = page.locator(".wb-pane .wb-values")
        shown.get_by_role("button", name="Insert this line").click()
        expect(page.locator(".jp-Notebook .jp-Cell").nth(2)).to_contain_text("wb.connect(replicas=4)")
        page.screenshot(path="artifacts/nothing_runs_yet.png")


def test_the_line_that_begins_a_run_can_be_copied_from_a_page_without_tls(
    untouched: Lab, context: Any
) -> None:
    context.grant_permissions(["clipboard-read"])
    with page_of(untouched, context, "copied") as page:
        # As browsers treat http://192.0.2.1, for example: 127.0.0.1 counts as secure.
        page.add_init_script(
            "window.clipboardOfTest = navigator.clipboard;"
            "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
        )
        open_notebook(page, untouched, untouched.notebook("copied.ipynb", ""))
        command(page, "workbench:open-pane", view="overview")
        page.locator(".wb-pane .wb-overview").get_by_role("button", name="Copy").click()
        copied = page.evaluate("clipboardOfTest.readText()")

    assert copied == "cluster = wb.connect(replicas=4)"


def test_it_is_the_first_page_of_a_dashboard_and_opens_the_others(browser: Any) -> None:
    with wb.connect(replicas=2, processes=False) as cluster:
        names: dict[str, Any] = {}
        exec(CELL.replace("cluster = wb.connect(replicas=2, processes=False)", ""), names)
        page = browser.new_context(viewport={"width": 1500, "height": 900}).new_page()
        with wb.dashboard(cluster) as dashboard:
            page.goto(dashboard.url)
            expect(page.locator(".wb-overview .wb-verdict")).to_contain_text("Replica 1 makes everyone wait")
            hint = page.get_by_role("note", name="First steps")
            expect(hint).to_contain_text("The tabs above have the other views.")
            page.screenshot(path="artifacts/first_sight_dashboard.png")
            page.locator(".wb-overview").get_by_role("button", name="Show the").click()
            expect(page.locator(".wb-heat-map")).to_be_visible()
            expect(page.get_by_role("tab", name="Timing")).to_have_attribute("aria-selected", "true")
            page.reload()
            expect(page.locator(".wb-overview .wb-figure").first).to_contain_text("Steps per second")
            expect(hint).to_have_count(0)
        page.context.close()
