"""Recorded runs in JupyterLab with no cluster: opened from the panel, compared, and exported by the browser."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

import workbench as wb
from tests.e2e.conftest import Lab, command, expect, open_notebook
from tests.exports import saved
from tests.telemetry.runs.test_recorder import record

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def step(size: int) -> np.ndarray:
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(size, np.float32))
    return np.full(3, np.nan)


@pytest.fixture(scope="module")
def recorded(lab: Lab) -> Path:
    """Two runs of a job that has ended, in which a NaN was inspected."""
    folder = lab.root / "runs"
    with wb.connect(replicas=2, processes=False):
        strategy = wb.MirroredStrategy()
        for name in ("first", "second"):
            with wb.record(folder / f"{name}.parquet"):
                for _ in range(10):
                    losses = strategy.run(step, args=(1024,))
                wb.inspect(losses, name="losses")
    return folder


@pytest.fixture
def panel(page: Any, lab: Lab, recorded: Path) -> Any:
    """The left panel of a JupyterLab in which nothing runs."""
    open_notebook(page, lab, lab.notebook("nothing.ipynb", ""))
    command(page, "workbench:show-panel")
    panel = page.locator("#workbench-panel")
    expect(panel).to_contain_text("None yet. They appear here by themselves")
    return panel


def test_a_recorded_run_opens_from_the_panel_with_all_its_views(page: Any, panel: Any) -> None:
    panel.get_by_role("button", name="first").click()
    run = page.locator(".wb-pane .wb-replay")
    expect(run.locator(".wb-verdict")).to_be_visible()  # the overview first
    expect(run).to_contain_text("replay")

    run.get_by_role("tab", name="Topology").click()
    expect(run).to_contain_text("2 CPU devices")
    run.get_by_role("tab", name="Values").click()
    expect(run).to_contain_text("NaN")
    run.get_by_role("tab", name="Devices").click()
    expect(run).to_contain_text("worker")
    run.get_by_role("tab", name="Collectives").click()
    run.get_by_role("tab", name="Lanes").click()
    expect(run.locator("canvas")).to_be_visible()
    page.screenshot(path="artifacts/run.png")

    first, last = (int(field.input_value()) for field in run.locator(".wb-form input").all())
    run.get_by_label("steps from").fill(str(last))
    run.get_by_role("button", name="Show").click()
    run.get_by_role("tab", name="Table").click()
    expect(run.get_by_role("button", name="All steps")).to_be_visible()
    expect(run.get_by_text("1 collective", exact=True)).to_be_visible()
    run.get_by_role("button", name="All steps").click()
    expect(run.locator(".wb-form input").first).to_have_value(str(first))

    command(page, "workbench:next-alert")
    expect(page.locator(".wb-pane .wb-log td:focus .wb-what")).to_have_text("NaN")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="first: Values")).to_be_visible()


def test_a_run_that_was_recorded_again_is_shown_as_it_is_now(page: Any, panel: Any, recorded: Path) -> None:
    again = recorded / "again.parquet"
    record(again, count=10)
    panel.get_by_role("button", name="again", exact=True).click()  # it opens by itself
    expect(page.get_by_role("tab", name="again: Recorded run")).to_be_visible()
    run = page.locator(".wb-pane .wb-replay")
    expect(run).to_contain_text("78 records")

    record(again, count=30)
    panel.get_by_role("button", name="again", exact=True).click()
    expect(run).to_contain_text("138 records")
    again.write_bytes(b"")
    expect(panel.get_by_role("button", name="again", exact=True)).to_be_disabled()
    command(page, "workbench:open-run", run="runs/again.parquet")
    expect(page.locator(".wb-pane-bar", has_text="damaged")).to_be_visible()
    command(page, "workbench:open-pane", view="runs")
    expect(page.locator(".wb-pane .wb-runs")).to_contain_text("again")
    again.unlink()
    expect(panel.get_by_role("button", name="again", exact=True)).to_have_count(0)
    expect(page.locator(".wb-pane .wb-runs")).not_to_contain_text("again")
    command(page, "workbench:open-pane", view="replay", run="runs/again.parquet")
    expect(page.locator(".wb-pane-bar", has_text="no recorded run")).to_be_visible()


def test_two_recorded_runs_are_compared(page: Any, panel: Any) -> None:
    panel.get_by_role("button", name="All runs, and compare two").click()
    runs = page.locator(".wb-pane .wb-runs")
    for name in ("first", "second"):
        runs.locator("tr", has_text=name).click()
    runs.get_by_role("button", name="Compare second with first").click()

    expect(runs).to_contain_text("second compared with first")
    comparison = runs.locator(".wb-part").nth(1)
    expect(comparison.locator("canvas")).to_be_visible()
    page.screenshot(path="artifacts/runs_compared.png")
    comparison.get_by_role("button", name="Table").click()
    expect(comparison).to_contain_text(re.compile(r"all_reduce.*4 KiB"))
    rows = list(csv.DictReader(io.StringIO(saved(comparison, "Table (CSV)").decode(), newline="")))
    assert [row["op"] for row in rows] == ["all_reduce"]
    assert float(rows[0]["first_p50_us"]) > 0

    page.keyboard.press("Alt+r")
    dialog = page.locator(".jp-Dialog")
    expect(dialog.get_by_label("Before")).to_have_value("runs/first.parquet")
    dialog.get_by_label("Before").select_option("second")
    dialog.get_by_label("After").select_option("first")
    dialog.get_by_role("button", name="Compare").click()
    expect(runs).to_contain_text("first compared with second")


def test_each_format_is_saved_by_the_browser(page: Any, panel: Any, recorded: Path) -> None:
    panel.get_by_role("button", name="first").click()
    run = page.locator(".wb-pane .wb-replay")
    run.get_by_role("tab", name="Collectives").click()
    run.get_by_role("tab", name="Lanes").click()
    lanes = run.locator(".wb-part .wb-part")
    expect(lanes.locator("canvas")).to_be_visible()

    known = wb.open_run(recorded / "first.parquet").to_arrow()
    times = sorted(known["t_enter_ns"].to_pylist())
    table = pq.read_table(io.BytesIO(saved(lanes, "Table (Parquet)")))
    assert sorted(table["t_enter_ns"].to_pylist()) == times
    rows = list(csv.DictReader(io.StringIO(saved(lanes, "Table (CSV)").decode(), newline="")))
    assert sorted(int(row["t_enter_ns"]) for row in rows) == times
    trace = json.loads(saved(lanes, "Trace (Perfetto)"))["traceEvents"]
    slices = [event for event in trace if event.get("cat") == "collective" and event["ph"] == "X"]
    assert sorted(round(event["ts"] * 1000) for event in slices) == pytest.approx(times, abs=200)
    svg = ElementTree.fromstring(saved(lanes, "Picture (SVG)"))
    assert any("all_reduce" in (text.text or "") for text in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert saved(lanes, "Picture (PNG)").startswith(b"\x89PNG")
    assert b"nranks 2" in saved(lanes, "Table (nccl-tests)")
    assert json.loads(saved(lanes, "Table (nccl-tests JSON)"))["results"][0]["nranks"] == 2
    assert json.loads(saved(lanes, "Everything (JSON)"))["view"] == "replay"


@pytest.mark.parametrize("writer", ["browser", "python"])
def test_a_report_draws_from_the_disk_and_asks_for_nothing(
    request: pytest.FixtureRequest, browser: Any, recorded: Path, tmp_path: Path, writer: str
) -> None:
    file = tmp_path / "report.html"
    if writer == "browser":
        page, panel = (request.getfixturevalue(name) for name in ("page", "panel"))
        panel.get_by_role("button", name="first").click()
        run = page.locator(".wb-pane .wb-replay")
        expect(run.locator(".wb-verdict")).to_be_visible()
        file.write_bytes(saved(run.locator(".wb-head").first, "Report (HTML)"))
    else:
        wb.report(file, wb.open_run(recorded / "first.parquet"), title="A report")

    context = browser.new_context(offline=True)
    report = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    report.on("request", lambda request: asked.append(request.url))
    report.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    report.on("pageerror", lambda error: faults.append(str(error)))
    report.goto(file.as_uri())
    report.get_by_role("tab", name="Collectives").click()
    report.get_by_role("tab", name="Lanes").click()
    expect(report.locator("canvas")).to_be_visible()
    report.screenshot(path=f"artifacts/report_{writer}.png", full_page=True)
    assert asked == [file.as_uri()]
    assert faults == []
    context.close()


def test_a_cell_shows_a_recorded_run_and_saves_a_report(
    page: Any, lab: Lab, browser: Any, recorded: Path, tmp_path: Path
) -> None:
    cells = (
        "import workbench as wb\nwb.open_run('runs/first.parquet')",
        "wb.runs().compare('first', 'second')",
    )
    open_notebook(page, lab, lab.notebook("replay.ipynb", *cells))
    command(page, "notebook:run-all-cells")
    run = page.locator(".jp-Notebook .wb-replay")
    run.get_by_role("tab", name="Collectives").click()
    expect(run).to_contain_text("all_reduce")
    expect(page.locator(".jp-Notebook .wb-runs")).to_contain_text("second compared with first")

    run.get_by_label("steps from").fill("9")
    run.get_by_role("button", name="Show").click()
    expect(run.get_by_text("1 collective", exact=True)).to_be_visible()
    file = tmp_path / "report.html"
    file.write_bytes(saved(run.locator(".wb-head").first, "Report (HTML)"))
    report = browser.new_page()
    report.goto(file.as_uri())
    report.get_by_role("tab", name="Collectives").click()
    expect(report.get_by_text("1 collective", exact=True)).to_be_visible()
    report.close()
