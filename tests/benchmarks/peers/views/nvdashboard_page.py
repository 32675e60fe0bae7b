"""jupyterlab-nvdashboard's page of machine resources, which is the one that shows something without a GPU.

From the click in JupyterLab to the first points; bytes; CPU of the Jupyter server. It shows the machine, not a job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.browser import PICTURE, SIZE, Page, job
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.views import dask_page
from tests.chromium import chromium

WHO = "nvdashboard machine resources"
START_SECONDS = 60.0
CLICK = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const buttons = [...document.querySelectorAll(".gpu-dashboard-button")];
  const button = buttons.find((one) => one.textContent === "Machine Resources");
  const began = performance.now();
  button.click();
  while (!document.querySelector("#jp-main-dock-panel :is(.recharts-line-dot, .recharts-line-curve)")) await frame();
  await frame();
  await frame();
  return (performance.now() - began) / 1000;
}"""
CLOSE = """() => {
  const shown = [...window.jupyterapp.shell.widgets("main")];
  shown.find((one) => one.title.label === "Machine Resources").close();
}"""


def main() -> None:
    """Measures it several times in one JupyterLab."""
    script = Script("views", __doc__, pages=5, picture="")
    if script.options.picture:
        picture(script.options.picture)
        return
    seconds = 10.0 * script.options.scale
    took, first, later, cpu = [], [], [], []
    with _lab() as (url, process), chromium() as browser:
        page = opened(browser, url, SIZE)
        for _ in range(script.options.pages):
            without = _cpu(process, page, seconds)
            before = page.received
            took.append(float(page.page.evaluate(CLICK)))
            first.append(float(page.received - before))
            before = page.received
            cpu.append(_cpu(process, page, seconds) - without)
            later.append((page.received - before) / seconds * 10)
            page.page.evaluate(CLOSE)
        page.close()
    for what, unit, scale, samples in (
        ("pane, first data", "s", 1.0, took),
        ("pane, sent until then", "kB", 1e-3, first),
        ("pane, sent in 10 s more", "kB", 1e-3, later),
        ("pane, CPU while open", "% of a core", 100.0, cpu),
    ):
        with script.case(WHO, what, unit=unit, scale=scale, replicas=0) as case:
            case.samples = samples


def opened(browser: Any, url: str, viewport: dict[str, int]) -> Page:
    """JupyterLab, with the list of nvdashboard's pages open."""
    page = Page(browser, viewport)
    page.page.goto(url)
    page.page.locator("[data-id='gpu-dashboard']").first.click()
    page.page.wait_for_selector(".gpu-dashboard-button")
    return page


def picture(file: str) -> None:
    """A picture of the page while the job of the other pages runs; that is Dask's here."""
    with job(dask_page.work), _lab() as (url, _), chromium() as browser:
        page = opened(browser, url, PICTURE)
        page.page.evaluate(CLICK)
        page.keep(file)
        page.close()


def _cpu(process: psutil.Process, page: Page, seconds: float) -> float:
    """How much of one core the server uses during some seconds."""
    before = sum(process.cpu_times()[:2])
    page.stay(seconds)
    return float(sum(process.cpu_times()[:2]) - before) / seconds


@contextmanager
def _lab() -> Iterator[tuple[str, psutil.Process]]:
    """Starts JupyterLab in temporary folders; returns its address and its process."""
    with tempfile.TemporaryDirectory() as home:
        folders = {f"JUPYTER_{name}_DIR": f"{home}/{name}" for name in ("CONFIG", "DATA", "RUNTIME")}
        folders |= {f"JUPYTERLAB_{name}_DIR": f"{home}/{name}" for name in ("SETTINGS", "WORKSPACES")}
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
        command += [f"--ServerApp.root_dir={home}", "--expose-app-in-browser"]
        news = (
            Path(home)
            / "SETTINGS"
            / "@jupyterlab"
            / "apputils-extension"
            / "notification.jupyterlab-settings"
        )
        news.parent.mkdir(parents=True)
        news.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, env=os.environ | folders | {"IPYTHONDIR": home}, **quiet)
        try:
            told = _told(Path(home) / "RUNTIME")
            yield f"{told['url']}lab?reset&token={told['token']}", psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _told(runtime: Path) -> dict[str, str]:
    """What a server writes down when it has started."""
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        for file in runtime.glob("jpserver-*.json"):
            found: dict[str, str] = json.loads(file.read_text() or "{}")
            if found:
                return found
        time.sleep(0.1)
    raise TimeoutError("JupyterLab did not start")


if __name__ == "__main__":
    main()
