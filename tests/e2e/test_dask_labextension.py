"""dask-labextension in the same JupyterLab, both installed by pip: its list has our pages, and each does its work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import why_not
from tests.commands import output_of
from tests.e2e.conftest import (
    ARTIFACTS,
    PATIENCE_SECONDS,
    ROOT,
    TOKEN,
    Lab,
    command,
    end,
    expect,
    open_notebook,
    started,
)

pytestmark = [pytest.mark.e2e, pytest.mark.installs, pytest.mark.timeout(900)]

CELL = """
import numpy as np, workbench as wb
from distributed import LocalCluster
dask = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0")
cluster = wb.connect(dask)
strategy = wb.MirroredStrategy()
pages = wb.dask_pages(cluster)
def step(x):
    return wb.distribute.get_replica_context().all_reduce("sum", x)
for _ in range(8):
    strategy.run(step, args=(np.ones(1024, np.float32),))
print("its pages:", dask.dashboard_link)
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with both.

    Attributes:
      home: Its folder; what runs in it keeps its files there.
    """

    home: Path

    def variables(self) -> dict[str, str]:
        """An environment in which nothing of the checkout is found."""
        keep = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.home)}
        return keep | {"WORKBENCH_RUNTIME_DIR": os.environ["WORKBENCH_RUNTIME_DIR"]}

    def run(self, program: str, *arguments: str) -> str:
        """Runs one of its programs; its output.

        Raises:
          AssertionError: if it fails.
        """
        return output_of(
            [self.home / "bin" / program, *arguments],
            environment=self.variables(),
            timeout_seconds=800,
            folder=self.home,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    if why := why_not():
        pytest.skip(why)
    environment = Environment(tmp_path_factory.mktemp("beside") / "environment")
    subprocess.run([sys.executable, "-m", "venv", environment.home], check=True, timeout=300)
    try:
        pinned = str(ROOT / "constraints.txt")
        environment.run("pip", "install", "-c", pinned, f"{ROOT}[lab]", "dask-labextension")
        yield environment
    finally:
        shutil.rmtree(environment.home)  # half a GB, which pytest would otherwise keep for three more runs


@pytest.fixture(scope="module")
def lab(environment: Environment) -> Iterator[Lab]:
    """Its JupyterLab, with the extensions as pip has put them there."""
    root, log = environment.home / "root", environment.home / "log"
    root.mkdir()
    command = [environment.home / "bin" / "jupyter-lab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    command += [
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
        "--expose-app-in-browser",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment.variables(),
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        runtime = environment.home / ".local" / "share" / "jupyter" / "runtime"
        yield started(process, runtime, log, root)
    finally:
        end(process)


@pytest.fixture
def page(lab: Lab, browser: Any) -> Iterator[Any]:
    """A page that asks this machine only: JupyterLab, and Dask's server behind it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    page.screenshot(path=ARTIFACTS / "dask_labextension.png")
    context.close()
    for session in lab.request("GET", "/api/sessions"):
        lab.request("DELETE", f"/api/sessions/{session['id']}")
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []


def test_jupyter_lists_both(environment: Environment) -> None:
    listed = environment.run("jupyter", "labextension", "list")
    assert re.search(r"workbench-lab v\S+ enabled OK", listed)
    assert re.search(r"dask-labextension v\S+ enabled OK", listed)
    listed = environment.run("jupyter", "server", "extension", "list")
    for name in ("workbench.server", "dask_labextension"):
        assert re.search(rf"{name}\s+\S*\s*OK", listed)


def test_its_list_has_our_pages_and_both_draw(page: Any, lab: Lab) -> None:
    open_notebook(page, lab, lab.notebook("beside.ipynb", CELL))
    command(page, "notebook:run-all-cells")
    printed = page.locator(".jp-OutputArea-output", has_text="its pages:")
    address = str(printed.inner_text()).rpartition(" ")[2].strip().removesuffix("/status")
    expect(page.locator(".wb-pane .wb-collectives")).to_contain_text("8 collectives")

    page.get_by_role("tab", name="Dask").click()
    dask = page.locator(".dask-DaskDashboardLauncher")
    dask.locator("input").fill(address)
    dask.locator("input").press("Enter")
    for name in ("Collectives", "Lanes", "Lateness", "Sweep"):
        expect(dask.get_by_role("button", name=f"Workbench {name}", exact=True)).to_be_enabled()
    expect(dask.get_by_role("button", name="Task Stream", exact=True)).to_be_enabled()

    dask.get_by_role("button", name="Task Stream", exact=True).click()
    own = page.frame_locator(f"iframe[src='{address}/individual-task-stream']")
    expect(own.locator("canvas").first).to_be_visible()
    dask.get_by_role("button", name="Workbench Collectives", exact=True).click()
    drawn = page.frame_locator(f"iframe[src='{address}/individual-workbench-collectives']")
    expect(drawn.locator(".wb-collective-table")).to_contain_text("8 collectives")
