"""JupyterLab behind a proxy, as on a hub: panes and status bar follow the notebook in front, whatever else runs.

The proxy has TLS, and a prefix for each user: `page` fails if anything is asked outside of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.chromium import why_not
from tests.dashboards.test_tls import Identity, identity
from tests.e2e.conftest import PATIENCE_SECONDS, ROOT, Lab, command, expect, open_notebook, serving
from tests.tls_proxy import Route, tls_proxy

__all__ = ["identity"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELL = """
import numpy as np, workbench as wb
cluster = wb.connect(replicas={replicas}, processes=False)
strategy = wb.MirroredStrategy()
def step(x):
    return wb.distribute.get_replica_context().all_reduce("sum", x)
for _ in range(5):
    strategy.run(step, args=(np.ones(1024, np.float32),))
"""
BASE = "/user/ann/"
JOB = CELL.format(replicas=3) + "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n"


@pytest.fixture(scope="module")
def lab(built: ModuleType, identity: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Ann's, as browsers reach it through the proxy."""
    if why := why_not():
        pytest.skip(why)
    with (
        tls_proxy(identity.certificate, identity.key) as proxy,
        serving(tmp_path_factory.mktemp("lab"), built.LAB_BUNDLE, base=BASE) as behind,
    ):
        proxy.routes[BASE] = Route(behind.port)
        yield replace(behind, port=proxy.port, scheme="https")


@contextmanager
def job(lab: Lab) -> Iterator[None]:
    """A script of this user, elsewhere on this machine, whose cluster the Jupyter server sees."""
    environment = os.environ | {
        "WORKBENCH_RUNTIME_DIR": str(lab.root.parent / "workbench"),
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        (sys.executable, "-c", JOB), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        process.stdin.close()
        process.wait(PATIENCE_SECONDS)


def open_further(page: Any, name: str) -> None:
    """Opens a notebook behind those that are open, and waits until its kernel is ready."""
    command(page, "docmanager:open", path=name, factory="Notebook")
    page.wait_for_function(
        """(name) => {
          const panels = [...window.jupyterapp.shell.widgets('main')];
          const session = panels.find((panel) => panel.title.label === name)?.sessionContext;
          return session?.isReady && session.session?.kernel?.status === 'idle'
            && session.session.kernel.connectionStatus === 'connected';
        }""",
        arg=name,
    )


def choose(page: Any, name: str) -> None:
    """Brings a notebook to the front, as a click on its tab does."""
    page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text=name).click()


@pytest.mark.thorough
def test_a_job_elsewhere_opens_no_pane_and_is_not_taken_for_the_notebook_s(page: Any, lab: Lab) -> None:
    with job(lab):
        open_notebook(page, lab, lab.notebook("mine.ipynb", CELL.format(replicas=2)))
        command(page, "workbench:show-panel")
        expect(page.locator("#workbench-panel .wb-cluster")).to_contain_text("3 of 3 replicas")
        status = page.locator(".wb-status-item")
        expect(status).to_contain_text("no cluster")
        expect(page.locator(".wb-pane")).to_have_count(0)

        command(page, "workbench:open-pane", view="topology")
        expect(page.locator(".wb-pane-bar")).to_contain_text("mine.ipynb drives no cluster")
        expect(page.locator(".wb-pane .wb-topology")).to_contain_text("Nothing is running yet")
        expect(page.locator(".wb-pane .wb-topology .wb-chart")).to_have_count(0)
        command(page, "workbench:follow-newest")
        expect(page.locator(".wb-pane .wb-topology")).to_contain_text("3 CPU devices")
        command(page, "workbench:follow-notebook")
        expect(page.locator(".wb-pane .wb-topology .wb-chart")).to_have_count(0)

        command(page, "notebook:run-all-cells")
        expect(page.locator(".wb-pane .wb-topology")).to_contain_text("2 CPU devices")
        expect(status).to_contain_text("2/2 replicas")


def test_panes_and_status_bar_change_with_the_notebook_in_front(page: Any, lab: Lab) -> None:
    for name, replicas in (("two.ipynb", 2), ("three.ipynb", 3)):
        lab.notebook(name, CELL.format(replicas=replicas))
    open_notebook(page, lab, "two.ipynb")
    command(page, "notebook:run-all-cells")
    expect(page.locator(".wb-pane .wb-collectives")).to_contain_text("all_reduce")
    command(page, "workbench:open-pane", view="topology")
    topology, status = page.locator(".wb-pane .wb-topology"), page.locator(".wb-status-item")
    expect(topology).to_contain_text("2 CPU devices")

    choose(page, "two.ipynb")
    open_further(page, "three.ipynb")
    expect(page.locator(".wb-pane-bar:visible")).to_contain_text("three.ipynb drives no cluster")
    expect(status).to_contain_text("no cluster")
    command(page, "notebook:run-all-cells")
    expect(topology).to_contain_text("3 CPU devices")
    expect(status).to_contain_text("3/3 replicas")

    for name, replicas in (("two.ipynb", 2), ("three.ipynb", 3)):
        choose(page, name)
        expect(topology).to_contain_text(f"{replicas} CPU devices")
        expect(status).to_contain_text(re.compile(rf"^{replicas}/{replicas} replicas"))
    choose(page, "two.ipynb")
    command(page, "workbench:open-pane", view="topology")  # a pane in front changes nothing
    expect(topology).to_contain_text("2 CPU devices")
    page.screenshot(path="artifacts/lab_in_front.png")
