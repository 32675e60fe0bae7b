"""The dashboard in Chromium: follows a job of another process, replays a file, lets nobody in without its token."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import workbench as wb
from tests.dashboards.conftest import run_file
from tests.data.service.servers import free_port
from tests.e2e.conftest import ARTIFACTS, PATIENCE_SECONDS, ROOT, expect
from tests.exports import saved
from tests.identity import Identity, identity
from tests.tls_proxy import Route, tls_proxy
from workbench.dashboards.dashboard import Dashboard
from workbench.telemetry.runs.recorded_run import Run, open_run

__all__ = ["identity", "run_file"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

JOB = """
import sys
import numpy as np
import workbench as wb

def step(x):
    ctx = wb.distribute.get_replica_context()
    print(sys.argv[1])
    return ctx.all_reduce("sum", x)

with wb.connect(replicas=2, processes=False) as cluster:
    strategy = wb.MirroredStrategy()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            strategy.run(step, args=(np.ones(1024, np.float32),))
        wb.inspect(strategy.run(step, args=(np.ones(1024, np.float32),)))
        cluster.flush_telemetry(60)
        print("done", flush=True)
"""
DASK = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as cluster:
        print(cluster.scheduler_address, cluster.scheduler.http_server.port, flush=True)
        sys.stdin.read()
"""
HOSTILE = "<img src=x onerror=window.hit=1><script>window.hit=2</script>"
AXE = """async () => {
  const found = await axe.run(document, { rules: { region: { enabled: false } } });
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


class Job:
    """A script of the user in a process of its own, which works when it is told to."""

    def __init__(self, file: Path, says: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(file), says],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.wait_for("ready")

    def run(self, steps: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        self.wait_for("done")

    def wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()).strip() != word:
            assert line, "the job has ended"

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.wait(PATIENCE_SECONDS) == 0


@contextmanager
def job(folder: Path, name: str, says: str = "hello") -> Iterator[Job]:
    file = folder / name
    file.write_text(JOB, encoding="utf-8")
    running = Job(file, says)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


@pytest.fixture(params=["light"])
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page; the test fails if it asked another machine for anything, or if a script of it failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=request.param)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    page = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{request.node.name}.png", full_page=True)
    context.close()
    own = ("http://127.0.0.1:", "ws://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
    assert [url for url in asked if not url.startswith(own)] == []
    assert wrong == []


@pytest.fixture(scope="module")
def replaying(built: ModuleType, run_file: Path) -> Iterator[Dashboard]:
    with wb.dashboard(run_file) as dashboard:
        yield dashboard


def open_tab(page: Any, name: str, *, exact: bool = False) -> None:
    tab = page.get_by_role("tab", name=name, exact=exact)
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")


def test_a_job_of_another_process_appears_and_is_followed_while_it_runs(page: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            page.goto(server.stdout.readline().strip())
            expect(page.get_by_role("status").first).to_contain_text("Waiting for a job")
            assert "token" not in page.url
            with job(tmp_path, "train.py", HOSTILE) as running:
                expect(page.locator(".wb-shell-title")).to_contain_text("train.py")
                running.run(4)
                overview = page.locator(".wb-overview")
                expect(overview).to_contain_text("Watching: 5 of 20 steps")
                open_tab(page, "Cluster")
                expect(page.locator(".wb-topology")).to_contain_text("2 CPU devices")
                expect(page.get_by_role("group", name="Devices")).to_contain_text("worker 0")
                open_tab(page, "Log")
                expect(page.locator(".wb-log")).to_contain_text(HOSTILE)
                open_tab(page, "Timing")
                table = page.locator(".wb-collective-table")
                expect(table).to_contain_text("5 collectives")
                running.run(9)
                expect(table).to_contain_text("15 collectives")
                expect(page.locator(".wb-lanes canvas")).to_be_visible()
                expect(page.locator(".wb-heat-map")).to_contain_text("Lateness")
                open_tab(page, "Values")
                # Inspected before anyone looked.
                expect(page.get_by_role("group", name="Values")).to_contain_text("f32[1024]")
                expect(page.get_by_text("wb.explain_sharding(value) in the job")).to_be_visible()
                open_tab(page, "Overview")
                expect(overview).to_contain_text("Watching: 15 of 20 steps")
                page.screenshot(path=ARTIFACTS / "dashboard_live.png", full_page=True)
            expect(page.locator(".wb-shell-bar")).to_contain_text("stopped")
            expect(overview).to_contain_text("Watching: 15 of 20 steps")
            assert page.evaluate("() => window.hit") is None
        finally:
            server.terminate()
        assert server.stderr.read() == ""


def test_of_several_jobs_one_is_picked_in_the_page(page: Any, built: ModuleType, tmp_path: Path) -> None:
    with (
        wb.dashboard() as dashboard,
        job(tmp_path, "first.py") as first,
        job(tmp_path, f"second {HOSTILE.replace('/', '')}.py") as second,
    ):
        first.run(2)
        second.run(6)
        page.goto(dashboard.url)
        expect(page.get_by_text("Pick one")).to_be_visible()
        choice = page.get_by_role("list", name="Clusters").get_by_role("button")
        expect(choice).to_have_count(2)
        choice.filter(has_text="second").click()
        open_tab(page, "Timing")
        expect(page.locator(".wb-collective-table")).to_contain_text("7 collectives")
        page.get_by_label("Cluster", exact=True).select_option(index=2)
        expect(page.locator(".wb-collective-table")).to_contain_text("3 collectives")
        assert page.evaluate("() => window.hit") is None


def test_a_page_keeps_the_job_that_it_shows_and_says_when_the_dashboard_has_ended(
    page: Any, built: ModuleType, tmp_path: Path
) -> None:
    bar = page.locator(".wb-shell-bar")
    with wb.dashboard() as dashboard, job(tmp_path, "first.py") as first:
        page.goto(dashboard.url)
        expect(bar).to_contain_text("first.py")
        open_tab(page, "Timing")
        with job(tmp_path, "second.py"):
            expect(page.get_by_label("Cluster", exact=True)).to_contain_text("second.py")
            expect(bar.get_by_role("heading", name="first.py")).to_be_visible()
            first.run(2)
            expect(page.locator(".wb-collective-table")).to_contain_text("3 collectives")
            first.end()
            expect(bar.get_by_role("heading", name="second.py")).to_be_visible()
            expect(bar).to_contain_text("live")
            dashboard.close()
            expect(page.get_by_text("does not answer any more")).to_be_visible()
            expect(bar).to_contain_text("stale")


def test_a_recorded_run_is_shown_with_no_cluster(page: Any, replaying: Dashboard) -> None:
    page.goto(replaying.url)
    expect(page.locator(".wb-replay .wb-verdict")).to_be_visible()
    expect(page.locator(".wb-shell-bar")).to_contain_text("replay")
    page.get_by_role("tab", name="Collectives").click()
    expect(page.locator(".wb-replay")).to_contain_text("all_reduce")
    page.get_by_role("tab", name="Lateness").click()
    expect(page.locator(".wb-replay")).to_contain_text("late step after step: replica 2")
    page.get_by_role("tab", name="Log").click()
    expect(page.locator(".wb-replay")).to_contain_text("replica 2 was killed")
    assert saved(page, "Table (CSV)", -1).startswith(b"kind,")
    assert b'id="workbench-exports"' in saved(page, "Report (HTML)", -1)


def test_runs_of_a_folder_are_opened_and_compared(page: Any, run_file: Path, tmp_path: Path) -> None:
    for name in ("before", f"after {HOSTILE.replace('/', '')}"):
        shutil.copy(run_file, tmp_path / f"{name}.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"no run")
    with wb.dashboard(tmp_path) as dashboard:
        page.goto(dashboard.url)
        runs = page.locator(".wb-runs")
        expect(runs).to_contain_text("damaged")
        open_tab(page, "Run", exact=True)
        expect(page.get_by_text("Pick a run first")).to_be_visible()
        open_tab(page, "Runs")
        runs.get_by_role("gridcell", name="before").click()
        runs.get_by_role("gridcell", name="after").click()
        runs.get_by_role("button", name="Compare").click()
        expect(runs).to_contain_text("no difference that can be told from chance")
        runs.get_by_role("gridcell", name="after").first.click()
        runs.get_by_role("button", name="Open before").click()
        expect(page.locator(".wb-replay")).to_contain_text("all_reduce")
        page.screenshot(path=ARTIFACTS / "dashboard_run.png", full_page=True)
        assert page.evaluate("() => window.hit") is None


def test_while_one_page_opens_a_large_run_the_others_go_on(
    page: Any, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large.parquet"
    for file in (large, tmp_path / "small.parquet"):
        shutil.copy(run_file, file)
    begun, go_on = threading.Event(), threading.Event()

    def opening(file: Path) -> Run:
        if file == large:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)
        return open_run(file)

    monkeypatch.setattr("workbench.ui.runs.recorded_runs.open_run", opening)
    with wb.dashboard(tmp_path) as dashboard:
        try:
            page.goto(dashboard.url)
            runs = page.locator(".wb-runs")
            runs.get_by_role("gridcell", name="large").click()
            runs.get_by_role("button", name="Open large").click()
            assert begun.wait(PATIENCE_SECONDS)

            other = page.context.new_page()
            other.goto(dashboard.url)
            other.locator(".wb-runs").get_by_role("gridcell", name="small").click()
            other.get_by_role("button", name="Open small").click()
            expect(other.locator(".wb-replay")).to_contain_text("all_reduce")
        finally:
            go_on.set()
        expect(page.locator(".wb-replay")).to_contain_text("all_reduce")
        expect(page.locator(".wb-shell-bar")).to_contain_text("large.parquet")
        (tmp_path / "later.parquet").write_bytes(run_file.read_bytes())
        open_tab(page, "Runs")
        expect(page.locator(".wb-runs")).to_contain_text("later")


SIZES = [(1500, 900), (900, 700), (1500, 1400)]
"""Of windows."""

FOOT = """(view) => Math.max(...[
  ...view.querySelectorAll("canvas, tr, .wb-legend, .wb-module")
].map((one) => {
  const { bottom } = one.getBoundingClientRect();
  return Math.min(bottom, one.closest(".wb-scroll")?.getBoundingClientRect().bottom ?? bottom);
}))"""
"""Where what a view draws ends."""


FILLED = f"""(view) => {{
  const {{ top, bottom }} = view.getRootNode().host.getBoundingClientRect();
  return ({FOOT})(view) > (top + bottom) / 2 && view.getBoundingClientRect().bottom > bottom - 4;
}}"""
"""Whether a view has drawn something in more than half of the place that the page gives it."""


def resized(page: Any, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


@pytest.mark.parametrize("size", SIZES)
def test_a_recorded_run_fills_the_page(page: Any, replaying: Dashboard, size: tuple[int, int]) -> None:
    resized(page, size)
    page.goto(replaying.url)
    view = page.locator(".wb-replay")
    for name in ("Overview", "Collectives"):
        view.get_by_role("tab", name=name).click()
        view.locator("canvas").first.wait_for()
        page.wait_for_function(
            f"([view, enough]) => ({FOOT})(view) > enough", arg=[view.element_handle(), 0.8 * size[1]]
        )
        box = view.evaluate("(view) => view.getBoundingClientRect().bottom")
        assert box > size[1] - 24
        scrolls = "() => document.scrollingElement.scrollHeight - innerHeight"
        assert page.evaluate(scrolls) == 0  # the view scrolls where necessary


def test_views_of_a_job_fill_the_page_that_they_share(page: Any, built: ModuleType, tmp_path: Path) -> None:
    tabs = {"Overview": ["overview"], "Timing": ["lanes", "heat-map"], "Cluster": ["topology"]}
    with wb.dashboard() as dashboard, job(tmp_path, "train.py") as running:
        running.run(9)
        page.goto(dashboard.url)
        for size, (tab, names) in itertools.product(SIZES, tabs.items()):
            resized(page, size)
            open_tab(page, tab)
            for name in names:
                view = page.locator(f".wb-{name}")
                view.wait_for()
                page.wait_for_function(FILLED, arg=view.element_handle())
            foot = "(view) => view.getRootNode().host.getBoundingClientRect().bottom"
            assert page.locator(".wb").last.evaluate(foot) > size[1] - 24


@pytest.mark.parametrize("page", ["dark", "light"], indirect=True)
def test_the_theme_follows_the_browser_and_can_be_chosen(page: Any, replaying: Dashboard) -> None:
    page.goto(replaying.url)
    view = page.locator(".wb-replay")
    dark, light = "rgb(22, 24, 28)", "rgb(255, 255, 255)"
    was_dark = page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    expect(view).to_have_css("background-color", dark if was_dark else light)

    button = page.get_by_role("button", name="Theme")
    for name, colour in (("light", light), ("dark", dark), ("auto", dark if was_dark else light)):
        button.click()
        expect(button).to_have_text(f"Theme: {name}")
        expect(view).to_have_css("background-color", colour)
    button.click()
    button.click()
    page.reload()
    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")
    expect(view).to_have_css("background-color", dark)


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_it_can_be_read_by_everybody(page: Any, replaying: Dashboard, built: ModuleType) -> None:
    page.goto(replaying.url)
    expect(page.locator(".wb-replay .wb-verdict")).to_be_visible()
    page.add_script_tag(path=built.EXTENSION / "node_modules" / "axe-core" / "axe.min.js")
    assert page.evaluate(AXE) == []
    page.get_by_role("tab", name="Collectives").click()
    page.get_by_role("tab", name="Lateness").click()
    expect(page.locator(".wb-replay canvas").first).to_be_visible()
    assert page.evaluate(AXE) == []


def test_tabs_and_numbers_are_reached_by_keys(page: Any, run_file: Path) -> None:
    with wb.dashboard(run_file.parent) as dashboard:
        page.goto(dashboard.url)
        cell = page.locator(".wb-runs [role='grid'] [tabindex='0']")
        expect(cell).to_be_visible()
        page.get_by_role("tab", name="Runs").focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_text("Pick a run first")).to_be_visible()
        page.keyboard.press("ArrowLeft")
        cell.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Open first").press("Enter")
        expect(page.locator(".wb-replay")).to_contain_text("all_reduce")


def test_without_the_token_there_is_nothing_to_see(page: Any, replaying: Dashboard) -> None:
    bare, _, token = replaying.url.partition("?token=")
    for address in (bare, f"{bare}?token={token[::-1]}", f"{bare}views/widget.js?token={token}"):
        answer = page.goto(address)
        assert answer.status == 403
        expect(page.locator("body")).to_contain_text("403")
    assert page.goto(replaying.url).status == 200


def test_with_tls_everything_of_a_page_is_encrypted(
    browser: Any, built: ModuleType, run_file: Path, identity: Identity
) -> None:
    files = {"certificate": str(identity.certificate), "key": str(identity.key)}
    context = browser.new_context(ignore_https_errors=True)  # a self-signed certificate
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    with wb.dashboard(run_file, **files) as dashboard:
        page.goto(dashboard.url)
        expect(page.locator(".wb-replay")).to_contain_text("all_reduce")
        assert page.evaluate("() => isSecureContext")
        assert {url.partition("127.0.0.1")[0] for url in asked} <= {"https://", "wss://", "blob:https://"}
        assert any(url.startswith("wss://") for url in asked)
        context.close()


def test_behind_a_proxy_with_tls_and_a_prefix_everything_is_asked_below_that(
    browser: Any, built: ModuleType, run_file: Path, identity: Identity
) -> None:
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url.replace("wss://", "https://")))
    port = free_port()
    with (
        tls_proxy(identity.certificate, identity.key) as proxy,
        wb.dashboard(run_file, port=port, origins=(proxy.origin,)) as dashboard,
    ):
        proxy.routes["/user/ann/dashboard/"] = Route(port, strips=True)
        prefix = f"{proxy.origin}/user/ann/dashboard/"
        page.goto(f"{prefix}?token={dashboard.url.partition('?token=')[2]}")
        expect(page.locator(".wb-replay")).to_contain_text("all_reduce")
        context.close()
    assert [url for url in asked if not url.startswith((prefix, f"blob:{proxy.origin}", "data:"))] == []


@pytest.fixture
def dask(built: ModuleType) -> Iterator[tuple[str, int]]:
    """Address of the scheduler and port of the dashboard of a Dask cluster in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", DASK],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address, port = process.stdout.readline().split()
        yield address, int(port)
        process.stdin.close()
        assert process.wait(PATIENCE_SECONDS) == 0


def test_pages_of_a_dask_scheduler_draw_our_views(page: Any, dask: tuple[str, int]) -> None:
    address, port = dask
    with wb.connect(address) as cluster, wb.dask_pages(cluster) as pages:
        strategy = wb.MirroredStrategy()
        for _ in range(8):
            strategy.run(_sum, args=(1.0,))
        page.goto(f"http://127.0.0.1:{port}/individual-workbench-collectives")
        expect(page.locator(".wb-collective-table")).to_contain_text("all_reduce")
        expect(page.locator(".wb-collective-table")).to_contain_text("8 collectives")
        page.goto(f"http://127.0.0.1:{port}/individual-workbench-lanes")
        lanes = page.locator(".wb-lanes")
        expect(lanes.locator("canvas")).to_be_visible()
        assert lanes.evaluate("(view) => view.offsetHeight === innerHeight")
        assert saved(page, "Picture (SVG)", -1).startswith(b"<svg")
        pages.close()
        expect(page.get_by_role("alert")).to_contain_text("removed")


def _sum(value: float) -> float:
    return float(wb.distribute.get_replica_context().all_reduce("sum", value))
