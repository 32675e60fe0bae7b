"""Views in panes: charts fill them, whatever their size, and what does not fit is scrolled once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.crowd import Crowd
from tests.extension.gallery import model, open_gallery, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
PANE = """([width, height]) => {
  document.body.style.margin = "0";
  const pane = document.querySelector("main");
  pane.className = "wb-pane-body";
  pane.style.cssText = `width: ${width}px; height: ${height}px; overflow: auto; container-type: size`;
}"""
"""Makes the page a pane, as that of JupyterLab."""

LEFT_FREE = """() => {
  const pane = document.querySelector("main");
  const parts = document.querySelector(".wb-page")?.children ?? document.querySelector(".wb").children;
  const foot = Math.max(...[...parts].map((part) => part.getBoundingClientRect().bottom));
  return 1 - (foot + pane.scrollTop) / pane.clientHeight;
}"""
"""The share of the pane below all that is drawn; below 0 it has to be scrolled."""

ROW = "() => document.querySelector('canvas').clientHeight"
SIZES = [(1500, 900), (1000, 700), (540, 700)]


def pane(browser: Browser, size: tuple[int, int], view: str, shown: dict[str, Any]) -> Page:
    page = open_gallery(browser, width=size[0])
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(PANE, size)
    show(page, view, shown)
    return page


def with_loss() -> dict[str, Any]:
    """A run whose steps return their loss."""
    shown = model("collectives")
    group = shown["snapshot"]["groups"][0]
    steps = group["lateness"]["steps"]
    mean = [1 / (1 + step) for step in range(len(steps))]
    course = {"name": "loss", "function": "train", "steps": steps, "mean": mean, "low": [], "high": []}
    group["told"]["result"] = course | {"replicas": [mean] * group["n"]}
    return shown


def left_free(page: Page) -> float:
    found: float = page.evaluate(LEFT_FREE)
    return found


def test_the_overview_is_as_high_as_its_pane(browser: Browser) -> None:
    page = pane(browser, (1500, 1200), "overview", with_loss())
    page.wait_for_function(f"() => ({LEFT_FREE})() < 0.05")
    assert left_free(page) >= 0
    lateness, loss = (page.locator(f".wb-module-{name}").bounding_box() for name in ("lateness", "loss"))
    assert lateness is not None
    assert loss is not None
    assert lateness["height"] == loss["height"]  # side by side
    cells = page.locator(".wb-module-lateness .wb-chart").bounding_box()
    assert cells is not None
    assert cells["height"] > 0.6 * lateness["height"]

    before = page.evaluate(ROW)
    page.evaluate(PANE, (1500, 900))  # the pane gets lower, and higher again
    page.wait_for_function(f"before => ({ROW})() < before", arg=before)
    page.evaluate(PANE, (1500, 1200))
    page.wait_for_function(f"() => 0 <= ({LEFT_FREE})() && ({LEFT_FREE})() < 0.05")
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize("size", [(540, 700), (1000, 640)])
def test_where_there_is_little_room_the_loss_is_seen_before_the_hint(
    browser: Browser, size: tuple[int, int]
) -> None:
    page = pane(browser, size, "overview", with_loss())
    loss, hint = page.locator(".wb-module-loss"), page.get_by_role("note", name="First steps")
    box, card = loss.bounding_box(), hint.bounding_box()
    assert box is not None
    assert card is not None
    assert box["y"] + 40 < size[1]
    assert box["y"] + box["height"] <= card["y"]
    page.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("replicas", [2, 4, 8, 64])
@pytest.mark.parametrize("view", ["lanes", "heat_map", "topology"])
def test_of_few_replicas_and_of_many_a_pane_is_not_left_white(
    browser: Browser, view: str, replicas: int, size: tuple[int, int]
) -> None:
    crowd = Crowd(replicas)
    for _ in range(4):
        crowd.work(8)
        crowd.deliver()
    shown = crowd.topology(workers=1, hosts=1) if view == "topology" else crowd.collectives()
    page = pane(browser, size, view, shown)
    page.wait_for_function(f"() => ({LEFT_FREE})() < 0.5")
    page.wait_for_timeout(50)  # and it stays so
    assert left_free(page) < 0.5
    inside = (
        "() => { const pane = document.querySelector('main'); return pane.scrollWidth - pane.clientWidth; }"
    )
    assert page.evaluate(inside) == 0
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


def test_a_table_scrolls_in_a_low_pane_instead_of_the_pane(browser: Browser) -> None:
    crowd = Crowd(2)
    crowd.work(2)
    crowd.speak(40)
    crowd.deliver()
    page = pane(browser, (1000, 300), "log", crowd.collectives())
    page.wait_for_function(f"() => ({LEFT_FREE})() >= 0")
    page.close()


def test_outside_of_panes_charts_are_as_high_as_they_like_best(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "heat_map", model("collectives"))
    rows = len(model("collectives")["snapshot"]["groups"][0]["lateness"]["replicas"])
    assert page.evaluate(ROW) == 16 + 24 * rows + 22
    assert page.locator(".wb-rest").inner_text() == ""
    page.close()
