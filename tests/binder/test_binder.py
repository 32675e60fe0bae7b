"""What `binder/` describes can be built and opened, and needs less than 2 GB."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from typing import Any

import psutil
import pytest

from tests.binder.conftest import Image
from tests.e2e.conftest import ARTIFACTS, ROOT, TOKEN, Lab, command, expect, wait_for_notebook
from tests.e2e.test_lab_layouts import OVERVIEW, expect_panes, expect_panes_beside_the_notebook
from workbench import allowance

MOST_BYTES = 2_000_000_000
RUN_ALL_BUT_THE_LAST = """async () => {
  const shell = window.jupyterapp.shell;
  const panel = [...shell.widgets('main')].find((widget) => widget.sessionContext && widget.content?.widgets);
  shell.activateById(panel.id);
  panel.content.activeCellIndex = panel.content.widgets.length - 1;
  await window.jupyterapp.commands.execute('notebook:run-all-above');
  const cells = panel.content.model.cells;
  return [...cells].slice(0, -1).filter((cell) => cell.type === 'code').map((cell) => ({
    source: cell.sharedModel.getSource(), count: cell.executionCount, outputs: cell.outputs.toJSON() }));
}"""


def test_the_files_are_what_repo2docker_looks_for() -> None:
    binder = ROOT / "binder"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    language, _, version = (binder / "runtime.txt").read_text(encoding="ascii").strip().partition("-")

    assert language == "python"
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    assert "-c ../constraints.txt" in (binder / "requirements.txt").read_text(encoding="ascii").splitlines()
    for script in ("postBuild", "start"):
        assert (binder / script).stat().st_mode & 0o111, f"{script} cannot be executed"
        assert (binder / script).read_bytes().startswith(b"#!/bin/bash\n")


@pytest.mark.binder
@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_the_environment_opens_the_quickstart_beside_its_panes_and_runs_it_in_less_than_2_gb(
    image: Image, process: subprocess.Popen[bytes], lab: Lab, page: Any
) -> None:
    assert _versions(image).items() <= _constraints().items()
    assert not (image.repository / "extension" / "node_modules").exists()
    assert psutil.Process(process.pid).environ()["OMP_NUM_THREADS"] == str(allowance.cores())

    page.goto(f"{lab.url}/?token={TOKEN}")  # where a badge without a path leads
    wait_for_notebook(page)
    assert page.url.endswith("/lab/tree/notebooks/01_quickstart.ipynb")
    expect_panes(page, OVERVIEW)
    expect_panes_beside_the_notebook(page)
    expect(page.locator(".Toastify__toast")).to_have_count(0)

    page.screenshot(path=ARTIFACTS / "binder_opened.png")
    cells = page.evaluate(RUN_ALL_BUT_THE_LAST)
    outputs = {cell["source"].splitlines()[-1]: cell["outputs"] for cell in cells}
    assert [output for each in outputs.values() for output in each if output["output_type"] == "error"] == []
    assert [cell["count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert "digits that no replica ever saw" in json.dumps(outputs)
    expect(page.locator(".wb-pane .wb-topology")).to_contain_text("replica")
    expect(page.locator(".wb-pane .wb-collectives")).to_contain_text("all_reduce")
    expect(page.locator(".wb-status-item")).to_contain_text("2/2 replicas")  # they are measured, too
    used = _memory_bytes(process.pid)
    _write_down(used)
    assert sum(used.values()) < MOST_BYTES

    command(page, "notebook:run-all-below")
    expect(page.locator(".wb-status-item")).to_contain_text("no cluster")


def _versions(image: Image) -> dict[str, str]:
    """The versions of all packages in the environment except pip's own and ours."""
    listed = json.loads(image.run("pip", "list", "--format=json", "--exclude-editable"))
    return {row["name"].lower(): row["version"] for row in listed if row["name"] not in ("pip", "setuptools")}


def _constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="ascii").splitlines()
    return {name.lower(): version for name, _, version in (line.partition("==") for line in lines)}


def _memory_bytes(pid: int) -> dict[str, int]:
    """The memory of the server, the kernel and the workers, with each process's part of shared pages (PSS)."""
    server = psutil.Process(pid)
    return {
        f"{one.pid} {' '.join(one.cmdline())[-60:]}": one.memory_full_info().pss
        for one in (server, *server.children(recursive=True))
    }


def _write_down(used: dict[str, int]) -> None:
    lines = [f"{size / 1e6:7.1f} MB  {name}" for name, size in used.items()]
    lines.append(
        f"{sum(used.values()) / 1e6:7.1f} MB  together; Python {sys.version_info.major}.{sys.version_info.minor}"
    )
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / "binder_memory.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
