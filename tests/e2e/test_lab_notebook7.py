"""Notebook 7: live views, views of saved notebooks, the panel and the panes, where there is no place to dock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import TOKEN, Lab, command, expect, wait_for_notebook
from tests.e2e.test_lab_saved_views import CELLS, end_kernels, expect_views, save

pytest.importorskip("notebook", reason="Notebook 7 is not installed: pip install notebook")
pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def open_in_notebook_7(page: Any, lab: Lab, name: str) -> None:
    page.goto(f"{lab.url}/notebooks/{name}?token={TOKEN}")
    wait_for_notebook(page)


@pytest.fixture
def problems(page: Any) -> list[str]:
    """What plugins complain of."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    return found


def test_views_are_live_in_notebook_7_and_drawn_as_saved(page: Any, lab: Lab, problems: list[str]) -> None:
    name = lab.notebook("classic.ipynb", *CELLS)
    open_in_notebook_7(page, lab, name)
    command(page, "notebook:run-all-cells")
    live = page.locator(".jp-Notebook .wb-saved .lm-Panel .wb-collectives")
    expect(live).to_contain_text("all_reduce")
    expect_views(page)
    page.screenshot(path="artifacts/notebook_7.png")
    save(page)
    end_kernels(lab)

    open_in_notebook_7(page, lab, name)
    expect_views(page)
    expect(page.locator(".wb-saved-note")).to_have_count(3)
    assert [text for text in problems if "workbench" in text] == []


def test_panel_and_panes_have_their_places_in_notebook_7(page: Any, lab: Lab) -> None:
    name = lab.notebook("places.ipynb", CELLS[0])
    open_in_notebook_7(page, lab, name)
    command(page, "notebook:run-all-cells")
    command(page, "workbench:show-panel")
    panel = page.locator("#workbench-panel")
    expect(panel).to_contain_text("2 of 2 replicas")
    panel.get_by_role("button", name="Topology").click()
    expect(page.locator(".wb-pane .wb-topology")).to_contain_text("cpu:1")
    command(page, "workbench:open-pane", view="overview")
    hint = page.locator(".wb-pane .wb-overview").get_by_role("note", name="First steps")
    expect(hint).to_contain_text("The command palette lists all other views under “Workbench”.")
    hint.get_by_role("button", name="Got it").click()
    expect(hint).to_have_count(0)
    command(page, "workbench:open-layout", name="collectives")
    expect(page.locator(".wb-pane .wb-collective-table")).to_contain_text("all_reduce")
    page.screenshot(path="artifacts/notebook_7_panes.png")
