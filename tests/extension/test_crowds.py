"""Views of 512 replicas: no larger a page than of 64, and usable while updates pour in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.crowd import Crowd
from tests.extension.gallery import open_gallery, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
COUNT = "() => document.querySelectorAll('main *').length"
TIMINGS = ("overview", "collectives", "collective_table", "lanes", "heat_map", "sweep", "log", "stuck")
MODELS: dict[str, tuple[str, Callable[[Crowd], dict[str, Any]]]] = {
    **{view: (view, Crowd.collectives) for view in TIMINGS},
    "topology, a worker": ("topology", lambda crowd: crowd.topology(workers=1, hosts=1)),
    "topology, a host": ("topology", lambda crowd: crowd.topology(workers=crowd.replicas, hosts=1)),
    "topology": ("topology", lambda crowd: crowd.topology(workers=crowd.replicas, hosts=crowd.replicas)),
    "devices": ("devices", Crowd.devices),
    "values": ("values", Crowd.values),
    "array_sharding": ("array_sharding", Crowd.array),
    "dataset_sharding": ("dataset_sharding", Crowd.dataset),
    "input": ("input", Crowd.input),
    "data_service": ("data_service", Crowd.data_service),
    "servers": ("servers", Crowd.servers),
}
TOGETHER = ("topology", "lanes", "collective_table", "heat_map", "devices", "log")


@pytest.fixture(scope="module")
def crowds() -> list[Crowd]:
    """One that is too large to be drawn whole, and one eight times as large, after as many steps."""
    crowds = [Crowd(64), Crowd(512)]
    for crowd in crowds:
        for _ in range(4):
            crowd.work(8)
            crowd.speak(200)
            crowd.deliver()
    return crowds


@pytest.mark.parametrize("name", MODELS)
def test_a_page_does_not_grow_with_the_number_of_replicas(
    browser: Browser, crowds: list[Crowd], name: str
) -> None:
    view, make = MODELS[name]
    sizes = []
    for crowd in crowds:
        page = open_gallery(browser)
        show(page, view, make(crowd))
        drawn = page.evaluate(COUNT)
        for button in page.get_by_role("button", name="Table", exact=True).all():
            button.click()
        sizes.append((drawn, page.evaluate(COUNT)))
        page.close()

    (few, few_rows), (many, many_rows) = sizes
    assert many <= few + 8  # marks such as "late step after step"
    assert many_rows <= few_rows + 8
    assert max(many, many_rows) < 2500


def readout(page: Page) -> str:
    return page.locator(".wb-lanes output").inner_text()


def test_six_views_of_512_replicas_answer_keys_while_updates_pour_in(
    browser: Browser, crowds: list[Crowd]
) -> None:
    crowd = crowds[1]
    page = open_gallery(browser, width=1400)
    page.set_viewport_size({"width": 1400, "height": 5000})  # what is out of sight is not drawn

    def models() -> dict[str, Any]:
        made = dict.fromkeys(TOGETHER, crowd.collectives())
        return made | {"topology": crowd.topology(workers=64, hosts=8), "devices": crowd.devices()}

    for view, shown in models().items():
        show(page, view, shown)
    page.evaluate(
        """() => {
          window.newest = [];
          setInterval(() => { for (const [view, model] of window.newest) window.mounts[view].update(model); }, 1);
        }"""
    )
    chart = page.locator(".wb-lanes [role=application]")
    chart.focus()
    page.keyboard.press("End")
    size, seen = 0, set()
    for turn in range(12):
        crowd.work(12)  # more than rings hold
        crowd.speak(20)
        crowd.deliver()
        page.evaluate(
            "(models) => { window.newest = Object.entries(JSON.parse(models)); }", json.dumps(models())
        )
        dropped = crowd.feed.snapshot().counters.dropped
        page.locator(".wb-collective-table summary", has_text=f"{dropped:,} records dropped").wait_for()
        before = readout(page)
        page.keyboard.press("ArrowDown" if turn % 2 else "ArrowLeft")
        page.wait_for_function(
            "before => document.querySelector('.wb-lanes output').textContent !== before", arg=before
        )
        seen.add(readout(page))
        if turn == 2:  # the page's log has its maximum number of rows
            size = page.evaluate(COUNT)

    assert len(seen) == 12
    assert abs(page.evaluate(COUNT) - size) <= 8
    summary = page.locator(".wb-collective-table summary", has_text="records dropped")
    summary.focus()
    page.keyboard.press("Enter")
    page.get_by_text("the job itself lost nothing").wait_for()
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()
