"""A page of JupyterLab with six views of 512 replicas and 10,000 records a second: is it smooth, and does it stay so?

The notebook has 512 replicas, threads that have made a step. What they would write in a run of 20 collectives a second
is made by a process of its own, in 512 rings, which 64 drains empty ten times a second, and taken in by the notebook as
if 64 workers had shipped it; from there everything goes its usual way: feed, publisher, Jupyter server, WebSocket,
panes. Two hundred lines a second are printed, too. Frames and keys are timed by the page's own clock; a key counts when
what it changes is painted.
"""

from __future__ import annotations

import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import Script
from tests.chromium import chromium
from tests.e2e.conftest import command, expect, open_notebook, serving
from tests.extension.crowd import Crowd
from workbench.ui.widgets.built import STATIC

REPLICAS = 512
STEPS_PER_SECOND = 20
LINES_PER_SECOND = 200
TURN_SECONDS = 0.1
LEAD = 0.5
"""How long making it all may take, of the time that it is about."""
FILLING_SECONDS = 10.0
BUNDLE = STATIC.parent / "labextension"
COLUMNS = (("topology", "lanes"), ("collective_table", "heat_map"), ("devices", "log"))
LAYOUT = {
    "split": "across",
    "parts": [
        "others",
        *(
            {"split": "down", "parts": [{"tabs": [view]} for view in column], "sizes": [1, 2]}
            for column in COLUMNS
        ),
    ],
    "sizes": [1, 3, 3, 3],
}
CELL = """
import workbench as wb
from tests.benchmarks.ours.views.crowd import flood
cluster = wb.connect(replicas={replicas}, processes=False)
strategy = wb.MirroredStrategy()
strategy.run(wb.distribute.get_replica_context)
rate = flood(cluster, {replicas}, {seconds})
cluster.close()
print(rate, "records per second")
"""
WATCH = """() => {
  const seen = window.seen = { gaps: [], tasks: [], keys: [] };
  let last = performance.now();
  const frame = (now) => { seen.gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ type: 'longtask' });
  const text = () => document.querySelector('.wb-pane .wb-lanes output').textContent;
  addEventListener('keydown', (event) => {
    const before = text();
    const look = () => {
      if (text() === before) requestAnimationFrame(look);
      else setTimeout(() => seen.keys.push(performance.now() - event.timeStamp)); // it is painted now
    };
    requestAnimationFrame(look);
  }, { capture: true });
}"""
TAKE = """() => {
  const taken = { ...window.seen };
  Object.assign(window.seen, { gaps: [], tasks: [], keys: [] });
  return taken;
}"""
NODES = "() => document.querySelectorAll('.wb-pane *').length"


def produce(connection: Connection, replicas: int, seconds: float) -> None:
    """In a process of its own: makes what replicas write in so long, and sends it when its time comes."""
    crowd = Crowd(replicas, capacity=64)
    begins = time.monotonic() + LEAD * seconds
    turns = []
    for turn in range(round(seconds / TURN_SECONDS)):
        for step in range(round(STEPS_PER_SECOND * TURN_SECONDS)):
            crowd.work(1, at_ns=round(1e9 * (begins + turn * TURN_SECONDS + step / STEPS_PER_SECOND)))
        crowd.speak(round(LINES_PER_SECOND * TURN_SECONDS))
        turns.append(list(crowd.batches()))
    begins = max(begins, time.monotonic())  # never faster than expected
    for turn, batches in enumerate(turns):
        time.sleep(max(0.0, begins + (turn + 1) * TURN_SECONDS - time.monotonic()))
        connection.send(batches)
    connection.send([])


def flood(cluster: Any, replicas: int, seconds: float) -> float:
    """In the notebook: takes that in; how many records came in a second."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=produce, args=(theirs, replicas, seconds))
    process.start()
    came: list[bytes] = ours.recv()
    began = time.monotonic()
    while came:
        for batch in came:
            cluster.feed.ingest(batch)
        for listener in tuple(cluster.telemetry_listeners):
            listener(came[-1])
        came = ours.recv()
    took = time.monotonic() - began
    process.join(10)
    return float(cluster.feed.snapshot().counters.records / took)


def main() -> None:
    """Measures it: a minute, after ten seconds in which the page fills."""
    script = Script("views", __doc__, seconds=60.0, picture="")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        panes = {"layouts": {"crowd": LAYOUT}, "openOnFirstCluster": []}
        with serving(Path(name), BUNDLE, panes) as lab:
            page = browser.new_page(viewport={"width": 1920, "height": 1300})
            page.set_default_timeout(300_000)
            seconds = script.options.seconds * script.options.scale
            cell = CELL.format(replicas=REPLICAS, seconds=seconds + 2 * FILLING_SECONDS)
            open_notebook(page, lab, lab.notebook("job.ipynb", cell))
            measure(script, page, seconds)


def measure(script: Script, page: Any, seconds: float) -> None:
    """Opens the panes, runs the job, and looks at the page."""
    command(page, "workbench:open-layout", name="crowd")
    command(page, "notebook:run-all-cells")
    for view in (view for column in COLUMNS for view in column):
        expect(page.locator(f".wb-pane .wb-{view.replace('_', '-')}")).to_be_visible()
    page.get_by_text("all_gather").first.wait_for()
    chart = page.locator(".wb-pane .wb-lanes [role=application]")
    chart.focus()
    page.keyboard.press("End")
    page.evaluate(WATCH)
    tools = page.context.new_cdp_session(page)
    # The time that it computes, without its waits.
    tools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    tools.send("Performance.enable")
    page.wait_for_timeout(1000 * FILLING_SECONDS)
    page.evaluate(TAKE)
    first = look(page, tools)
    ends, keys = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        page.keyboard.press("ArrowUp" if keys % 2 else "ArrowDown")
        keys += 1
        page.wait_for_timeout(250)
    seen = page.evaluate(TAKE)
    last = look(page, tools)
    if script.options.picture:
        page.screenshot(path=script.options.picture)
    told = page.locator(".jp-OutputArea-output").last
    expect(told).to_contain_text("records per second")
    report(script, seen, (first, last), float(told.inner_text().split()[0]))


def look(page: Any, tools: Any) -> dict[str, float]:
    """How large the page is, after its garbage was collected."""
    tools.send("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    found = {"heap": metrics["JSHeapUsedSize"], "busy": metrics["TaskDuration"], "at": metrics["Timestamp"]}
    return found | {"nodes": page.evaluate(NODES)}


def report(
    script: Script,
    seen: dict[str, list[float]],
    looks: tuple[dict[str, float], dict[str, float]],
    records_per_second: float,
) -> None:
    """Writes the cases."""
    first, last = looks
    gaps = seen["gaps"]
    busy = (last["busy"] - first["busy"]) / (last["at"] - first["at"])
    for what, unit, scale, samples in (
        ("crowd, records", "records/s", 1.0, [records_per_second]),
        ("crowd, frames", "frames/s", 1000.0, [len(gaps) / sum(gaps)]),
        ("crowd, between frames", "ms", 1.0, gaps),
        ("crowd, key to paint", "ms", 1.0, seen["keys"]),
        ("crowd, tasks over 50 ms", "ms", 1.0, seen["tasks"]),
        ("crowd, frames later than 50 ms", "%", 100.0, [sum(gap > 50 for gap in gaps) / len(gaps)]),
        ("crowd, page's main thread", "% of a core", 100.0, [busy]),
        ("crowd, growth of the heap", "%", 100.0, [last["heap"] / first["heap"] - 1]),
        ("crowd, growth of the page", "elements", 1.0, [last["nodes"] - first["nodes"]]),
    ):
        with script.case("workbench", what, unit=unit, scale=scale, replicas=REPLICAS) as case:
            case.samples = samples


if __name__ == "__main__":
    main()
