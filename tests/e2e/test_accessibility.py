"""The rules of accessibility (axe-core), light and dark: panes and panel of JupyterLab, all tabs of dashboards."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import workbench as wb
from tests.e2e.conftest import Lab, command, expect, open_notebook, page_of
from workbench.server.channels import CHANNEL_OF

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELL = """
import numpy as np, workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
with strategy.scope():
    w = wb.Variable(np.zeros((8, 8), np.float32), name="w")
def step(size):
    print("step", size)
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(size, np.float32))
    return np.full(3, np.nan, np.float32)
with wb.record("runs/looked.parquet"):
    for size in (64, 1024, 1 << 18, 1 << 20):
        for _ in range(5):
            loss = strategy.run(step, args=(size,))
    wb.explain_sharding(wb.data.Dataset.range(10).batch(4), strategy).counts
    wb.explain_sharding(w)
    wb.data.Dataset.range(100).map(lambda x: x).batch(4).prefetch(2).explain(seconds=0.2)
    service = wb.data.service.start(workers=1)
    list(wb.data.Dataset.range(100).apply(wb.data.service.distribute("distributed_epoch", service.address, "job")))
    served = wb.distribute.ParameterServerStrategy(servers=1)
    with served.scope():
        table = wb.Variable(np.zeros((64, 4), np.float32), name="table")
    coordinator = wb.distribute.coordinator.ClusterCoordinator(served)
    coordinator.schedule(lambda: table.assign_add(np.ones((64, 4), np.float32)))
    coordinator.join()
    wb.inspect(loss)
try:
    strategy.run(lambda: 1 / wb.distribute.get_replica_context().replica_id_in_sync_group)
except ZeroDivisionError:
    print("recorded")
"""
VIEWS = (*CHANNEL_OF, "runs")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
AXE = """async (places) => {
  const options = { rules: { region: { enabled: false } } };
  const found = await axe.run({ include: places.map((place) => [place]) }, options);
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.fixture(scope="module")
def axe(built: ModuleType) -> str:
    """Its source."""
    return (built.EXTENSION / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def looked(lab: Lab, context: Any) -> Iterator[Any]:
    """A page in which a cell has run that gives every view something to draw."""
    with page_of(lab, context, "accessibility") as page:
        open_notebook(page, lab, lab.notebook("looked.ipynb", CELL))
        command(page, "notebook:run-all-cells")
        expect(page.locator(".jp-OutputArea-output").last).to_contain_text("recorded")
        command(page, "workbench:show-panel")
        page.set_viewport_size({"width": 1600, "height": 1000})
        yield page


def wrong(page: Any, axe: str, *places: str) -> list[str]:
    """What axe-core has to say about parts of a page."""
    page.evaluate(axe)
    found: list[str] = page.evaluate(AXE, list(places))
    return found


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_every_pane_and_the_panel_can_be_read_by_everybody(looked: Any, axe: str, theme: str) -> None:
    command(looked, "apputils:change-theme", theme=THEMES[theme])
    light = str(theme == "light").lower()
    looked.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
    looked.wait_for_selector("#jupyterlab-splash", state="detached")
    for view in VIEWS:
        command(looked, "workbench:open-pane", view=view)
        pane = looked.locator(".wb-pane:visible").filter(has=looked.locator(f".wb-{view.replace('_', '-')}"))
        expect(pane).to_have_count(1)
        expect(pane).to_contain_text(re.compile(r"\w{3}"))
        assert wrong(looked, axe, ".wb-pane:not(.lm-mod-hidden)") == [], view
        for button in pane.get_by_role("button", name="Table", exact=True).all():
            button.click()
            assert wrong(looked, axe, ".wb-pane:not(.lm-mod-hidden)") == [], f"the table of {view}"
            button.click()
        if view == "collectives":
            for tab in pane.get_by_role("tab").all():
                tab.click()
                assert wrong(looked, axe, ".wb-pane:not(.lm-mod-hidden)") == [], tab.inner_text()
    assert wrong(looked, axe, "#workbench-panel", ".wb-status-item") == []
    looked.screenshot(path=f"artifacts/accessibility_{theme}.png")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A job in this process that has done the same, and the folder with the run that it has recorded."""
    folder = tmp_path_factory.mktemp("job")
    with contextlib.chdir(folder):
        names: dict[str, Any] = {}
        exec(CELL, names)
    yield folder / "runs"
    names["cluster"].close()


@pytest.mark.parametrize(
    ("what", "scheme"),
    [
        ("job", "light"),
        ("folder", "light"),
        ("run", "dark"),
        pytest.param("job", "dark", marks=pytest.mark.thorough),
        pytest.param("folder", "dark", marks=pytest.mark.thorough),
        pytest.param("run", "light", marks=pytest.mark.thorough),
    ],
)
def test_every_tab_of_a_dashboard_can_be_read_by_everybody(
    browser: Any, axe: str, job: Path, what: str, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    shown = {"job": (), "folder": (job,), "run": (job / "looked.parquet",)}[what]
    with wb.dashboard(*shown) as dashboard:
        page.goto(dashboard.url)
        expect(page.locator(".wb").first).to_contain_text(re.compile(r"\w{3}"))
        expect(page.get_by_role("tab").nth(1)).to_be_visible()
        seen = []
        for tabs in range(2):  # those of the page and those of a view in it
            if page.get_by_role("tablist").count() <= tabs:
                break
            for tab in page.get_by_role("tablist").nth(tabs).get_by_role("tab").all():
                tab.click()
                expect(tab).to_have_attribute("aria-selected", "true")
                seen.append(tab.inner_text())
                assert wrong(page, axe, "body") == [], seen[-1]
        assert len(seen) >= 2
        context.close()
