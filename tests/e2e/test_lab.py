"""JupyterLab: panes fill by themselves, follow the theme, survive reload and kernel restart; everything by keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import TIMING_FIRST, Lab, command, expect, open_notebook, page_of, wait_for_notebook
from tests.e2e.test_lab_layouts import run_palette
from workbench.cli import guide_site

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELL = """
import numpy as np, workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
def step(x):
    return wb.distribute.get_replica_context().all_reduce("sum", x)
for _ in range(5):
    strategy.run(step, args=(np.ones(1024, np.float32),))
"""
SETTINGS = "/lab/api/settings/workbench-lab:plugin"
# The settings page reports a change a moment after it was made.
FOLLOWS_NEWEST = """async () => {
  const pane = await window.jupyterapp.commands.execute('workbench:open-pane', { view: 'lanes' });
  const { cluster } = pane.args;
  if (cluster !== 'newest') pane.dispose();
  return cluster === 'newest';
}"""
CONNECT_CODE = "wb.connect(replicas=2)"


def run_one_cell(page: Any, lab: Lab) -> Any:
    """Runs one cell in a new page, and does nothing else there."""
    open_notebook(page, lab, lab.notebook("one_cell.ipynb", CELL))
    command(page, "notebook:run-all-cells")
    expect(page.locator(".wb-collectives")).to_contain_text("all_reduce")
    return page


@pytest.fixture(scope="class")
def shared(lab: Lab, context: Any) -> Iterator[Any]:
    """A page of a class of tests in which one cell was run."""
    with page_of(lab, context, "one_cell") as page:
        yield run_one_cell(page, lab)


class TestOneCell:
    """What a page shows in which one cell was run; none of these ends its cluster, so they share it, in this order."""

    def test_panes_fill_after_one_cell_with_no_click(self, shared: Any) -> None:
        expect(shared.locator(".wb-pane")).to_have_count(2)
        expect(shared.locator(".wb-status-item")).to_contain_text(re.compile(r"2/2 replicas • .*B/s • 0 NaN"))
        shared.screenshot(path="artifacts/lab_light.png")

    def test_the_dark_theme_flips_every_pane(self, shared: Any) -> None:
        def ground() -> str:
            return str(
                shared.locator(".wb-collectives").evaluate("(node) => getComputedStyle(node).backgroundColor")
            )

        light = ground()
        command(shared, "apputils:change-theme", theme="JupyterLab Dark")
        shared.wait_for_selector("body[data-jp-theme-light='false']", state="attached")
        shared.wait_for_function(
            "(light) => getComputedStyle(document.querySelector('.wb-collectives')).backgroundColor !== light",
            arg=light,
        )
        shared.wait_for_selector("#jupyterlab-splash", state="detached")
        shared.screenshot(path="artifacts/lab_dark.png")
        command(shared, "apputils:change-theme", theme="JupyterLab Light")
        shared.wait_for_function(
            "(light) => getComputedStyle(document.querySelector('.wb-collectives')).backgroundColor === light",
            arg=light,
        )

    def test_code_is_dragged_into_the_notebook(self, shared: Any) -> None:
        command(shared, "workbench:show-panel")
        live = shared.locator("#workbench-panel .wb-cluster").filter(has=shared.locator(".wb-status-live"))
        connecting = shared.locator(".jp-Notebook .jp-Cell", has_text=CONNECT_CODE)
        before = connecting.count()
        live.drag_to(shared.locator(".jp-Notebook .jp-Cell").first)

        expect(connecting).to_have_count(before + 1)

    def test_everything_is_reached_by_keys_alone(self, shared: Any) -> None:
        keyboard = shared.keyboard
        keyboard.press("Control+Shift+C")
        shared.wait_for_selector(".lm-CommandPalette-input:focus")
        keyboard.type("open pane collective timing")
        shared.wait_for_selector(".lm-CommandPalette-item.lm-mod-active >> text=Collective timing")
        keyboard.press("Enter")
        table = shared.locator(".wb-collective-table")
        expect(table).to_contain_text("all_reduce")
        shared.wait_for_selector(".wb-collective-table [role='grid'] :focus, .wb-pane :focus")

        cell = table.locator("td[tabindex='0'], th[tabindex='0']").first
        cell.focus()
        keyboard.press("ArrowDown")
        seen = []
        for _ in range(6):
            seen.append(shared.evaluate("() => document.activeElement.textContent"))
            keyboard.press("ArrowRight")
        assert "all_reduce" in seen
        assert len(set(seen)) > 3

        keyboard.press("Alt+p")
        shared.wait_for_selector("#workbench-panel :focus")

    def test_context_menus_offer_what_can_be_done(self, shared: Any) -> None:
        shared.locator(".wb-pane:visible").first.click(button="right", position={"x": 200, "y": 60})
        menu = shared.locator(".lm-Menu")
        expect(menu).to_contain_text("Show the next cluster beside this one")
        expect(menu).to_contain_text("Follow the newest cluster")
        shared.keyboard.press("Escape")

        command(shared, "workbench:show-panel")
        shared.locator(".wb-cluster").filter(has=shared.locator(".wb-status-live")).click(button="right")
        connecting = shared.locator(".jp-Notebook .jp-Cell", has_text=CONNECT_CODE)
        before = connecting.count()
        menu.get_by_text("Insert the code that connects to a cluster").click()
        expect(connecting).to_have_count(before + 1)

    def test_commands_do_what_the_view_in_front_can(self, shared: Any) -> None:
        command(shared, "workbench:open-pane", view="overview")
        overview = shared.locator(".wb-pane .wb-overview")
        expect(overview.locator(".wb-verdict").first).to_be_visible()
        run_palette(shared, "Pause the view")
        expect(overview.get_by_role("button", name="Go on")).to_be_visible()
        shared.keyboard.press("Alt+g")
        expect(overview.get_by_role("button", name="Pause")).to_be_visible()
        shared.keyboard.press("Alt+t")
        expect(overview.locator("canvas")).to_have_count(0)
        shared.keyboard.press("Alt+t")
        overview.locator(".wb-chart").first.press("t")
        expect(overview.locator("canvas")).to_have_count(0)
        run_palette(shared, "Export the view")
        shared.wait_for_selector("[role=menuitem]:focus")
        shared.keyboard.press("Escape")

        shared.context.grant_permissions(["clipboard-read"])
        shared.keyboard.press("Alt+y")
        shared.wait_for_function(
            "async () => await navigator.clipboard.readText() === 'import workbench as wb\\n\\nwb.overview()'"
        )
        shared.locator(".wb-pane:visible").last.click(button="right", position={"x": 200, "y": 60})
        menu = shared.locator(".lm-Menu")
        expect(menu.locator(".lm-Menu-item:not(.lm-mod-disabled)", has_text="Show as table")).to_be_visible()
        expect(menu.locator(".lm-mod-disabled", has_text="Take as baseline")).to_be_visible()
        shared.keyboard.press("Escape")

    def test_a_right_click_in_a_chart_pins_the_step_there_or_copies_what_is_said(self, shared: Any) -> None:
        shared.context.grant_permissions(["clipboard-read"])
        item = shared.locator(".lm-Menu-item")
        pins, copies = (
            item.filter(has_text=name) for name in ("Pin the step", "Copy what the chart says here")
        )
        command(shared, "workbench:open-pane", view="heat_map")
        chart = shared.locator(".wb-pane:visible .wb-heat-map .wb-chart").first
        expect(chart).to_be_visible()
        box = chart.bounding_box()

        def ask(x: float) -> None:
            shared.mouse.click(box["x"] + x, box["y"] + 30, button="right")
            expect(pins).to_be_visible()

        ask(3)  # on the name of a row, which is not a point of the chart
        expect(shared.locator(".lm-Menu-item.lm-mod-disabled", has_text="Pin the step")).to_be_visible()
        expect(shared.locator(".lm-Menu-item.lm-mod-disabled", has_text="Copy what")).to_be_visible()
        shared.keyboard.press("Escape")

        x = first_step(shared, chart, box)
        said = shared.locator(".wb-pane:visible .wb-heat-map .wb-chart + output").first.inner_text()
        ask(x)
        copies.click()
        shared.wait_for_function(
            "async (said) => await navigator.clipboard.readText() === said", arg=said.strip()
        )
        ask(x)
        pins.click()
        pinned = shared.locator(".wb-pane:visible .wb-heat-map .wb-brushed")
        expect(pinned).to_contain_text("step ")
        pinned.click()
        expect(pinned).to_have_count(0)

    def test_a_sweep_is_taken_as_baseline(self, shared: Any) -> None:
        shared.evaluate(
            """(code) => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
                 .sessionContext.session.kernel.requestExecute({ code }).done""",
            "for _ in range(5): strategy.run(step, args=(np.ones(1 << 14, np.float32),))",
        )
        command(shared, "workbench:open-pane", view="sweep")
        sweep = shared.locator(".wb-pane .wb-sweep")
        expect(sweep.locator(".wb-chart svg")).to_be_visible()
        # Keyboard users are on the button already.
        expect(shared.locator(".wb-pane:focus-within .wb-sweep")).to_be_visible()
        shared.keyboard.press("Alt+m")
        expect(sweep.locator(".wb-ghost")).to_be_visible()
        expect(sweep).to_contain_text("baseline: one_cell.ipynb, ")
        run_palette(shared, "Drop the baseline")
        expect(sweep.locator(".wb-ghost")).to_have_count(0)


def first_step(page: Any, chart: Any, box: Any) -> float:
    """Moves the pointer to the first place of a chart, from the left, that it says something of; returns how far in."""
    said = chart.locator("xpath=following-sibling::output[1]")
    for x in range(10, int(box["width"]), 10):
        page.mouse.move(box["x"] + x, box["y"] + 30)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if said.inner_text():
            return x
    raise AssertionError("the chart says nothing of any place")


@pytest.fixture
def running(page: Any, lab: Lab) -> Any:
    """A page of its own in which one cell was run."""
    return run_one_cell(page, lab)


def test_a_number_of_replicas_that_cannot_be_starts_nothing(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("nothing.ipynb", ""))
    command(page, "workbench:show-panel")
    panel = page.locator("#workbench-panel")
    field = panel.get_by_label("Replicas").first
    before = lab.request("GET", "/workbench/api/clusters")
    for number in ("", "0", "-1", "1.5", "257"):
        field.fill(number)
        panel.get_by_role("button", name="Start workers").click()
        assert field.evaluate("(field) => field.validationMessage") != ""
    for number in ("0", "-1", "257"):
        command(page, "workbench:start-workers")
        dialog = page.locator(".jp-Dialog")
        dialog.locator("input").fill(number)
        dialog.get_by_role("button", name="Ok").click()
        expect(dialog).to_contain_text("a whole number from 1 to 256")
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
    assert lab.request("GET", "/workbench/api/clusters") == before


def test_panes_come_back_after_a_reload_and_keep_their_history_after_a_restart(running: Any) -> None:
    with running.expect_response(lambda response: _keeps(response, "workbench-pane-lanes")):
        command(running, "workbench:open-pane", view="lanes")
    expect(running.locator(".wb-lanes")).to_be_visible()

    running.reload()
    wait_for_notebook(running)
    expect(running.locator(".wb-pane")).to_have_count(3)
    expect(running.locator(".wb-lanes")).to_be_visible()

    command(running, "workbench:open-pane", view="collectives")
    expect(running.locator(".wb-collectives")).to_contain_text("all_reduce")
    running.evaluate(
        """() => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
             .sessionContext.session.kernel.restart()"""
    )
    expect(running.locator(".wb-collectives")).to_contain_text("stopped")
    expect(running.locator(".wb-collectives")).to_contain_text("all_reduce")
    expect(running.locator(".wb-status-item")).to_contain_text("no cluster")
    expect(running.locator(".wb-status-item button")).to_have_attribute(
        "title", re.compile("the cluster of one_cell.ipynb has ended.* run its cells again")
    )

    wait_for_notebook(running)
    command(running, "notebook:run-all-cells")
    expect(running.locator(".wb-collectives")).to_contain_text("live")


def _keeps(response: Any, pane: str) -> bool:
    """Whether this is the server's answer to the layout with a pane in it."""
    if response.request.method != "PUT" or "/api/workspaces/" not in response.url:
        return False
    layout = json.loads(response.request.post_data)["data"].get("layout-restorer:data", {})
    return pane in json.dumps(layout.get("main"))


def test_the_panel_shows_the_cluster_and_inserts_its_code(running: Any) -> None:
    command(running, "workbench:show-panel")
    panel = running.locator("#workbench-panel")
    live = panel.locator(".wb-cluster").filter(has=running.locator(".wb-status-live"))
    expect(live).to_contain_text("2 of 2 replicas")
    expect(panel.get_by_role("region", name="Strategies")).to_contain_text("MirroredStrategy")
    assert live.bounding_box()["height"] <= 32  # one line, whatever its text

    id = live.get_attribute("data-id")
    live.get_by_role("button", name="Insert code").click()
    expect(running.locator(".jp-Notebook .jp-Cell").nth(1)).to_contain_text("wb.connect(replicas=2)")
    running.screenshot(path="artifacts/lab_panel.png")

    live.get_by_role("button", name="Stop: one_cell.ipynb").click()
    dialog = running.locator(".jp-Dialog")
    expect(dialog).to_contain_text("MirroredStrategy is at step 4: the values of its variables are lost.")
    running.screenshot(path="artifacts/lab_stop.png")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(live).to_contain_text("2 of 2 replicas")

    live.get_by_role("button", name="Stop: one_cell.ipynb").click()
    dialog.get_by_role("button", name="Stop").click()
    stopped = panel.locator(f".wb-cluster[data-id='{id}']")
    expect(stopped).to_contain_text("0 of 2 replicas")
    expect(stopped).to_be_hidden()  # what has ended is collapsed
    panel.locator("summary", has_text="ended").click()
    stopped.get_by_role("button", name="Forget: one_cell.ipynb").click()
    expect(stopped).to_have_count(0)


def test_what_a_cell_inspects_is_in_the_pane_of_values(page: Any, lab: Lab) -> None:
    inspect = "wb.inspect(strategy.run(step, args=(np.full(3, np.nan, np.float32),)))"
    open_notebook(page, lab, lab.notebook("inspect.ipynb", CELL, inspect))
    command(page, "notebook:run-all-cells")
    expect(page.locator(".jp-Notebook .wb-values")).to_contain_text("f32[3]")

    command(page, "workbench:open-pane", view="values")
    expect(page.locator(".wb-pane .wb-values")).to_contain_text("NaN at step 5")
    page.screenshot(path="artifacts/lab_values.png")


def test_the_settings_page_and_the_help_are_there(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("empty.ipynb", ""))
    command(page, "settingeditor:open", query="Workbench")
    expect(page.locator(".jp-SettingsPanel")).to_contain_text("Panes that open by themselves")
    command(page, "workbench:help")
    expect(page.locator(".wb-help")).to_contain_text("follow the newest cluster")


@pytest.fixture
def settings(page: Any, lab: Lab) -> Iterator[Any]:
    """The page of settings; what the test sets there is undone."""
    open_notebook(page, lab, lab.notebook("written.ipynb", "1"))
    command(page, "settingeditor:open", query="Workbench")
    expect(page.locator(".jp-SettingsPanel")).to_contain_text("Panes that open by themselves")
    yield page.locator(".jp-SettingsPanel")
    lab.request("PUT", SETTINGS, {"raw": json.dumps(TIMING_FIRST)})


def test_settings_take_effect_at_once(page: Any, settings: Any) -> None:
    item = page.locator(".wb-status-item")
    expect(item).to_be_visible()
    settings.get_by_label("Status bar").uncheck()
    expect(item).to_be_hidden()

    settings.locator("select[id$=_motion]").select_option("less")
    expect(page.locator("body.wb-still")).to_have_count(1)
    settings.locator("select[id$=_motion]").select_option("as the system has it")
    expect(page.locator("body.wb-still")).to_have_count(0)

    settings.locator("select[id$=_newPanesFollow]").select_option("the newest cluster")
    page.wait_for_function(FOLLOWS_NEWEST)

    command(page, "workbench:open-pane", view="lanes")  # then the status bar draws its items again
    expect(page.locator(".wb-pane").first).to_be_visible()
    expect(item).to_be_hidden()


def test_new_notebooks_are_connected_on_request(page: Any, lab: Lab, settings: Any) -> None:
    with page.expect_response(
        lambda answer: answer.request.method == "PUT" and "/api/settings" in answer.url
    ):
        settings.get_by_label("Connect new notebooks").check()
    command(page, "notebook:create-new", kernelName="python3")
    first = page.locator(".jp-NotebookPanel:visible .jp-Cell").first
    expect(first).to_contain_text("cluster = wb.connect()")
    expect(page.locator(".wb-status-item")).to_contain_text("replicas")
    page.screenshot(path="artifacts/lab_connected.png")
    written = page.evaluate(
        """() => [...window.jupyterapp.shell.widgets('main')].filter((widget) => widget.sessionContext)
             .map((widget) => widget.content.model.sharedModel.cells.map((cell) => cell.getSource()))"""
    )
    assert written == [["1"], ["import workbench as wb\n\ncluster = wb.connect()", ""]]


@pytest.mark.thorough
@pytest.mark.timeout(400)
def test_the_help_menu_builds_the_guide_and_opens_it(page: Any, lab: Lab) -> None:
    opens_the_guide(page, lab)


def test_the_help_menu_opens_the_guide(page: Any, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(notebooks: Path, target: Path) -> None:
        (target / "guide").mkdir()
        (target / "guide" / "index.html").write_text("<h1>workbench</h1><a href='more.html'>Tutorials</a>")
        (target / "guide" / "more.html").write_text("<h1>Tutorials</h1>")

    monkeypatch.setattr(guide_site, "build", build)
    monkeypatch.setenv("XDG_CACHE_HOME", str(lab.root.parent / "cache"))
    guide_site.built_site()

    opens_the_guide(page, lab)


def opens_the_guide(page: Any, lab: Lab) -> None:
    """Opens the guide from the Help menu, and follows a link."""
    open_notebook(page, lab, lab.notebook("empty.ipynb", ""))
    page.get_by_role("menuitem", name="Help", exact=True).click()
    with page.context.expect_page() as opened:
        page.get_by_role("menuitem", name="Workbench guide").click()

    guide = opened.value
    # If the server has no guide yet, it builds it now.
    expect(guide.get_by_role("heading", name="workbench", exact=True)).to_be_visible(timeout=300_000)
    guide.get_by_role("link", name="Tutorials").first.click()
    expect(guide.get_by_role("heading", name="Tutorials")).to_be_visible()
    guide.close()


@pytest.mark.thorough
def test_two_clusters_are_shown_beside_each_other(page: Any, lab: Lab) -> None:
    for name, steps in (("first.ipynb", 5), ("second.ipynb", 7)):
        open_notebook(page, lab, lab.notebook(name, CELL.replace("range(5)", f"range({steps})")))
        command(page, "notebook:run-all-cells")
        command(page, "workbench:show-panel")
        strategies = page.locator("#workbench-panel").get_by_role("region", name="Strategies")
        expect(strategies.get_by_title(f"MirroredStrategy, {name}")).to_contain_text(f"step {steps - 1}")
        expect(page.locator(".wb-pane:visible")).to_have_count(1)  # beside the notebook, not behind it
    command(page, "workbench:open-pane", view="collective_table")
    page.locator(".wb-pane:visible").last.focus()
    page.keyboard.press("Alt+b")

    tables = page.locator(".wb-pane:visible .wb-collective-table")
    expect(tables).to_have_count(2)
    for index in range(2):
        tables.nth(index).get_by_role("button", name="more columns").click()
    newest = "[aria-label^='newest {0} of {0} collectives']"
    expect(tables.locator(newest.format(5))).to_have_count(1)
    expect(tables.locator(newest.format(7))).to_have_count(1)
    for name in ("first.ipynb", "second.ipynb"):
        expect(page.get_by_role("tab", name=f"Collective timing: {name}")).to_be_visible()
    left, right = (tables.nth(index).bounding_box() for index in range(2))
    assert left["x"] + left["width"] <= right["x"] or right["x"] + right["width"] <= left["x"]
    page.screenshot(path="artifacts/lab_two_clusters.png")


def test_the_panel_is_used_by_keys_alone(running: Any) -> None:
    keyboard = running.keyboard
    command(running, "workbench:show-panel")
    running.wait_for_selector("#workbench-panel :focus")
    seen = []
    for _ in range(40):
        seen.append(
            running.evaluate(
                "() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
            )
        )
        if seen[-1] == "Lanes":
            break
        keyboard.press("Tab")
    assert {"Start workers", "Insert code: one_cell.ipynb", "Stop: one_cell.ipynb", "Topology"} <= set(seen)
    keyboard.press("Enter")
    expect(running.locator(".wb-pane .wb-lanes")).to_be_visible()

    command(running, "workbench:show-panel")
    running.locator("#workbench-panel").get_by_role("button", name="Insert code: one_cell.ipynb").focus()
    keyboard.press("Enter")
    expect(running.locator(".jp-Notebook .jp-Cell").nth(1)).to_contain_text("wb.connect(replicas=2)")
    running.locator("#workbench-panel").get_by_role("button", name="Stop: one_cell.ipynb").focus()
    keyboard.press("Space")
    running.wait_for_selector(".jp-Dialog :focus")
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(running.locator("#workbench-panel summary", has_text="ended")).to_be_visible()
    expect(running.locator("#workbench-panel :focus")).to_have_count(1)
