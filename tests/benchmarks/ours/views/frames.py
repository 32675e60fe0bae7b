"""The Overview of 512 replicas in a page of Chromium, alone, while updates come: first paint, frames, main thread.

The page is sent what a kernel sends, ten messages a second about 20 collectives a second, all made beforehand, so that
nothing else works meanwhile. A frame is late if it comes more than one turn of a screen with 60 frames a second after
the one before it; frames/s is the median second. The same page without updates tells what this browser can do: a
headless one draws on the CPU. Main thread is what the page's thread computed, beyond what it does without updates.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from tests.benchmarks.measure import Script
from tests.chromium import chromium
from tests.extension.crowd import Crowd
from tests.extension.gallery import MODULES, ORIGIN
from workbench.ui.widgets.collectives import CollectivesSource

REPLICAS = 512
MESSAGES_PER_SECOND = 10
STEPS_A_MESSAGE = 2
FILLING_STEPS = 100
TURN_MS = 1000 / 60
TOLERANCE = 1.1
"""A turn and a tenth: the page's clock is coarse."""
PAGE = '<!doctype html><meta charset="utf-8"><title>frames</title><html lang="en"><body></body></html>'
OPEN = """async (first) => {
  const frame = () => new Promise(requestAnimationFrame);
  const began = performance.now();
  const { attach } = await import(`${location.origin}/widget.js`);
  const state = { view: "overview", model: JSON.parse(first) };
  const handlers = {};
  const model = { // as anywidget's: whoever sets something hears of the change
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; handlers[`change:${name}`]?.(); },
    send() {},
    on: (event, handler) => { handlers[event] = handler; },
    off() {},
  };
  window.take = (message) => handlers["msg:custom"](message);
  attach(model, document.body);
  while (!document.querySelector(".wb-overview canvas")) await frame();
  await frame(); // it is drawn now, and painted when the next one begins
  await frame();
  return performance.now() - began;
}"""
WATCH = """() => {
  const seen = window.seen = { frames: [], work: [] };
  const after = new MessageChannel();
  let began = 0;
  after.port1.onmessage = () => seen.work.push(performance.now() - began); // once this frame is drawn
  const frame = (now) => {
    began = performance.now();
    seen.frames.push(now);
    after.port2.postMessage(null);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
TAKE = """() => {
  const { frames, work } = window.seen;
  Object.assign(window.seen, { frames: frames.slice(-1), work: [] });
  return [frames, work];
}"""
SEND = """([messages, ms]) => {
  let next = 0;
  const timer = setInterval(() => {
    if (next < messages.length) window.take(JSON.parse(messages[next++]));
    else clearInterval(timer);
  }, ms);
}"""


def messages(replicas: int, number: int) -> tuple[str, list[str]]:
    """The model of a run, and so many messages that tell how it goes on; as JSON."""
    crowd = Crowd(replicas, capacity=64)
    source = CollectivesSource("overview", lambda: crowd.feed.snapshot(), lambda: "live")
    for _ in range(FILLING_STEPS // STEPS_A_MESSAGE):
        crowd.work(STEPS_A_MESSAGE)
        crowd.deliver()
    first = json.dumps(source.model())
    made = []
    for _ in range(number):
        crowd.work(STEPS_A_MESSAGE)
        crowd.deliver()
        made.append(json.dumps(source.change()))
    return first, made


def main() -> None:
    """Measures it."""
    script = Script("views", __doc__, pages=5, seconds=20.0)
    seconds = max(3, round(script.options.seconds * script.options.scale))
    first, made = messages(REPLICAS, (seconds + 1) * MESSAGES_PER_SECOND)
    with chromium() as browser:
        with case(script, "overview, first paint", unit="s", scale=1e-3) as found:
            for _ in range(script.options.pages):
                page = opened(browser)
                found.samples.append(page.evaluate(OPEN, first))
                page.close()
        page = opened(browser)
        page.evaluate(OPEN, first)
        page.evaluate(WATCH)
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
        tools.send("Performance.enable")
        idle, quiet, _ = watched(page, tools, seconds)
        page.evaluate(SEND, [made, 1000 / MESSAGES_PER_SECOND])
        page.wait_for_timeout(500)
        busy, frames, longest = watched(page, tools, seconds)
        page.get_by_text(
            re.compile(f"step {FILLING_STEPS + STEPS_A_MESSAGE * len(made) - 1}$")
        ).first.wait_for()
        page.close()
    usual = sum(idle) / len(idle)
    late = [sum(gap > TOLERANCE * TURN_MS for gap in gaps(second)) / len(gaps(second)) for second in frames]
    for what, unit, scale, samples in (
        ("overview, frames", "frames/s", 1.0, [rate(second) for second in frames]),
        ("overview, frames without updates", "frames/s", 1.0, [rate(second) for second in quiet]),
        ("overview, late frames", "%", 100.0, [sum(late) / len(late)]),
        (
            "overview, main thread per update",
            "ms",
            1e3,
            [(one - usual) / MESSAGES_PER_SECOND for one in busy],
        ),
        ("overview, longest frame", "ms", 1.0, [longest]),
    ):
        with case(script, what, unit=unit, scale=scale) as found:
            found.samples = samples


def case(script: Script, what: str, *, unit: str, scale: float) -> Any:
    """A case of ours with that many replicas."""
    return script.case("workbench", what, unit=unit, scale=scale, replicas=REPLICAS)


def opened(browser: Any) -> Any:
    """An empty page, which can fetch the views' code."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.route(f"{ORIGIN}/", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    for address, path in MODULES.items():
        page.route(address, lambda route, path=path: route.fulfill(path=path, content_type="text/javascript"))
    page.goto(f"{ORIGIN}/")
    return page


def watched(page: Any, tools: Any, seconds: int) -> tuple[list[float], list[list[float]], float]:
    """Looks at the page, second by second.

    Returns:
      What its thread computed in each second, in seconds; when frames began in each, in ms; the longest frame, in ms.
    """
    page.evaluate(TAKE)
    busy, frames, longest = [], [], 0.0
    before = metrics(tools)
    for _ in range(seconds):
        page.wait_for_timeout(1000)
        now = metrics(tools)
        busy.append((now["TaskDuration"] - before["TaskDuration"]) / (now["Timestamp"] - before["Timestamp"]))
        before = now
        began, work = page.evaluate(TAKE)
        frames.append(began)
        longest = max([longest, *work])
    return busy, frames, longest


def metrics(tools: Any) -> dict[str, float]:
    """What Chromium counts of a page."""
    return {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}


def gaps(frames: list[float]) -> list[float]:
    """The times between frames, in ms."""
    return [later - earlier for earlier, later in pairwise(frames)]


def rate(frames: list[float]) -> float:
    """Frames in a second, as a whole number: clocks are not that exact."""
    return float(round(1000 * (len(frames) - 1) / (frames[-1] - frames[0])))


if __name__ == "__main__":
    main()
