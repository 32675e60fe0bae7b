"""The pane "Servers" follows functions while a cell waits for them in `join`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.conftest import Lab, command, expect, open_notebook

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELL = """
import time, numpy as np, workbench as wb
from workbench.distribute.server_optimizers import Adam, apply_gradients
cluster = wb.connect(replicas=4)
partitioner = wb.distribute.experimental.partitioners.FixedShardsPartitioner(2)
strategy = wb.distribute.ParameterServerStrategy(None, partitioner, servers=2)
coordinator = wb.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = wb.Variable(np.zeros((20_000, 64), np.float32), name="table")
def train(step):
    rows = table.sparse_read([step, step + 10_000])
    time.sleep(0.05)
    apply_gradients(Adam(0.1), [(wb.IndexedSlices(rows + 1, [step, step + 10_000]), table)])
def wait_for_file(path):
    import os
    while not os.path.exists(path):
        time.sleep(0.05)
for step in range(40):
    _ = coordinator.schedule(train, args=(step,))
_ = coordinator.schedule(wait_for_file, args=("{go}",))
coordinator.join()
print("joined")
"""


def test_the_pane_follows_functions_while_a_cell_waits_in_join(page: Any, lab: Lab, tmp_path: Any) -> None:
    go = tmp_path / "go"
    open_notebook(page, lab, lab.notebook("servers.ipynb", CELL.replace("{go}", str(go))))
    command(page, "notebook:run-all-cells")
    command(page, "workbench:open-pane", view="servers")
    pane = page.locator(".wb-pane:visible").filter(has=page.locator(".wb-servers"))

    expect(pane).to_contain_text(re.compile(r"wait_for_file, for [\d.]+ s"))
    expect(pane).to_contain_text("1 function under way")
    expect(pane.get_by_role("group", name="ps:0")).to_contain_text("10,000 rows × 64 f32")
    expect(pane.get_by_role("group", name="ps:1")).to_contain_text(re.compile("40 updates applied"))
    page.screenshot(path="artifacts/servers_light.png")
    command(page, "apputils:change-theme", theme="JupyterLab Dark")
    page.wait_for_selector("body[data-jp-theme-light='false']", state="attached")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.screenshot(path="artifacts/servers_dark.png")

    go.touch()
    expect(pane).to_contain_text("41 functions done, none under way.")
    expect(page.locator(".jp-OutputArea-output").last).to_contain_text("joined")
