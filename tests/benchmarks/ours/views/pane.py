"""How long it takes in JupyterLab from opening a pane of a job that runs to the frame in which its data are painted.

The job is a cell that goes on and on. Times are those of the page's own clock.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.measure import Script
from tests.chromium import chromium
from tests.e2e.conftest import command, expect, open_notebook, serving
from workbench.ui.widgets.built import STATIC

BUNDLE = STATIC.parent / "labextension"
CELL = """
import time
from pathlib import Path
import numpy as np, workbench as wb
cluster = wb.connect(replicas=2)
strategy = wb.MirroredStrategy()
def step(x):
    return wb.distribute.get_replica_context().all_reduce("sum", x)
while not Path("enough").exists():
    strategy.run(step, args=(np.ones(1024, np.float32),))
    time.sleep(0.02)
cluster.close()
"""
OVERVIEW = {"overview": "canvas"}
VIEWS = {
    "collective_table": "td",
    "lanes": "canvas",
    "heat_map": "canvas",
    "topology": "canvas",
    "devices": "td",
}
"""What panes show, and what is in them as soon as there are data."""
OPEN = """async ([view, selector, within]) => {
  const { commands, shell } = window.jupyterapp;
  const frame = () => new Promise(requestAnimationFrame);
  performance.clearMarks();
  performance.mark('opened');
  const pane = await commands.execute('workbench:open-pane', { view });
  while (!pane.node.querySelector(`.wb ${selector}`)) {
    if (performance.now() - performance.getEntriesByName('opened')[0].startTime > within) throw new Error(view);
    await frame();
  }
  await frame(); // it is drawn now, and painted when the next one begins
  await frame();
  const took = performance.measure('open', 'opened').duration;
  pane.dispose();
  return took;
}"""
_PATIENCE_MS = 30_000


def main() -> None:
    """Measures it: each view is opened several times."""
    script = Script("views", __doc__, panes=10)
    with (
        script.case("workbench", "pane, open to first paint", unit="s", scale=1e-3) as panes,
        script.case("workbench", "pane of the Overview, open to first paint", unit="s", scale=1e-3) as first,
        tempfile.TemporaryDirectory() as home,
        serving(Path(home), BUNDLE) as lab,
        chromium() as browser,
    ):
        page = browser.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        open_notebook(page, lab, lab.notebook("job.ipynb", CELL))
        command(page, "notebook:run-all-cells")
        expect(page.locator(".wb-collectives")).to_contain_text("all_reduce")
        for _ in range(script.options.panes):
            for case, views in ((panes, VIEWS), (first, OVERVIEW)):
                case.samples += [page.evaluate(OPEN, [*view, _PATIENCE_MS]) for view in views.items()]
        (lab.root / "enough").touch()
        expect(page.locator(".wb-collectives")).to_contain_text("stopped")


if __name__ == "__main__":
    main()
