"""A notebook's views under the widget manager of VS Code: its own published code, a real kernel, a real Chromium.

VS Code's Jupyter extension draws widgets with the class `WidgetManager` of a package that it publishes on npm. That
class loads anywidget as an AMD module from the environment of the kernel. What stays untested is VS Code itself: how
it sends messages between its process and the page, and its themes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.conftest import ROOT, TOKEN, Lab, expect
from tests.exports import saved

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.e2e
MANAGER: Final = "@vscode/jupyter-ipywidgets8@1.0.9"
LIBRARIES: Final = ("@jupyterlab/services@7.6.6", "requirejs@2.3.7")
PATIENCE_SECONDS: Final = 120.0
NBEXTENSIONS: Final = Path(sys.prefix) / "share" / "jupyter" / "nbextensions"
CELLS: Final = (
    """
import numpy as np, workbench as wb
wb.connect(replicas=2)
strategy = wb.MirroredStrategy()
with strategy.scope():
    w = wb.Variable(np.arange(6.0), name="w")
wb.overview()
""",
    """
@wb.function
def step():
    return np.mean(wb.distribute.get_replica_context().all_reduce("sum", np.ones(3)))
for _ in range(30):
    strategy.run(step)
wb.inspect(w)
""",
)
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>a notebook</title><html lang="en"><base href="/vscode/">
<main></main><script src="require.js"></script><script src="services.js"></script><script type="module">
import { activate } from "./ipywidgets.js";
activate();
window.vscIPyWidgets8.load();
const mimetype = "application/vnd.jupyter.widget-view+json";
window.attach = async (baseUrl, token, model) => {
  const wsUrl = baseUrl.replace("http", "ws");
  const serverSettings = services.ServerConnection.makeSettings({ baseUrl, token, wsUrl, appendToken: true });
  window.kernel = new services.KernelManager({ serverSettings }).connectTo({ model });
  window.failures = [];
  const loader = {
    widgetsRegisteredInRequireJs: new Set(),
    loadWidgetScript: async (name) => {
      requirejs.config({ paths: { [name]: `nbextensions/${name}/index` } });
      loader.widgetsRegisteredInRequireJs.add(name);
    },
    errorHandler: (...given) => window.failures.push(given.join(" ")),
    successHandler: () => {},
  };
  const main = document.querySelector("main");
  window.manager = new window.vscIPyWidgets.WidgetManager(window.kernel, main, loader, () => {});
};
window.run_cell = async (code) => {
  const shown = [];
  const future = window.kernel.requestExecute({ code });
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "error") window.failures.push(content.traceback.join("\\n"));
    if (content.data?.[mimetype]) shown.push(content.data[mimetype]);
  };
  await future.done;
  for (const data of shown) {
    const place = document.createElement("section");
    document.querySelector("main").append(place);
    const view = await window.manager.create_view(await window.manager.get_model(data.model_id), { el: place });
    await window.manager.display_view(data, view, { node: place });
  }
  return shown.length;
};
window.ready = true;
</script>"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files that the page loads, by name, as their authors publish them."""
    folder = tmp_path_factory.mktemp("npm")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: nothing can fetch what VS Code publishes")
    # The package's dependencies, some 350 MB, are only for building it: the archive has everything in one file.
    commands = (
        [npm, "pack", "--silent", MANAGER],
        [npm, "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *LIBRARIES],
    )
    (folder / "package.json").write_text("{}", encoding="ascii")
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch what VS Code publishes: {done.stderr.strip()[-200:]}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    esbuild = ROOT / "extension" / "node_modules" / ".bin" / "esbuild"
    entry = "node_modules/@jupyterlab/services/lib/index.js"
    options = [
        "--bundle",
        "--format=iife",
        "--global-name=services",
        "--outfile=services.js",
        "--log-level=error",
    ]
    subprocess.run([esbuild, entry, *options], cwd=folder, check=True, timeout=120)
    return {
        "ipywidgets.js": folder / "package" / "dist" / "ipywidgets.js",
        "require.js": folder / "node_modules" / "requirejs" / "require.js",
        "services.js": folder / "services.js",
    }


@pytest.mark.timeout(300)  # npm fetches some 30 MB first
def test_views_are_drawn_follow_the_kernel_and_ask_it(
    lab: Lab, page: Page, published: dict[str, Path]
) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(f"{lab.url}/vscode/")
        path = NBEXTENSIONS / name.removeprefix("nbextensions/") if "/" in name else published[name]
        route.fulfill(path=path)

    page.route(f"{lab.url}/vscode/**", answer)
    session = {"path": "code.ipynb", "name": "code.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    kernel: dict[str, Any] = lab.request("POST", "/api/sessions", session)["kernel"]
    # Chromium lets only pages from loopback connect to a server there.
    page.goto(f"{lab.url}/login")
    page.set_content(PAGE)
    page.wait_for_function("() => window.ready")
    page.evaluate("(given) => window.attach(...given)", [f"{lab.url}/", TOKEN, kernel])

    page.evaluate("(code) => window.run_cell(code)", CELLS[0])
    overview = page.locator("main .wb-overview")
    expect(overview).to_contain_text("No step has run yet")
    page.evaluate("(code) => window.run_cell(code)", CELLS[1])
    expect(overview).to_contain_text("All copies agree, no NaN")
    expect(overview).to_contain_text("2 of 2")

    values = page.locator("main .wb-values")
    expect(values).to_contain_text("MirroredVariable w:0")
    agreed = values.get_by_text("all copies agree", exact=True)
    expect(agreed).to_be_visible()
    page.evaluate("(code) => window.run_cell(code)", "wb.field_terms()")
    expect(values).to_contain_text("max|Δ| = 0")
    page.evaluate("(code) => window.run_cell(code)", "wb.field_terms(False)")
    expect(agreed).to_be_visible()
    values.get_by_role("button", name="Elements").click()
    expect(values).to_contain_text("Elements of w:0")  # the kernel has answered it
    # Through messages that the kernel sends on request.
    assert json.loads(saved(values, "Everything (JSON)", -1))["view"] == "values"
    assert page.evaluate("() => window.failures") == []
    assert faults == []
