"""What it costs to have a page open: time to the first data, bytes, and CPU of those who serve it.

Needs playwright and a Chromium. Pages are opened in an empty context each, so nothing comes from a cache.
"""

from __future__ import annotations

import base64
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.benchmarks.measure import Script
from tests.benchmarks.wire import sent_between, sent_bytes
from tests.chromium import chromium

STEPS_PER_SECOND = 10
SIZE = {"width": 1280, "height": 800}
PICTURE = {"width": 1200, "height": 700}
_FILLING_SECONDS = 12.0
_SECONDS = 60.0
_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Page:
    """A page in a context of its own.

    Attributes:
      page: Playwright's.
      received: Bytes that it has received so far: responses as they were sent, and payloads of WebSockets.
    """

    def __init__(self, browser: Any, viewport: dict[str, int] = SIZE) -> None:
        self._context = browser.new_context(viewport=viewport)
        self._context.set_default_timeout(1000 * _SECONDS)
        self.page = self._context.new_page()
        self.received = 0
        network = self._context.new_cdp_session(self.page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", self._on_response)
        network.on("Network.webSocketFrameReceived", self._on_frame)

    def wait_for(self, drawn: str) -> float:
        """Waits until the JavaScript expression `drawn` is true and painted; gives seconds since navigation began."""
        self.page.wait_for_function(f"() => {drawn}", polling="raf")
        self.page.evaluate(_PAINTED)
        return float(self.page.evaluate("() => performance.now()")) / 1000

    def stay(self, seconds: float) -> None:
        """Leaves it open for so long."""
        self.page.wait_for_timeout(1000 * seconds)

    def keep(self, file: str) -> None:
        """Saves a picture of it, after a while in which the page fills."""
        self.stay(_FILLING_SECONDS)
        self.page.screenshot(path=file)

    def close(self) -> None:
        """Ends it."""
        self._context.close()

    def _on_response(self, event: dict[str, Any]) -> None:
        self.received += int(event["encodedDataLength"])

    def _on_frame(self, event: dict[str, Any]) -> None:
        payload = event["response"]["payloadData"]
        binary = event["response"]["opcode"] == 2
        self.received += len(base64.b64decode(payload) if binary else payload.encode())


@contextmanager
def job(target: Callable[[Connection], None]) -> Iterator[Any]:
    """Runs `target` in a process of its own; gives what it sends first.

    It goes on until the connection that it is called with has something to be read.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs,))
    process.start()
    theirs.close()
    try:
        if not ours.poll(_SECONDS):
            raise TimeoutError("the job did not start")
        yield ours.recv()
    finally:
        with suppress(BrokenPipeError):  # the page has failed and reported why
            ours.send("enough")
        process.join(_SECONDS)
        ours.close()


def at_a_fixed_rate(step: Callable[[], object], connection: Connection) -> None:
    """Makes steps, `STEPS_PER_SECOND`, until told that it is enough."""
    due = time.perf_counter()
    while not connection.poll(max(0.0, due - time.perf_counter())):
        step()
        due = max(due + 1 / STEPS_PER_SECOND, time.perf_counter() - 1)


def measure_page(
    script: Script,
    who: str,
    *,
    url: str,
    drawn: str,
    serving: Sequence[int],
    polls: bool = False,
    button: str = "",
    tab: str = "",
) -> None:
    """Measures a page of a job that runs: four cases; or only takes a picture, if the script was asked for one.

    Needs the program `ss` of Linux.

    Args:
      script: The script whose cases they are.
      who: The name that `Script.case` takes.
      url: The url of the page.
      drawn: JavaScript, true once data of the job is on the page.
      serving: The processes that serve the page, or tell the server what happens.
      polls: Whether it asks again and again, over connections that end: Linux counts only those that there are, so what
        the browser receives is counted then.
      button: A button that is clicked before the picture is taken, such as that of a hint for newcomers.
      tab: The tab that the picture shows, where it is not the first one.
    """
    if script.options.picture:
        with chromium() as browser:
            page, _ = _open(browser, url, drawn, PICTURE)
            if button:
                page.page.get_by_role("button", name=button).click()
            if tab:
                page.page.get_by_role("tab", name=tab).click()
            page.keep(script.options.picture)
        return
    opened, first, later, cpu = [], [], [], []
    seconds = 10.0 * script.options.scale
    port = urlsplit(url).port
    assert port is not None
    with chromium() as browser:
        _look(browser, url, drawn)  # covers imports and compiled templates
        for _ in range(script.options.pages):
            page, took = _open(browser, url, drawn)
            opened.append(took)
            first.append(float(page.received))
            page.close()
        for _ in range(script.options.pages):
            without = _cpu_share(serving, lambda: time.sleep(seconds))
            page, _took = _open(browser, url, drawn)
            page.stay(2.0)  # one-time messages have arrived by now
            before, received = sent_bytes(port), page.received
            cpu.append(_cpu_share(serving, lambda page=page: page.stay(seconds)) - without)
            sent = page.received - received if polls else sent_between(before, sent_bytes(port))
            later.append(sent / seconds * 10)
            page.close()
    for what, unit, scale, samples in (
        ("page, first data", "s", 1.0, opened),
        ("page, sent until then", "kB", 1e-3, first),
        ("page, sent in 10 s more", "kB", 1e-3, later),
        ("page, CPU while open", "% of a core", 100.0, [statistics.median(cpu)]),
    ):
        with script.case(who, what, unit=unit, scale=scale, replicas=2) as case:
            case.samples = samples


def _open(browser: Any, url: str, drawn: str, viewport: dict[str, int] = SIZE) -> tuple[Page, float]:
    page = Page(browser, viewport)
    page.page.goto(url, wait_until="commit")
    return page, page.wait_for(drawn)


def _look(browser: Any, url: str, drawn: str) -> None:
    _open(browser, url, drawn)[0].close()


def _cpu_share(pids: Sequence[int], wait: Callable[[], None]) -> float:
    """How much of one core some processes use during a wait."""
    processes = [psutil.Process(pid) for pid in pids]
    began, before = time.perf_counter(), _cpu_seconds(processes)
    wait()
    return (_cpu_seconds(processes) - before) / (time.perf_counter() - began)


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
