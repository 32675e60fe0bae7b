"""The five demonstrations: each what somebody does in JupyterLab from an empty notebook to what is then seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Lab, command, expect, open_notebook, wait_for_notebook
from tests.e2e.test_lab_layouts import PANES

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

SLOW_STEPS = 24
DARK = "JupyterLab Dark"
IMPORTS = "import numpy as np, workbench as wb\n"
TRAIN = """
cluster = wb.connect(replicas={replicas}, processes={processes})
strategy = wb.MirroredStrategy()
def step(x):
    context = wb.distribute.get_replica_context()
    context.all_reduce("mean", x)
    return context.all_reduce("sum", x)
x = np.ones(1024, np.float32)
for _ in range({steps}):
    strategy.run(step, args=(x,))
"""
WATCH_FOR_BANNER = """() => {
  delete window.bannerAt;
  const look = () => { if (document.querySelector('.wb-pane [role=alert]')) window.bannerAt ??= Date.now(); };
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
}
"""Bus bandwidth over algorithm bandwidth with n replicas, as nccl-tests' PERFORMANCE.md has it."""


def run_cells(page: Any, lab: Lab, name: str, *cells: str) -> None:
    open_notebook(page, lab, lab.notebook(name, *cells))
    command(page, "notebook:run-all-cells")


def grounds(page: Any) -> dict[str, int]:
    """How bright what lies behind each part of workbench in the page is, 0 to 765."""
    found: dict[str, int] = page.evaluate(
        """() => {
          const colour = (at) => getComputedStyle(at).backgroundColor;
          const bright = (node) => {
            while (node.parentElement && colour(node) === 'rgba(0, 0, 0, 0)') node = node.parentElement;
            return colour(node).match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
          };
          const parts = document.querySelectorAll('.wb-pane, .wb, #workbench-panel, .wb-status-item');
          return Object.fromEntries([...parts].map((node, index) => [`${index} ${node.className}`, bright(node)]));
        }"""
    )
    return found


def tab_to(page: Any, target: Any, key: str = "Tab") -> None:
    """Presses Tab, or another key, until something, or what is in it, has the focus."""
    for _ in range(40):
        if target.evaluate("(node) => node.contains(document.activeElement)"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{target} is not reached by {key}")


def texts_by_keys(page: Any, grid: Any) -> list[list[str]]:
    """What a person reads who comes by Tab and goes through a table by arrow keys."""
    keyboard = page.keyboard
    tab_to(page, grid)
    focused = "() => document.activeElement.closest('th, td').innerText"
    keyboard.press("Control+Home")
    rows, columns = grid.evaluate("(node) => [node.rows.length, node.rows[0].cells.length]")
    found = []
    for row in range(rows):
        line = []
        for column in range(columns):
            line.append(page.evaluate(focused))
            if column < columns - 1:
                keyboard.press("ArrowRight")
        found.append(line)
        if row < rows - 1:
            keyboard.press("Home")
            keyboard.press("ArrowDown")
    return found


def texts(grid: Any) -> list[list[str]]:
    return list(
        grid.evaluate("(node) => [...node.rows].map((row) => [...row.cells].map((cell) => cell.innerText))")
    )


def restart_kernel(page: Any) -> None:
    page.evaluate(
        """() => [...window.jupyterapp.shell.widgets('main')].find((widget) => widget.sessionContext)
             .sessionContext.session.kernel.restart()"""
    )


@pytest.fixture
def light_afterwards(page: Any) -> Iterator[None]:
    yield
    command(page, "apputils:change-theme", theme="JupyterLab Light")
    page.wait_for_selector("body[data-jp-theme-light='true']", state="attached")


@pytest.mark.usefixtures("light_afterwards")
def test_1_one_cell_fills_the_panes_which_follow_the_theme_and_are_read_by_keys(page: Any, lab: Lab) -> None:
    train = TRAIN.format(replicas=2, processes=False, steps=5)
    run_cells(page, lab, "first.ipynb", IMPORTS + train + "cluster")
    timing = page.locator(".wb-pane .wb-collectives")
    expect(timing).to_contain_text("10 collectives")
    expect(page.locator(".jp-Notebook .wb-topology")).to_contain_text("2 CPU devices")
    expect(page.locator(".wb-pane")).to_have_count(2)  # the other one is a tab behind it

    command(page, "workbench:show-panel")
    expect(page.locator("#workbench-panel")).to_contain_text("first.ipynb")
    light = grounds(page)
    command(page, "apputils:change-theme", theme=DARK)
    page.wait_for_selector("body[data-jp-theme-light='false']", state="attached")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    dark = grounds(page)
    assert len(light) >= 6  # two panes, two views, the panel, and the status bar item
    assert list(dark) == list(light)
    assert {part: bright for part, bright in light.items() if bright < 600} == {}
    assert {part: bright for part, bright in dark.items() if bright > 250} == {}
    page.screenshot(path="artifacts/demonstration_1.png")

    command(page, "workbench:open-pane", view="collectives")
    page.wait_for_selector(".wb-pane :focus")
    unfold_by_keys(page, timing)
    read = read_by_keys(page, timing)
    assert [row[0] for row in read] == ["operation", "all_reduce", "all_reduce"]  # one mean, one sum
    assert {"size", "median", "slowest 1\u202f%", "data rate", "bandwidth", "wait"} <= set(read[0])
    for name, title, records in (("Lanes", "step", 20), ("Lateness", "replica", 2)):
        tab_to(page, timing.get_by_role("tablist"), "Shift+Tab")
        tab_to(page, timing.get_by_role("tab", name=name), "ArrowRight")
        twin_by_keys(page, timing)
        unfold_by_keys(page, timing)
        read = read_by_keys(page, timing)
        assert read[0][0].startswith(title)
        assert len(read) == 1 + records

    page.keyboard.press("Control+Shift+]")  # the next tab
    topology = page.locator(".wb-pane .wb-topology")
    expect(topology).to_contain_text("2 CPU devices")
    assert {part: bright for part, bright in grounds(page).items() if bright > 250} == {}
    twin_by_keys(page, topology)
    unfold_by_keys(page, topology)
    assert len(read_by_keys(page, topology)) == 1 + 2  # devices


def test_1_a_strategy_that_connects_by_itself_fills_the_panes_too(page: Any, lab: Lab) -> None:
    run_cells(page, lab, "alone.ipynb", "import workbench as wb\nstrategy = wb.MirroredStrategy()")
    expect(page.locator(".wb-pane")).to_have_count(2)
    expect(page.locator(".wb-status-item")).to_contain_text("replicas")
    command(page, "workbench:open-pane", view="topology")
    expect(page.locator(".wb-pane .wb-topology")).to_contain_text("MirroredStrategy")


def twin_by_keys(page: Any, view: Any) -> None:
    """Opens the table twin of a view's chart."""
    button = view.get_by_role("button", name="Table", exact=True)
    expect(button).to_be_visible()
    tab_to(page, button)
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")


def unfold_by_keys(page: Any, view: Any) -> None:
    """Has all columns of a view's table shown, where some had no room."""
    grid = view.get_by_role("grid").first
    expect(grid).to_be_visible()
    if grid.get_attribute("aria-colcount") is not None:
        more = view.get_by_role("button", name="more column").first
        tab_to(page, more)
        page.keyboard.press("Enter")
        expect(grid).not_to_have_attribute("aria-colcount", re.compile(r"."))
        tab_to(page, grid, "Shift+Tab")


def read_by_keys(page: Any, view: Any) -> list[list[str]]:
    """All of a view's table, which arrow keys must reach, each number of it; below it others may fill the pane."""
    grid = view.get_by_role("grid").first
    assert grid.get_attribute("aria-colcount") is None  # no column is hidden
    read = texts_by_keys(page, grid)
    assert without_ages(read) == without_ages(texts(grid))
    return read


def without_ages(rows: list[list[str]]) -> list[list[str]]:
    """Rows of a table without what grows from one look to the next: "0.3 s ago"."""
    return [[re.sub(r"^\d+\.\d s ago$", "ago", cell) for cell in row] for row in rows]


def test_2_a_replica_killed_in_all_reduce_is_named_and_its_history_outlives_kernel_and_page(
    page: Any, lab: Lab, record_property: Any
) -> None:
    train = IMPORTS + TRAIN.format(replicas=3, processes=True, steps=200)
    line = 1 + train.splitlines().index('    return context.all_reduce("sum", x)')
    run_cells(page, lab, "killed.ipynb", train)
    timing = page.locator(".wb-pane .wb-collectives")
    expect(timing).to_contain_text("400 collectives")
    views = page.evaluate(PANES)
    assert views == "collectives,topology"
    banner = page.locator(".wb-pane .wb-collectives [role=alert]")

    seconds = seconds_to_banner(page)
    # Less than 2 on a quiet machine, which a test machine need not be.
    record_property("banner_seconds", seconds)
    print(f"the banner stood there {seconds:.2f} s after the cell began")
    # The banner names the replica, the operation and its number in the step.
    expect(banner).to_contain_text(re.compile(r"step 20\d all_reduce #2: (waiting for|lost) replica \{1\}.*"))
    expect(banner).to_contain_text(f"entered at In[1]:{line} by replicas 0, 2")
    expect(banner).to_contain_text(re.compile(r"replica 1 is lost: MirroredStrategy: worker 1 .*SIGKILL"))
    expect(banner).to_contain_text("replica 1 last did all_reduce #1")
    page.screenshot(path="artifacts/demonstration_2.png")

    restart_kernel(page)
    expect(timing).to_contain_text("stopped")
    page.reload()
    wait_for_notebook(page)
    expect(timing).to_contain_text("stopped")
    assert page.evaluate(PANES) == views
    # All replicas completed the first of the two in step 200; the killed one's records outlive it.
    expect(timing).to_contain_text("401 collectives")
    expect(timing.get_by_role("gridcell", name="all_reduce")).to_have_count(2)
    expect(banner).to_contain_text("lost replica {1}")
    page.screenshot(path="artifacts/demonstration_2_reloaded.png")
    timing.get_by_role("tab", name="Log").click()
    expect(timing).to_contain_text("was killed by SIGKILL")
    page.get_by_role("tab", name="Topology").click()
    expect(page.locator(".wb-pane .wb-topology")).to_contain_text("3 CPU devices")


def run_in_new_cell(page: Any, source: str) -> None:
    cells = page.locator(".jp-Notebook .jp-Cell")
    before = cells.count()
    command(page, "notebook:insert-cell-below")
    expect(cells).to_have_count(before + 1)
    page.keyboard.press("Enter")
    page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")


def seconds_to_banner(page: Any) -> float:
    """Kills replica 1 in its second collective; how long after the cell began the page says so."""
    page.evaluate(WATCH_FOR_BANNER)
    run_in_new_cell(
        page,
        "import time\nprint(f'killed after {1000 * time.time():.0f}')\n"
        "strategy.run(wb.testing.inject(step, wb.testing.Killed(replica=1, nth=2)), args=(x,))",
    )
    page.wait_for_function("() => window.bannerAt")
    text = page.locator(".jp-OutputArea-output", has_text="killed after").first.inner_text()
    killed_ms = float(re.search(r"after (\d+)", text)[1])  # type: ignore[index]  # it was just found
    return float(page.evaluate("() => window.bannerAt") - killed_ms) / 1000


def test_3_a_slow_replica_is_a_row_and_a_nan_is_named_also_from_the_file_with_no_cluster(
    page: Any, lab: Lab
) -> None:
    train = IMPORTS + TRAIN.format(replicas=4, processes=False, steps=3)
    faulty = """
slow = wb.testing.inject(step, wb.testing.Slow(replica=2, seconds=0.02))
broken = wb.testing.inject(lambda x: {{"loss": x.mean(), "x": x}}, wb.testing.NaNInput(replica=1))
with wb.record("runs/broken.parquet"):
    for _ in range({slow}):
        strategy.run(slow, args=(x,))
    losses = strategy.run(broken, args=(x,))
    inspection = wb.inspect(losses)
inspection
"""
    run_cells(page, lab, "broken.ipynb", train, faulty.format(slow=SLOW_STEPS))
    expect(page.locator(".jp-Notebook .wb-values")).to_contain_text("first NaN: losses['loss']")
    expect(page.locator(".wb-status-item")).to_contain_text("4/4 replicas")
    command(page, "workbench:open-pane", view="heat_map")
    assert_row_of_replica_2(page.locator(".wb-pane .wb-heat-map"))
    page.screenshot(path="artifacts/demonstration_3_heat_map.png")
    command(page, "workbench:open-pane", view="values")
    assert_nan_of_replica_1(page.locator(".wb-pane .wb-values"))
    page.screenshot(path="artifacts/demonstration_3_values.png")

    for session in lab.request("GET", "/api/sessions"):
        lab.request("DELETE", f"/api/sessions/{session['id']}")
    expect(page.locator(".wb-status-item")).to_contain_text("no cluster")
    command(page, "workbench:show-panel")
    page.locator("#workbench-panel").get_by_role("button", name="broken", exact=True).click()
    run = page.locator(".wb-pane .wb-replay")
    expect(run).to_contain_text("replay")
    run.get_by_role("tab", name="Collectives").click()
    run.get_by_role("tab", name="Lateness").click()
    assert_row_of_replica_2(run)
    run.get_by_role("tab", name="Values").click()
    assert_nan_of_replica_1(run)
    page.screenshot(path="artifacts/demonstration_3_replay.png")


def number(text: str) -> float:
    """What a table shows: 20,232 has a comma."""
    return float(text.replace(",", ""))


def assert_row_of_replica_2(view: Any) -> None:
    """Named above the heat map, and in its table later than all others in every step in which it was slow."""
    expect(view).to_contain_text("late step after step: replica 2")
    view.get_by_role("button", name="Table").first.click()
    grid = view.get_by_role("grid", name="Lateness in µs by replica and step")
    expect(grid).to_be_visible()
    heading, *rows = texts(grid)
    assert [" ".join(row[0].split()[:2]) for row in rows] == [f"replica {rank}" for rank in range(4)]
    steps = [place for place, title in enumerate(heading) if title.startswith("step ")][-SLOW_STEPS:]
    assert len(steps) == SLOW_STEPS
    for place in steps:
        late = [number(row[place]) for row in rows]
        assert late.index(max(late)) == 2
    view.get_by_role("button", name="Table").first.click()


def assert_nan_of_replica_1(view: Any) -> None:
    expect(view).to_contain_text(
        re.compile(rf"first NaN: losses\['loss'\].*replica 1.*step {3 + SLOW_STEPS}")
    )
    expect(view).to_contain_text("✖ not finite: replica 1 · the mean is of the other 3")
    chart = view.get_by_role("application", name="4 replicas")
    expect(chart).to_be_visible()
    chart.press("End")
    expect(chart.locator("xpath=following-sibling::*[1]")).to_have_text(re.compile(r"replica 3: value \d"))


def test_4_an_empty_worker_and_an_uneven_remainder_are_seen_before_anything_runs(page: Any, lab: Lab) -> None:
    explain = """
from pathlib import Path
Path("full.txt").write_text("".join(f"{line}\\n" for line in range(11)))
Path("empty.txt").write_text("")
data = wb.data.TextLineDataset(["full.txt", "empty.txt"]).batch(8)
wb.explain_sharding(data, wb.data.Shape(hosts=2, replicas_per_host=2), policy="FILE")
"""
    run_cells(page, lab, "explain.ipynb", IMPORTS + explain)
    view = page.locator(".jp-Notebook .wb-dataset-sharding")
    expect(view).to_contain_text("Replicas 2–3 get no data: host 1 has no file with elements")
    chart = view.get_by_role("application", name="the remainder is 2 + 1")
    chart.press("Home")
    chart.press("Home")
    expect(view.locator("output")).to_have_text("replica 0 · step 0 · 2 rows: full.txt:0–1")
    for _ in range(4):
        chart.press("ArrowDown")
    expect(view.locator("output")).to_have_text("all replicas · step 0 · 4 rows")
    view.get_by_role("button", name="Elements").click()
    expect(view.locator(".wb-legend")).to_contain_text("step 0")
    view.get_by_role("button", name="Elements").click()
    view.get_by_role("button", name="Table").click()
    grid = view.get_by_role("grid", name="Who reads what")
    expect(grid).to_be_visible()
    read = {(row[0], row[1]): row[3] for row in texts(grid)[1:]}
    assert [read["2", replica] for replica in "0123"] == ["2", "1", "0", "0"]
    view.get_by_role("button", name="Table").click()
    expect(page.locator(".wb-status-item")).to_contain_text("no cluster")
    clusters = lab.request("GET", "/workbench/api/clusters")
    assert all(cluster["summary"]["status"] == "stopped" for cluster in clusters)  # those of earlier tests
    page.screenshot(path="artifacts/demonstration_4.png")


def test_5_bandwidths_of_sweeps_are_those_of_the_formulas(page: Any, lab: Lab) -> None:
    sweep = """
with wb.connect(replicas={n}, processes=False):
    found = wb.collectives.sweep(
        wb.MirroredStrategy(), {ops}, smallest_bytes=1 << 18, largest_bytes=1 << 20, factor=2, rounds=3)
print(found)
found
"""
    replicas = (1, 2, 4, 8)
    cells = [IMPORTS + sweep.format(n=n, ops=tuple(FACTORS)) for n in replicas]
    run_cells(page, lab, "sweeps.ipynb", *cells)
    # JupyterLab scrolls to each running cell, and removes cells from the page that are then out of sight.
    page.wait_for_function(
        """() => [...window.jupyterapp.shell.currentWidget.content.model.cells].every(
          (cell) => cell.executionCount !== null && (cell.executionState ?? 'idle') === 'idle')""",
        timeout=120_000,
    )
    for index, n in enumerate(replicas):
        page.evaluate("(index) => window.jupyterapp.shell.currentWidget.content.scrollToItem(index)", index)
        cell = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']")
        printed = cell.locator(".jp-OutputArea-output", has_text=f"nranks {n}").first
        expect(printed).to_contain_text("# reduce ")
        assert_printed(printed.text_content(), n)  # even if it was scrolled out of sight
        view = cell.locator(".wb-sweep")
        if n == 1:
            expect(view).to_contain_text("Bandwidth over size appears")
            continue
        table, more = (view.get_by_role("button", name=name, exact=True) for name in ("Table", "More"))
        expect(table.or_(more).first).to_be_visible()
        if not table.is_visible():  # there is no room for all buttons
            more.click()
        table.click()
        for op in FACTORS:
            view.get_by_label("Operation").select_option(label=f"{op} f32")
            grid = view.get_by_role("grid", name=f"Bandwidth of {op} by size, GB/s")
            expect(grid).to_be_visible()
            assert_drawn(texts(grid), op, n)
        view.get_by_role("button", name="Table").click()
    page.screenshot(path="artifacts/demonstration_5.png")


def assert_printed(table: str, n: int) -> None:
    """Columns as nccl-tests: bytes, elements, type, operation, root, µs, algbw, busbw."""
    op, rows = "", 0
    for line in table.splitlines():
        if heading := re.match(rf"# (\w+) .* nranks {n}$", line):
            op = heading[1]
        cells = line.split()
        if line.startswith("#") or len(cells) != 9:
            continue
        rows += 1
        size_bytes, us = int(cells[0]), float(cells[5])
        if n == 1:
            assert cells[6:8] == ["–", "–"]
            continue
        algbw = size_bytes / us / 1000
        rounding = 0.005 * (1 + algbw / us)  # half of the last digit of the rate and of the time
        assert float(cells[6]) == pytest.approx(algbw, abs=1.01 * rounding)
        factor = FACTORS[op](n)
        assert float(cells[7]) == pytest.approx(algbw * factor, abs=0.00505 * (1 + algbw * factor / us))
    assert rows == 3 * len(FACTORS)


def assert_drawn(table: list[list[str]], op: str, n: int) -> None:
    """Size, median time and median bus bandwidth of the view's table: three significant digits each."""
    heading, *rows = table
    (median,) = (place for place, title in enumerate(heading) if title.startswith("median"))
    per_unit = {"median µs": 1e3, "median ms": 1e6}[heading[median]]
    assert [row[0] for row in rows] == ["256 KiB", "512 KiB", "1 MiB"]
    for row, size_bytes in zip(rows, (1 << 18, 1 << 19, 1 << 20), strict=True):
        algbw = size_bytes / (number(row[median]) * per_unit)
        assert number(row[heading.index("bandwidth")]) == pytest.approx(algbw * FACTORS[op](n), rel=0.011)
