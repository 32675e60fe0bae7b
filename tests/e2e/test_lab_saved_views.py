"""Outputs of a saved notebook: drawn without a kernel, live with one; whatever a file says, nothing of it runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat.v4
import pytest

from tests import exports
from tests.e2e.conftest import TOKEN, Lab, command, expect, open_notebook, wait_for_notebook
from tests.extension.test_models import RECORDED, VIEW_OF

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MIME = "application/vnd.workbench.view+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
CONNECT = """
import numpy as np, workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
def step():
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(8))
"""
STEPS = "for _ in range(3): strategy.run(step)"
CELLS = (
    CONNECT + STEPS,
    "wb.topology()",
    "wb.inspect(strategy.run(lambda: np.full(3, np.nan)))",
    "wb.collectives()",
)
VIEWS = ("topology", "values", "collectives")
PAYLOADS = (
    '<img src=x onerror="window.hit=1">',
    "<script>window.hit=1</script>",
    '"><svg onload="window.hit=1">',
    "javascript:window.hit=1",
    "{{constructor.constructor('window.hit=1')()}}",
)


def saved_model(file: Path, view: str) -> dict[str, Any]:
    """What the notebook says of a view."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    data = (output.get("data", {}) for cell in cells for output in cell["outputs"])
    (model,) = (found[MIME]["model"] for found in data if MIME in found and found[MIME]["view"] == view)
    return dict(model)


def save(page: Any) -> None:
    with page.expect_response(
        lambda response: response.request.method == "PUT" and "contents" in response.url
    ):
        command(page, "docmanager:save")


def end_kernels(lab: Lab) -> None:
    for session in lab.request("GET", "/api/sessions"):
        lab.request("DELETE", f"/api/sessions/{session['id']}")


def run_all(page: Any, lab: Lab, name: str, *cells: str) -> None:
    open_notebook(page, lab, lab.notebook(name, *cells))
    command(page, "notebook:run-all-cells")


@pytest.fixture
def saved(page: Any, lab: Lab) -> str:
    """The name of a notebook that was run, saved, and left without its kernel."""
    run_all(page, lab, "saved.ipynb", *CELLS)
    expect(page.locator(".jp-Notebook .wb-collectives")).to_contain_text("all_reduce")
    save(page)
    end_kernels(lab)
    return "saved.ipynb"


def expect_views(page: Any) -> None:
    notebook = page.locator(".jp-Notebook")
    for view in VIEWS:
        expect(notebook.locator(f".wb-{view}")).to_have_count(1)
    expect(notebook.locator(".wb-topology")).to_contain_text("cpu:1")
    expect(notebook.locator(".wb-values")).to_contain_text("NaN")
    expect(notebook.locator(".wb-collectives")).to_contain_text("all_reduce")
    expect(notebook).not_to_contain_text("Loading widget")
    expect(notebook).not_to_contain_text("Error displaying widget")


def test_a_new_kernel_knows_no_widgets_and_the_views_are_drawn_as_saved(
    page: Any, lab: Lab, saved: str
) -> None:
    open_notebook(page, lab, saved)

    expect_views(page)
    page.screenshot(path="artifacts/lab_saved.png")


def test_what_is_out_of_sight_is_saved_as_of_the_last_cell(page: Any, lab: Lab) -> None:
    page.set_viewport_size({"width": 1000, "height": 300})
    long = "print('\\n' * 60)"
    open_notebook(page, lab, lab.notebook("below.ipynb", CONNECT + "cluster", long, STEPS))
    command(page, "notebook:run-cell-and-select-next")
    view = page.locator(".jp-Notebook .wb-topology")
    expect(view).to_contain_text("live")
    page.evaluate(
        """() => document.addEventListener("workbench:newest", ({ detail }) => {
          window.step = detail.model.strategies?.[0]?.step;
        })"""
    )
    for _ in range(2):
        command(page, "notebook:run-cell-and-select-next")
    expect(page.locator(".jp-Notebook .jp-InputPrompt").nth(2)).to_have_text("[3]:")
    expect(view).not_to_be_in_viewport()
    page.wait_for_function("() => window.step === 2")
    save(page)

    assert saved_model(lab.root / "below.ipynb", "topology")["strategies"][0]["step"] == 2


def test_without_any_kernel_the_views_are_drawn_as_saved(page: Any, lab: Lab, saved: str) -> None:
    file = lab.root / saved
    content = json.loads(file.read_text(encoding="utf-8"))
    content["metadata"]["kernelspec"] = {"name": "absent", "display_name": "Absent", "language": "none"}
    del content["metadata"]["language_info"]
    file.write_text(json.dumps(content), encoding="utf-8")

    page.goto(f"{lab.url}/lab/tree/{saved}?reset&token={TOKEN}")
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Select Kernel")
    dialog.locator("select").select_option("null")
    dialog.get_by_role("button", name="Select Kernel").click()
    expect(dialog).to_have_count(0)

    expect_views(page)
    assert lab.request("GET", "/api/sessions") == []


def test_with_a_kernel_the_view_is_live_and_what_it_showed_last_is_saved(page: Any, lab: Lab) -> None:
    run_all(
        page, lab, "live.ipynb", CONNECT + STEPS, "wb.collectives()", "for _ in range(7): strategy.run(step)"
    )
    live = page.locator(".jp-Notebook .wb-saved .lm-Panel .wb-collectives")
    live.get_by_role("button", name="more columns").click()
    expect(live.locator("[aria-label^='newest 10 of 10 collectives']")).to_have_count(1)
    save(page)

    expect(page.locator(".jp-Notebook .wb-collectives")).to_have_count(1)
    (row,) = saved_model(lab.root / "live.ipynb", "collectives")["snapshot"]["table"]
    assert row["samples"] == 10


def test_a_reload_finds_the_live_view_again(page: Any, lab: Lab) -> None:
    run_all(page, lab, "again.ipynb", CONNECT + STEPS, "wb.collectives()")
    live = page.locator(".jp-Notebook .wb-saved .lm-Panel .wb-collectives")
    expect(live).to_contain_text("all_reduce")
    save(page)

    page.reload()
    wait_for_notebook(page)

    expect(live).to_contain_text("all_reduce")
    expect(page.locator(".jp-Notebook .wb-collectives")).to_have_count(1)
    page.evaluate(
        """() => void [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
             .sessionContext.session.kernel.requestExecute({ code: "import time\\nwhile True: time.sleep(0.05)" })"""
    )
    # Through messages that the kernel sends while a cell runs.
    assert b"all_reduce" in exports.saved(live, "Table (CSV)")
    end_kernels(lab)


def test_a_restart_of_the_kernel_leaves_the_views_as_they_were_last_seen(page: Any, lab: Lab) -> None:
    run_all(page, lab, "restart.ipynb", *CELLS)
    notebook = page.locator(".jp-Notebook")
    expect(notebook.locator(".wb-saved .lm-Panel .wb-collectives")).to_contain_text("all_reduce")
    page.evaluate(
        """() => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
             .sessionContext.session.kernel.restart()"""
    )

    expect(notebook.locator(".wb-saved-note")).to_have_count(len(VIEWS))
    expect(notebook.locator(".wb-collectives")).to_contain_text("replay")
    expect_views(page)


def output(model: Any, *, view: str, html: str, version: int = 1) -> Any:
    """An output as somebody may have written it into a file."""
    data = {
        "text/plain": "plain",
        "text/html": html,
        MIME: {"version": version, "view": view, "model": model},
        WIDGET: {"version_major": 2, "version_minor": 0, "model_id": "0" * 32},
    }
    return nbformat.v4.new_output("display_data", data)


def write_outputs(lab: Lab, name: str, outputs: list[Any]) -> None:
    cells = [nbformat.v4.new_code_cell("", outputs=[one]) for one in outputs]
    content = nbformat.v4.new_notebook(cells=cells)
    content.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (lab.root / name).write_text(json.dumps(content), encoding="utf-8")


def poisoned(value: Any, payloads: Iterator[str]) -> Any:
    """A model with payloads in the place of all texts."""
    if isinstance(value, str):
        return next(payloads)
    if isinstance(value, list):
        return [poisoned(part, payloads) for part in value]
    if isinstance(value, dict):
        return {name: poisoned(part, payloads) for name, part in value.items()}
    return value


@pytest.mark.parametrize("trusted", [False, True])
def test_a_malicious_model_is_drawn_as_text_and_runs_nothing(page: Any, lab: Lab, trusted: bool) -> None:
    models = {name: json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8")) for name in VIEW_OF}
    payloads = itertools.cycle(PAYLOADS)
    outputs = [
        output(poisoned(model, payloads), view=VIEW_OF[name], html=f"<p>instead of {name}</p>")
        for name, model in models.items()
    ]
    write_outputs(lab, "malicious.ipynb", outputs)
    open_notebook(page, lab, "malicious.ipynb")
    if trusted:
        page.evaluate("() => { void window.jupyterapp.commands.execute('notebook:trust'); }")
        page.locator(".jp-Dialog .jp-mod-accept").click()

    notebook = page.locator(".jp-Notebook")
    for index in range(len(outputs)):
        page.evaluate("(index) => window.jupyterapp.shell.currentWidget.content.scrollToItem(index)", index)
        expect(notebook.locator(f".jp-Cell[data-windowed-list-index='{index}'] .wb")).to_have_count(1)
    expect(notebook).not_to_contain_text("instead of")
    assert notebook.locator(".wb").get_by_text("onerror", exact=False).count() > 0
    assert notebook.locator(".wb img, .wb script, .wb iframe, .wb a").count() == 0
    assert page.evaluate("() => window.hit") is None


def test_what_is_malformed_or_newer_is_shown_by_its_script_free_html(page: Any, lab: Lab) -> None:
    model = json.loads((RECORDED / "topology.json").read_text(encoding="utf-8"))
    less = {name: value for name, value in model.items() if name != "hosts"}
    html = "<p>in HTML {}</p><img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    outputs = [
        output(model, view="topology", html=html.format(0), version=2),
        output(less, view="topology", html=html.format(1)),
        output(model | {"more": 1}, view="topology", html=html.format(2)),
        output(model | {"hosts": "none"}, view="topology", html=html.format(3)),
        output(model, view="constructor", html=html.format(4)),
        output([], view="topology", html=html.format(5)),
    ]
    write_outputs(lab, "malformed.ipynb", outputs)
    open_notebook(page, lab, "malformed.ipynb")

    notebook = page.locator(".jp-Notebook")
    for index in range(len(outputs)):
        expect(notebook).to_contain_text(f"in HTML {index}")
    assert notebook.locator(".wb").count() == 0
    assert page.evaluate("() => window.hit") is None
