"""What a cell looks at, JupyterLab shows: panes follow a dataset, the status bar counts what is not finite."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.conftest import Lab, command, drag, expect, open_notebook
from tests.until import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONNECT = """
import time
import numpy as np, workbench as wb
from pathlib import Path
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
"""
FOLLOWED = """
data = strategy.distribute_dataset(wb.data.Dataset.range(40).batch(4))
wb.explain_sharding(data).counts

def total(x):
    return wb.distribute.get_replica_context().all_reduce("sum", np.sum(x))

for step, batch in enumerate(data):
    strategy.run(total, args=(batch,))
    while step in (2, 6) and not Path(f"after-{step}").exists():
        time.sleep(0.05)
"""


def test_a_pane_follows_replicas_through_a_dataset_while_a_cell_runs(page: Any, lab: Lab) -> None:
    for last in (2, 6):  # from an earlier run of this test
        (lab.root / f"after-{last}").unlink(missing_ok=True)
    open_notebook(page, lab, lab.notebook("followed.ipynb", CONNECT, FOLLOWED))
    command(page, "notebook:run-all-cells")
    expect(page.locator(".wb-pane")).to_have_count(2)  # beside the notebook, where the next one opens, too
    command(page, "workbench:open-pane", view="dataset_sharding")
    pane = page.locator(".wb-pane .wb-dataset-sharding")
    prompt = page.locator(".jp-Notebook .jp-InputPrompt").nth(1)
    for begun, last in ((3, 2), (7, 6)):
        expect(pane).to_contain_text(f"{begun} of 10 steps")
        expect(prompt).to_have_text("[*]:")
        page.screenshot(path=f"artifacts/lab_dataset_{begun}.png")
        (lab.root / f"after-{last}").touch()
    expect(pane).to_contain_text("10 of 10 steps")
    expect(prompt).to_have_text("[2]:")

    chart = pane.locator(".wb-chart")
    drag(page, chart.locator("canvas"), 0.3, 0.6)
    picked = pane.locator(".wb-brushed")
    expect(picked).to_have_text(re.compile(r"^steps \d to \d ×$"))
    page.screenshot(path="artifacts/lab_dataset_steps.png")
    command(page, "workbench:open-pane", view="overview")
    overview = page.locator("#workbench-pane-overview")
    expect(overview.locator(".wb-brushed")).to_have_text(picked.inner_text())
    lanes = overview.locator(".wb-module-lanes .wb-chart")
    page.mouse.move(0, 0)  # there is already a cursor under the pointer
    lanes.press("Escape")
    expect(overview.locator(".wb-brushed")).to_have_count(0)
    said = overview.locator(".wb-module-lanes output")

    def is_at_the_last_step() -> bool:  # a pane that has just opened may get the newest steps a moment later
        lanes.press("End")
        page.wait_for_timeout(200)
        return "step 9" in said.inner_text()

    until(is_at_the_last_step, "the last step in the lanes")
    lanes.press("Shift+ArrowRight")  # the last step alone
    expect(overview.locator(".wb-brushed")).to_have_text("step 9 ×")
    command(page, "workbench:open-pane", view="dataset_sharding")
    expect(picked).to_have_text("step 9 ×")
    expect(pane.locator("output")).to_have_text(
        "step 9: batch 9 of epoch 0 · replica 0: 2 rows 36–37 · replica 1: 2 rows 38–39"
    )

    cells = page.locator(".jp-Notebook .jp-Cell")
    expect(cells).to_have_count(2)
    pane.evaluate(  # as its link "Use policy DATA" does
        """(pane) => pane.dispatchEvent(new CustomEvent("workbench:insert",
             { detail: { code: "dataset = 1" }, bubbles: true, composed: true, cancelable: true }))"""
    )
    expect(cells).to_have_count(3)
    expect(cells.last).to_contain_text("dataset = 1")


def test_what_is_not_finite_is_counted_in_the_status_bar_and_told_in_the_log(page: Any, lab: Lab) -> None:
    inspect = "wb.inspect(strategy.run(lambda: np.full(3, np.nan, np.float32)), name='loss')"
    check = """
wb.debugging.enable_check_numerics()
try:
    strategy.run(lambda: np.full(3, np.inf, np.float32))
except wb.errors.NotFinite as error:
    print("refused")
"""
    open_notebook(page, lab, lab.notebook("not_finite.ipynb", CONNECT, inspect, check))
    status = page.locator(".wb-status-item")
    command(page, "notebook:run-cell-and-select-next")
    expect(status).to_contain_text("0 NaN")
    command(page, "notebook:run-cell-and-select-next")
    expect(status).to_contain_text("1 NaN")
    command(page, "notebook:run-cell-and-select-next")
    expect(status).to_contain_text("2 NaN")
    command(page, "workbench:open-pane", view="log")
    log = page.locator(".wb-pane .wb-log")
    expect(log).to_contain_text("wb.inspect found in loss on replicas 0 and 1: NaN at step 0, at [0]")
    expect(log).to_contain_text("what the replica function returned is not finite on replica 0 at step 1")
    expect(status.locator("button")).to_have_attribute(
        "title", re.compile("2 times NaN or infinity was found")
    )
    page.screenshot(path="artifacts/lab_not_finite.png")
