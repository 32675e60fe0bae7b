"""A real JupyterLab in a real Chromium, in folders of their own; nothing leaves this machine."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.chromium import chromium, why_not
from tests.extension.conftest import built, hatch_build
from tests.jupyter_server import announced

__all__ = ["built", "hatch_build"]

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
TOKEN = "only-for-tests"
PATIENCE_SECONDS = 45.0
EXIT_SECONDS = 15.0
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
NOTEBOOK_IS_READY = """() => {
  const shell = window.jupyterapp?.shell;
  const panel = shell && [...shell.widgets('main')].find((widget) => widget.sessionContext && widget.content?.widgets);
  const session = panel?.sessionContext;
  return Boolean(session?.isReady && session.session?.kernel?.connectionStatus === 'connected'
    && session.session.kernel.status === 'idle' && panel.content.widgets.length);
}"""


@dataclass(frozen=True, slots=True)
class Lab:
    """A JupyterLab.

    Attributes:
      port: On loopback.
      root: The folder that it serves.
      base: What all its paths begin with, without a slash at the end.
      scheme: "https" where a proxy stands before it.
    """

    port: int
    root: Path
    base: str = ""
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{self.base}"

    def request(self, method: str, path: str, content: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        if self.scheme == "https":
            trusting = ssl._create_unverified_context()  # a self-signed certificate
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=PATIENCE_SECONDS, context=trusting
            )
        try:
            sent = None if content is None else json.dumps(content)
            connection.request(method, self.base + path, sent, {"Authorization": f"token {TOKEN}"})
            body = connection.getresponse().read()
            return json.loads(body) if body else None
        finally:
            connection.close()

    def notebook(self, name: str, *cells: str, layout: Any = None) -> str:
        """Writes a notebook, which may bring a layout of panes; returns its name."""
        import nbformat.v4

        content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        content.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        if layout is not None:
            content.metadata["workbench"] = {"layout": layout}
        (self.root / name).write_text(json.dumps(content), encoding="utf-8")
        return name


@pytest.fixture(scope="module")
def lab(built: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One for each module, with the extension as it was just built."""
    if why := why_not():
        pytest.skip(why)
    with serving(tmp_path_factory.mktemp("lab"), built.LAB_BUNDLE) as lab:
        yield lab


TIMING_FIRST = {"openOnFirstCluster": ["collectives", "topology"]}
"""What most tests look at opens by itself; what opens where nothing was set is `test_first_sight`'s."""


@contextmanager
def serving(
    home: Path, bundle: Path, panes: dict[str, Any] = TIMING_FIRST, *, base: str = "/"
) -> Iterator[Lab]:
    """A JupyterLab with the built extension `bundle`, which keeps everything in the empty folder `home`.

    Args:
      home: The folder.
      bundle: The extension.
      panes: What a person has set for the extension.
      base: What all its paths begin with.
    """
    root, extensions = home / "root", home / "labextensions"
    root.mkdir()
    extensions.mkdir()
    (extensions / "workbench-lab").symlink_to(bundle)
    for name, values in (SETTINGS | {"workbench-lab/plugin": panes}).items():
        file = home / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="ascii")
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_CONFIG_PATH": str(ROOT / "extension" / "jupyter"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "WORKBENCH_RUNTIME_DIR": str(home / "workbench"),
        "IPYTHONDIR": str(home / "ipython"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    command += [
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.base_url={base}",
        "--expose-app-in-browser",
    ]
    command += [f"--LabServerApp.extra_labextensions_path={extensions}", "--LabApp.collaborative=False"]
    command += ["--JupyterNotebookApp.expose_app_in_browser=True"]
    # It serves no part of workbench, and adds a second to each start.
    command += ["--ServerApp.jpserver_extensions", "panel.io.jupyter_server_extension=False"]
    # A kernel that has had worker processes would wait 29 s for `multiprocessing`'s resource tracker, which ignores
    # signals. The server ends such a kernel after half of this time, which is 5 s by default.
    command += ["--KernelManager.shutdown_wait_time=2.0"]
    log = home / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=root, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield started(process, home / "runtime", log, root)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a JupyterLab; its kernels are gone by then.

    A thread of AnyIO that begins while the server's loop ends is never told to stop, and Python waits for it. That ours
    let a server end is tested with those of `tests/server`.
    """
    process.terminate()
    try:
        process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE_SECONDS)


def started(process: subprocess.Popen[bytes], runtime: Path, log: Path, root: Path) -> Lab:
    """The JupyterLab of a process, once it listens at the port that it has chosen."""
    told = announced(process, runtime, log, seconds=PATIENCE_SECONDS)
    return Lab(told["port"], root, told["base_url"].rstrip("/"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if why := why_not():
        pytest.skip(why)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    """What the pages of a module share: JupyterLab's scripts, once fetched. Whatever else it keeps is on the server."""
    # Some tests run behind a proxy with its own certificate.
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    yield context
    context.close()


@pytest.fixture
def page(lab: Lab, context: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of its own; the test fails if anything was asked of another machine. Leaves a screenshot in artifacts/."""
    with page_of(lab, context, request.node.name) as page:
        yield page


@contextmanager
def page_of(lab: Lab, context: Any, name: str) -> Iterator[Any]:
    """A page, whose kernels end with it. Fails if anything was asked of another machine."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")
    page.close()
    for session in lab.request("GET", "/api/sessions"):
        lab.request("DELETE", f"/api/sessions/{session['id']}")
    assert [url for url in asked if not url.startswith((lab.url, "data:", "blob:"))] == []


def open_notebook(page: Any, lab: Lab, name: str) -> None:
    """Opens a notebook in an empty workspace; its kernel, which starts while the page loads, is ready then."""
    kernel = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    lab.request("POST", "/api/sessions", kernel)
    page.goto(f"{lab.url}/lab/tree/{name}?reset&token={TOKEN}")
    wait_for_notebook(page)


def wait_for_notebook(page: Any) -> None:
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_function(NOTEBOOK_IS_READY)


def command(page: Any, name: str, /, **arguments: Any) -> None:
    """Runs a command of JupyterLab, without waiting for its end."""
    page.evaluate(
        "([name, args]) => { void window.jupyterapp.commands.execute(name, args); }", [name, arguments]
    )


def drag(page: Any, chart: Any, begin: float, end: float) -> None:
    """Drags across a chart, between two shares of its width."""
    box = chart.bounding_box()
    for share, act in ((begin, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2, steps=4)
        act()


def expect(locator: Any) -> Any:
    """Playwright's assertions, as patient as everything here."""
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * PATIENCE_SECONDS)
    return expect(locator)
