"""The pictures of the README, taken of what people see; `python -m tests.e2e.pictures` puts new ones there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ARTIFACTS, NOTEBOOK_IS_READY, ROOT, Lab, command, expect, open_notebook
from tests.e2e.test_dashboard import Job
from tests.e2e.test_first_sight import CELL as LATE

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DIGITS = """
import numpy as np
from sklearn.datasets import load_digits

import workbench as wb

images, labels = load_digits(return_X_y=True)
images, labels = images[:1400].astype(np.float32), labels[:1400]
"""
BLANK_PICTURE = """
images[1340] = 0  # a blank one
strategy = wb.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])
data = wb.data.Dataset.from_tensor_slices(images).batch(140)

def normalised(x):
    with np.errstate(invalid="ignore"):
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    wb.distribute.get_replica_context().all_reduce("mean", x.mean())
    return x

for batch in strategy.distribute_dataset(data):
    pixels = strategy.run(normalised, args=(batch,))
"""
CONNECT = "cluster = wb.connect(replicas=4, processes=False)"
CELLS = {
    "nan": (DIGITS, CONNECT, BLANK_PICTURE, "wb.inspect(pixels, elements=...)"),
    "sharding": (
        DIGITS,
        "data = wb.data.Dataset.from_tensor_slices((images, labels)).batch(190)",
        "wb.explain_sharding(data, 4)",
    ),
}
TRAINING = """
import sys

import numpy as np

import workbench as wb
from workbench.testing import Slow, inject

random = np.random.default_rng(0)
with wb.connect(replicas=4, processes=False) as cluster:
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        w = wb.Variable(np.zeros((128, 64), np.float32), name="w")
        b = wb.Variable(np.zeros(64, np.float32), name="b")

    def step(x):
        ctx = wb.distribute.get_replica_context()
        difference = x @ np.asarray(w) + np.asarray(b) - x[:, :64]
        w.assign_sub(np.float32(1e-4) * ctx.all_reduce("mean", x.T @ difference))
        b.assign_sub(np.float32(1e-4) * ctx.all_reduce("mean", difference.sum(axis=0)))
        return ctx.all_reduce("mean", np.square(difference).mean())

    late = inject(step, Slow(2, 0.2))
    batch = random.normal(size=(64, 128)).astype(np.float32)
    print("ready", flush=True)
    for line in sys.stdin:
        for number in range(int(line)):
            strategy.run(late if number % 40 > 30 else step, args=(batch,))
        cluster.flush_telemetry(60)
        print("done", flush=True)
"""


def wide(page: Any) -> None:
    """Makes room for the notebook and its panes, and leaves the hint for new people away."""
    page.set_viewport_size({"width": 1500, "height": 900})
    page.add_init_script("localStorage.setItem('workbench-overview-hint', 'seen')")


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Job]:
    """A job in a process of its own, one of whose replicas is late now and then."""
    file = tmp_path / "train.py"
    file.write_text(TRAINING, encoding="utf-8")
    job = Job(file, "")
    yield job
    job.end()


def test_the_quickstart_with_its_panes(page: Any, lab: Lab) -> None:
    notebook = json.loads((ROOT / "notebooks" / "01_quickstart.ipynb").read_text(encoding="utf-8"))
    cells = notebook["cells"]
    del cells[[cell["id"] for cell in cells].index("exercises-text") :]  # they also close the cluster
    (lab.root / "quickstart.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    wide(page)
    open_notebook(page, lab, "quickstart.ipynb")
    command(page, "application:toggle-left-area")
    command(page, "notebook:run-all-cells")
    expect(page.locator(".jp-Notebook")).to_contain_text("epoch 15")
    command(page, "workbench:open-layout", name="overview")
    last = page.locator(".jp-Notebook .wb-values").last
    expect(last).to_contain_text("in sync")
    expect(page.locator(".wb-pane .wb-overview .wb-verdict")).to_be_visible()
    page.wait_for_function(NOTEBOOK_IS_READY)
    last.evaluate("(node) => node.scrollIntoView({ block: 'end' })")
    page.screenshot(path=ARTIFACTS / "picture_lab.png")


def test_a_late_replica_beside_its_cell(page: Any, lab: Lab) -> None:
    wide(page)
    open_notebook(page, lab, lab.notebook("late.ipynb", LATE.strip()))
    command(page, "application:toggle-left-area")
    command(page, "notebook:run-all-cells")
    page.wait_for_function(NOTEBOOK_IS_READY)
    command(page, "workbench:open-layout", name="overview")
    expect(page.locator(".wb-pane .wb-overview .wb-verdict")).to_contain_text("late in 40 of 40 steps")
    page.screenshot(path=ARTIFACTS / "picture_overview.png")


@pytest.mark.parametrize(
    ("name", "view", "text"),
    [
        ("nan", ".wb-values", "first NaN: pixels · replica 2"),
        ("sharding", ".wb-dataset-sharding", "1,400 elements"),
    ],
)
def test_an_output_of_a_cell(page: Any, lab: Lab, name: str, view: str, text: str) -> None:
    wide(page)
    open_notebook(page, lab, lab.notebook(f"{name}.ipynb", *CELLS[name]))
    command(page, "application:toggle-left-area")
    command(page, "notebook:run-all-cells")
    expect(page.locator(f".jp-Notebook {view}")).to_contain_text(text)
    command(page, "application:toggle-mode")  # without the panes that have opened beside the notebook
    page.locator(".jp-Notebook .jp-CodeCell").last.screenshot(path=ARTIFACTS / f"picture_{name}.png")


def test_the_dashboard_of_a_job(browser: Any, training: Job) -> None:
    command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser"]
    context = browser.new_context(viewport={"width": 1280, "height": 680}, color_scheme="dark")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            page = context.new_page()
            page.goto(server.stdout.readline().strip())
            training.run(120)
            page.get_by_role("tab", name="Timing").click()
            expect(page.locator(".wb-collective-table")).to_contain_text("360 collectives")
            for view in ("lanes", "heat-map", "sweep"):
                expect(page.locator(f".wb-{view} .wb-chart :is(canvas, svg)").first).to_be_visible()
            page.screenshot(path=ARTIFACTS / "picture_dashboard.png")
        finally:
            server.terminate()
            context.close()
