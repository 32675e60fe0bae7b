"""Row 39, whole pages: the dashboard and JupyterLab with a recorded run in which every text is hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat.v4
import pytest

import workbench as wb
from tests.e2e.conftest import (
    PATIENCE_SECONDS,
    TOKEN,
    Lab,
    browser,
    built,
    context,
    expect,
    hatch_build,
    lab,
    page,
)
from tests.security.payloads import PAYLOADS, encodable
from tests.security.runs import write_run
from workbench.ui.widgets.bundle import MIME

__all__ = ["browser", "built", "context", "hatch_build", "lab", "page"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SMUGGLED = """() => [...document.querySelectorAll(".wb *")].flatMap((element) => [
  ...(/^(script|iframe|object|embed|img|link|meta|base|form|video|audio)$/.test(element.localName)
    ? [element.localName] : []),
  ...[...element.attributes].map(({ name }) => name).filter((name) => /^(on.*|src|href|srcdoc)$/.test(name)),
])"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [encodable(payload)[:400] for payload in PAYLOADS]
    return write_run(tmp_path_factory.mktemp("runs") / "<img src=x onerror=hit=1>.parquet", texts)


@pytest.fixture
def dialogs(page: Any) -> Iterator[list[str]]:
    """What dialogs said; there must be none."""
    told: list[str] = []
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    yield told
    assert told == []


def expect_nothing_ran(page: Any) -> None:
    assert page.evaluate(SMUGGLED) == []
    assert page.evaluate("() => 'hit' in window") is False


def test_nothing_runs_in_the_dashboard(browser: Any, hostile: Path) -> None:
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE_SECONDS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    with wb.dashboard(hostile) as dashboard:
        own = dashboard.url.partition("?")[0].rstrip("/")
        page.goto(dashboard.url)
        expect(page.locator(".wb-replay")).to_contain_text("<script>hit=1</script>: too large")
        for tab in page.get_by_role("tablist", name="What was recorded").get_by_role("tab").all():
            tab.click()
            expect(tab).to_have_attribute("aria-selected", "true")
            expect_nothing_ran(page)
        assert [
            url for url in asked if not url.startswith((own, own.replace("http", "ws"), "blob:", "data:"))
        ] == []
        page.close()


@pytest.mark.usefixtures("dialogs")
def test_nothing_runs_in_a_saved_notebook_or_the_panel(page: Any, lab: Lab, hostile: Path) -> None:
    (lab.root / "runs").mkdir()
    (lab.root / "runs" / hostile.name).write_bytes(hostile.read_bytes())
    shown = [wb.open_run(hostile), wb.runs(hostile.parent)]
    outputs = [
        nbformat.v4.new_output("display_data", data=json.loads(json.dumps(each._repr_mimebundle_({MIME}))))
        for each in shown
    ]
    for output in outputs:
        output["data"][MIME]["version"] = 1
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("show", outputs=outputs)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (lab.root / "hostile.ipynb").write_text(json.dumps(notebook), encoding="utf-8")

    page.goto(f"{lab.url}/lab/tree/hostile.ipynb?reset&token={TOKEN}")
    expect(page.locator(".jp-Notebook .wb-replay")).to_contain_text("<script>hit=1</script>")
    expect(page.locator(".jp-Notebook .wb-runs")).to_contain_text("<img src=x onerror=hit=1>")
    expect_nothing_ran(page)
