"""Named layouts: opened from the palette, a cell, the address or the settings; saved, and back after a reload."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.conftest import TOKEN, Lab, command, expect, open_notebook, wait_for_notebook

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

OVERVIEW = {"overview", "lanes", "log"}
DATA = {"dataset_sharding", "input", "data_service", "array_sharding", "values", "servers"}
PANES = """() => [...window.jupyterapp.shell.widgets('main')].filter((one) => one.hasClass('wb-pane'))
  .map((one) => one.args.view).sort().join()"""


IS_IDLE = "() => window.jupyterapp.shell.currentWidget.sessionContext?.session?.kernel?.status === 'idle'"


def expect_panes(page: Any, views: set[str]) -> None:
    page.wait_for_function(f"(views) => ({PANES})() === views", arg=",".join(sorted(views)))


def boxes(page: Any, *selectors: str) -> list[dict[str, float]]:
    found = [page.locator(selector).bounding_box() for selector in selectors]
    assert None not in found
    return found


def expect_panes_beside_the_notebook(page: Any) -> None:
    notebook, *panes = boxes(
        page,
        ".jp-NotebookPanel",
        *(
            f".wb-pane >> visible=true >> nth={at}"
            for at in range(page.locator(".wb-pane >> visible=true").count())
        ),
    )
    assert panes
    assert all(notebook["x"] + notebook["width"] <= pane["x"] + 1 for pane in panes)
    assert all(above["y"] + above["height"] <= below["y"] + 1 for above, below in pairwise(panes))


def run_palette(page: Any, text: str) -> None:
    page.keyboard.press("Control+Shift+C")
    page.wait_for_selector(".lm-CommandPalette-input:focus")
    page.keyboard.type(text)
    page.wait_for_selector(f".lm-CommandPalette-item.lm-mod-active >> text={text}")
    page.keyboard.press("Enter")


def kept(response: Any) -> bool:
    """Whether this is the server's answer to the layout of the page, with a pane in it."""
    if response.request.method != "PUT" or "/api/workspaces/" not in response.url:
        return False
    layout = json.loads(response.request.post_data)["data"].get("layout-restorer:data", {})
    return "workbench-pane" in json.dumps(layout.get("main"))


def test_a_layout_opens_from_the_palette_beside_the_notebook_and_comes_back(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("palette.ipynb", ""))
    page.locator(".jp-Notebook .jp-Cell").click()  # JupyterLab may still be about to focus it
    with page.expect_response(kept):
        run_palette(page, "Open layout: overview")
        expect_panes(page, OVERVIEW)
    expect(page.get_by_role("tab", name="Overview")).to_be_visible()
    expect_panes_beside_the_notebook(page)
    notebook, above = boxes(page, ".jp-NotebookPanel", ".wb-pane >> visible=true >> nth=0")
    page.screenshot(path="artifacts/lab_layout.png")

    page.reload()
    wait_for_notebook(page)
    expect_panes(page, OVERVIEW)
    notebook_now, above_now = boxes(page, ".jp-NotebookPanel", ".wb-pane >> visible=true >> nth=0")
    assert (notebook_now, above_now) == (notebook, above)


@pytest.mark.thorough
def test_a_cell_opens_a_layout_while_it_goes_on_and_a_saved_output_does_not(page: Any, lab: Lab) -> None:
    going_on = "from pathlib import Path\nwhile not Path('enough').exists(): pass"
    name = lab.notebook("cell.ipynb", f"import workbench as wb\nwb.layout('data')\n{going_on}")
    open_notebook(page, lab, name)
    command(page, "notebook:run-all-cells")
    expect_panes(page, DATA)
    (lab.root / "enough").touch()
    expect(page.locator(".jp-OutputArea-output")).to_contain_text("<Layout 'data'")
    page.wait_for_function(IS_IDLE)
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "contents" in answer.url):
        command(page, "docmanager:save")

    open_notebook(page, lab, name)
    expect(page.locator(".jp-OutputArea-output")).to_contain_text("<Layout 'data'")
    assert page.evaluate(PANES) == ""


@pytest.mark.thorough
def test_the_magic_knows_saved_layouts_and_names_them_all_in_its_error(page: Any, lab: Lab) -> None:
    name = lab.notebook(
        "magic.ipynb", "import workbench", "%workbench layout my evening", "%workbench layout nothing"
    )
    open_notebook(page, lab, name)
    command(page, "workbench:open-layout", name="data")
    expect_panes(page, DATA)
    with page.expect_response(lambda answer: "/workbench/api/layouts" in answer.url and answer.status == 204):
        command(page, "workbench:save-layout")
        page.locator(".jp-Dialog input").fill("my evening")
        page.keyboard.press("Enter")
    command(page, "workbench:open-layout", name="overview")
    expect_panes(page, OVERVIEW)

    command(page, "notebook:run-all-cells")
    expect_panes(page, DATA)
    expect(page.locator(".jp-OutputArea-output").last).to_contain_text(
        "overview, collectives, debugging, data, my evening"
    )

    with page.expect_response(lambda answer: "/workbench/api/layouts" in answer.url and answer.status == 204):
        command(page, "workbench:delete-layout", name="my evening")
    command(page, "workbench:open-layout", name="my evening")
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text(
        "There is no layout “my evening”. There are: overview, collectives, debugging, data"
    )
    dialog.get_by_role("button").last.click()


def test_the_address_names_a_layout_once(page: Any, lab: Lab) -> None:
    name = lab.notebook("address.ipynb", "")
    page.goto(f"{lab.url}/lab/tree/{name}?reset&workbench-layout=overview&token={TOKEN}")
    wait_for_notebook(page)
    expect_panes(page, OVERVIEW)
    expect_panes_beside_the_notebook(page)
    assert "workbench-layout" not in page.url


@pytest.mark.thorough
def test_the_settings_name_the_layout_at_start(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("start.ipynb", ""))
    setting = {"raw": json.dumps({"layoutAtStart": "data"})}
    script = """([url, token, body]) => fetch(url, {method: 'PUT', body: JSON.stringify(body),
      headers: {Authorization: `token ${token}`}}).then((answer) => answer.status)"""
    address = f"{lab.url}/lab/api/settings/workbench-lab:plugin"
    assert page.evaluate(script, [address, TOKEN, setting]) == 204
    try:
        open_notebook(page, lab, "start.ipynb")
        expect_panes(page, DATA)
        expect_panes_beside_the_notebook(page)
    finally:
        page.evaluate(script, [address, TOKEN, {"raw": "{}"}])


def test_a_notebook_brings_its_layout_which_opens_once(page: Any, lab: Lab) -> None:
    cell = "import workbench as wb\ncluster = wb.connect(replicas=2, processes=False)"
    name = lab.notebook("brings.ipynb", cell, layout="data")
    open_notebook(page, lab, name)
    assert page.evaluate(PANES) == ""  # there is nothing to show yet
    command(page, "notebook:run-all-cells")
    expect_panes(page, DATA)
    expect_panes_beside_the_notebook(page)
    with page.expect_response(kept):
        command(page, "workbench:open-layout", name="overview")
        expect_panes(page, OVERVIEW)

    page.reload()  # the cluster lives on, and panes stay as they were
    wait_for_notebook(page)
    expect(page.locator(".wb-pane .wb-overview")).to_contain_text("No step has run yet")
    expect_panes(page, OVERVIEW)

    written_out = {"split": "across", "parts": ["others", {"tabs": ["servers", "log"]}]}
    page.goto(f"{lab.url}/lab/tree/{lab.notebook('another.ipynb', cell, layout=written_out)}?token={TOKEN}")
    wait_for_notebook(page)
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context?.path === 'another.ipynb'")
    page.wait_for_function(IS_IDLE)
    command(page, "notebook:run-all-cells")
    expect_panes(page, {"servers", "log"})


def test_a_pane_opens_beside_the_notebook_and_the_next_one_among_the_panes(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("beside.ipynb", ""))
    panes = page.locator(".wb-pane >> visible=true")
    for view in ("devices", "log"):
        page.locator(".jp-Notebook .jp-Cell").click()  # the notebook keeps the focus each time
        command(page, "workbench:open-pane", view=view)
        expect(page.locator(f"#workbench-pane-{view}")).to_be_visible()
        expect(panes).to_have_count(1)
        notebook, pane = boxes(page, ".jp-NotebookPanel", ".wb-pane >> visible=true")
        assert notebook["x"] + notebook["width"] <= pane["x"] + 1
    expect(page.get_by_role("tab", name="Devices")).to_be_visible()  # behind the log


def test_a_notebook_that_is_opened_from_a_pane_lies_among_the_other_notebooks(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("one.ipynb", "1"))
    command(page, "workbench:open-layout", name="overview")
    expect_panes(page, OVERVIEW)
    command(page, "workbench:open-pane", view="lanes")
    lab.notebook("two.ipynb", "2")
    command(page, "docmanager:open", path="two.ipynb")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.title.label === 'two.ipynb'")
    expect(page.locator(".lm-TabBar:has(.lm-TabBar-tab:has-text('one.ipynb'))").first).to_contain_text(
        "two.ipynb"
    )
    expect(page.locator(".wb-pane >> visible=true")).to_have_count(1)


def test_a_notebook_that_is_dragged_among_the_panes_stays_there(page: Any, lab: Lab) -> None:
    lab.notebook("dragged.ipynb", "2")
    open_notebook(page, lab, lab.notebook("one.ipynb", "1"))
    command(page, "workbench:open-layout", name="overview")
    expect_panes(page, OVERVIEW)
    command(page, "filebrowser:activate")
    page.locator(".jp-DirListing-item", has_text="dragged.ipynb").hover()
    page.mouse.down()
    left, top, width, height = page.locator(".wb-pane >> visible=true").first.bounding_box().values()
    page.mouse.move(left + width / 2, top + height / 2, steps=10)
    page.mouse.up()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.title.label === 'dragged.ipynb'")
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve))")
    expect(page.locator(".lm-TabBar:has(.lm-TabBar-tab:has-text('Lanes'))").first).to_contain_text(
        "dragged.ipynb"
    )


@pytest.mark.thorough
def test_in_a_narrow_window_a_layout_lies_below_the_notebook(page: Any, lab: Lab) -> None:
    page.set_viewport_size({"width": 900, "height": 900})
    open_notebook(page, lab, lab.notebook("narrow.ipynb", "1"))
    command(page, "workbench:open-layout", name="overview")
    expect_panes(page, OVERVIEW)
    notebook, pane = boxes(page, ".jp-NotebookPanel", ".wb-pane >> visible=true")
    assert notebook["y"] + notebook["height"] <= pane["y"] + 1
    assert pane["width"] == pytest.approx(notebook["width"], abs=2)
