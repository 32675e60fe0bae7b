"""The left panel: workers of each kind are started, scaled, used and stopped; sections fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Lab, command, expect, open_notebook, page_of, wait_for_notebook

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

USE = """
import workbench as wb
cluster = wb.connect("workbench://{id}")
strategy = wb.MirroredStrategy()
strategy.run(lambda: 1)
print(len(cluster.devices), "devices")
"""


@pytest.fixture(scope="module")
def page(lab: Lab, context: Any) -> Iterator[Any]:
    """One for all tests, with the panel beside an empty notebook."""
    with page_of(lab, context, "workers") as page:
        open_notebook(page, lab, lab.notebook("user.ipynb", ""))
        command(page, "workbench:show-panel")
        page.locator("#workbench-panel summary").click()
        yield page


@pytest.fixture
def panel(page: Any, lab: Lab) -> Iterator[Any]:
    """The panel; whatever is in it ends with the test."""
    panel = page.locator("#workbench-panel")
    yield panel
    while clusters := lab.request(
        "GET", "/workbench/api/clusters"
    ):  # the first click stops, the second one removes
        for one in clusters:
            lab.request("DELETE", f"/workbench/api/clusters/{one['id']}")
    expect(panel.locator(".wb-cluster")).to_have_count(0)


def started(panel: Any) -> Any:
    """The entry of the workers that a click starts."""
    panel.get_by_role("button", name="Start workers").click()
    entry = panel.locator(".wb-cluster").filter(has=panel.page.locator("b", has_text="workers "))
    expect(entry).to_have_count(1)
    return entry


def saved_preset(page: Any, panel: Any, name: str) -> None:
    """Gives the options of the form a name."""
    panel.get_by_role("button", name="Save as preset …").click()
    page.locator(".jp-Dialog input").fill(name)
    page.locator(".jp-Dialog").get_by_role("button", name="Ok").click()


def use(page: Any, entry: Any) -> None:
    """Has the notebook make a step on workers."""
    code = USE.format(id=entry.get_attribute("data-id"))
    page.evaluate(
        """(code) => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
             .content.activeCell.model.sharedModel.setSource(code)""",
        code,
    )
    command(page, "notebook:run-all-cells")


def test_workers_are_scaled_and_that_is_cancelled(panel: Any, page: Any) -> None:
    entry = started(panel)
    expect(entry).to_contain_text("2 of 2 replicas, CPU")
    entry.get_by_role("spinbutton", name="Replicas").fill("24")  # takes seconds
    page.keyboard.press("Enter")
    expect(entry).to_contain_text("Scaling to 24 …")
    expect(entry.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")

    expect(entry).to_contain_text("2 of 2 replicas")
    expect(entry.get_by_role("button", name="Scale")).to_be_focused()
    expect(panel.get_by_role("alert")).to_have_count(0)


def test_replicas_that_are_used_are_not_taken_away_without_a_question(panel: Any, page: Any) -> None:
    entry = started(panel)
    use(page, entry)
    expect(panel.locator(".wb-cluster", has_text="user.ipynb")).to_contain_text("2 of 2 replicas")
    entry.get_by_role("spinbutton", name="Replicas").fill("1")
    entry.get_by_role("button", name="Scale").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("user.ipynb uses these workers: 1 of its replicas loses its values")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(entry).to_contain_text("2 of 2 replicas")

    entry.get_by_role("button", name="Scale").click()
    dialog.get_by_role("button", name="Take them away").click()
    expect(entry).to_contain_text("1 of 1 replicas")
    expect(page.locator(".wb-status-item")).to_contain_text("1/2 replicas")


def test_workers_grow_while_a_notebook_uses_them(panel: Any, page: Any) -> None:
    panel.get_by_label("Preset").select_option(label="1 to 4 processes")
    page.screenshot(path="artifacts/lab_options.png")
    entry = started(panel)
    expect(entry).to_contain_text("1 of 1 replicas, CPU, up to 4 while used")
    use(page, entry)

    expect(page.locator(".jp-OutputArea")).to_contain_text("4 devices")
    expect(entry).to_contain_text("4 of 4 replicas")


def test_options_of_the_form_are_kept_and_say_what_they_ask_for(panel: Any, page: Any) -> None:
    panel.get_by_label("Preset").select_option(label="2 processes")
    panel.get_by_label("Run on").select_option(label="GPU")
    expect(panel.get_by_role("combobox", name="Processes", exact=True)).to_be_disabled()
    panel.get_by_label("Replicas").first.fill("200")
    panel.get_by_role("button", name="Start workers").click()
    expect(panel.get_by_role("alert")).to_contain_text("200 NVIDIA GPUs were asked for, this process sees")

    panel.get_by_label("Preset").select_option(label="4 threads")
    panel.get_by_label("Replicas").first.fill("3")
    saved_preset(page, panel, "2 processes")
    expect(panel.get_by_role("alert")).to_contain_text("“2 processes” comes with workbench")
    saved_preset(page, panel, "other")
    panel.get_by_role("button", name="Delete preset “other”").focus()
    page.keyboard.press("Enter")
    expect(panel.get_by_label("Preset").locator("option", has_text="other")).to_have_count(0)
    expect(panel.get_by_role("button", name="Save as preset …")).to_be_focused()
    saved_preset(page, panel, "mine")
    expect(panel.get_by_label("Preset").locator("option:checked")).to_have_text("mine")
    expect(panel.get_by_role("alert")).to_have_count(0)
    panel.get_by_label("Preset").select_option(label="4 threads")
    entry = started(panel)
    expect(entry).to_contain_text("4 of 4 replicas, CPU, threads of one process")
    expect(entry.get_by_role("button", name="Scale")).to_have_count(0)
    with page.expect_response(_keeps_folds):
        for section in ("Panes", "Layouts"):
            panel.get_by_role("button", name=section, exact=True).click()
            expect(panel.get_by_role("region", name=section).get_by_role("button")).to_have_count(1)
    page.screenshot(path="artifacts/lab_folded.png")

    page.reload()
    wait_for_notebook(page)
    command(page, "workbench:show-panel")
    expect(panel.locator("summary")).to_contain_text("Options: CPU, threads of one process")
    panel.locator("summary").click()
    panel.get_by_label("Preset").select_option(label="mine")
    expect(panel.get_by_label("Replicas").first).to_have_value("3")
    panel.get_by_role("button", name="Delete preset “mine”").click()
    expect(panel.get_by_label("Preset").locator("option", has_text="mine")).to_have_count(0)
    expect(panel.get_by_role("button", name="Panes", exact=True)).to_have_attribute("aria-expanded", "false")
    expect(panel.get_by_role("button", name="Clusters", exact=True)).to_have_attribute(
        "aria-expanded", "true"
    )


def _keeps_folds(response: Any) -> bool:
    """Whether this is the server's answer to the panel's state, with both sections collapsed."""
    request = response.request
    return (
        request.method == "PUT"
        and "/api/workspaces/" in request.url
        and '["panes","layouts"]' in request.post_data
    )
