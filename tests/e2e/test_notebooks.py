"""The notebooks of the course, each opened in JupyterLab and run from top to bottom; and a pane while a cell runs."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Lab, command, expect, open_notebook
from tests.notebooks.executed import text_of

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
ALWAYS = ("01_quickstart.ipynb", "02_data_sharding.ipynb", "05_debugging.ipynb", "08_tpu_emulated.ipynb")
"""Those that have most of the views. `tests/notebooks` runs the others without a browser."""
RUN_SECONDS = 400

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(RUN_SECONDS + 150)]

COUNTED = """
import time
import numpy as np, workbench as wb
from pathlib import Path
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
def step(x):
    return wb.distribute.get_replica_context().all_reduce("sum", x)
for name in ("some", "more"):
    for _ in range(20):
        strategy.run(step, args=(np.ones(8),))
    while not Path(name).exists():
        time.sleep(0.05)
"""
HAS_RUN = """() => {
  const panel = [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext);
  const cells = [...panel.content.model.cells].filter((cell) => cell.type === 'code' && cell.sharedModel.source.trim());
  const outputs = cells.flatMap((cell) => cell.outputs.toJSON());
  const failed = outputs.find((output) => output.output_type === 'error');
  if (failed) return failed.traceback.join('\\n');
  return cells.every((cell) => cell.executionCount !== null && cell.executionState === 'idle') && 'done';
}"""
VIEWS = """() => {
  const panel = [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext);
  return [...panel.content.model.cells].flatMap((cell, index) => cell.type !== 'code' ? [] : cell.outputs.toJSON()
    .filter((output) => output.data && output.data['application/vnd.workbench.view+json'])
    .map((output) => [index, output.data['application/vnd.workbench.view+json'].view]));
}"""
OUTPUTS = """() => {
  const panel = [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext);
  return [...panel.content.model.cells].filter((cell) => cell.type === 'code')
    .map((cell) => [cell.id, cell.outputs.toJSON()]);
}"""


def test_a_pane_follows_a_cell_while_it_runs(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("counted.ipynb", COUNTED))
    command(page, "notebook:run-all-cells")
    table = page.locator(".wb-pane .wb-collectives")
    prompt = page.locator(".jp-Notebook .jp-InputPrompt").first
    for collectives, name in ((20, "some"), (40, "more")):
        expect(table).to_contain_text(f"{collectives} collectives")
        expect(prompt).to_have_text("[*]:")
        (lab.root / name).touch()
    expect(prompt).to_have_text("[1]:")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.thorough) for name in NOTEBOOKS]
)
def test_a_notebook_runs_from_top_to_bottom_and_its_views_are_drawn(
    page: Any, lab: Lab, name: str, outputs_in_jupyterlab: dict[str, dict[str, str]]
) -> None:
    shutil.copy(ROOT / "notebooks" / name, lab.root / name)
    page.set_viewport_size({"width": 1440, "height": 1000})
    open_notebook(page, lab, name)
    command(page, "notebook:run-all-cells")
    ended = page.wait_for_function(HAS_RUN, timeout=1000 * RUN_SECONDS, polling=500).json_value()
    assert ended == "done", ended
    outputs_in_jupyterlab[name] = {id: text_of(outputs) for id, outputs in page.evaluate(OUTPUTS)}

    views = page.evaluate(VIEWS)
    assert views
    notebook = page.locator(".jp-Notebook")
    for index, view in views:
        page.evaluate(
            """(index) => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
                 .content.scrollToItem(index, 'center')""",
            index,
        )
        cell = notebook.locator(f".jp-Cell[data-windowed-list-index='{index}']")
        drawn = cell.locator(f".wb-{view.replace('_', '-')}").first
        expect(drawn).to_be_visible()
        expect(drawn).to_contain_text(re.compile(r"\w{3}"))
    expect(notebook).not_to_contain_text("Loading widget")
    page.screenshot(path=f"artifacts/notebook_{name.removesuffix('.ipynb')}.png")
    stored = json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))
    assert len(stored["cells"]) == page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
    )
