"""The hint of the Overview: there until a person has read it or does what it says, and never again in that browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.gallery import ORIGIN, model, open_gallery, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.e2e
NO_STORAGE = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); }
});"""
WAYS: dict[str, Callable[[Page], Any]] = {
    "its button": lambda page: hint(page).first.get_by_role("button", name="Got it").click(),
    "Enter": lambda page: press(hint(page).first.get_by_role("button"), "Enter"),
    "Escape": lambda page: press(hint(page).first.get_by_role("button"), "Escape"),
    "a figure": lambda page: page.get_by_role("button", name="Time waited").first.click(),
    "a chart": lambda page: page.get_by_role("button", name="More of lanes").first.click(),
}


def hint(page: Page) -> Locator:
    return page.get_by_role("note", name="First steps")


def press(button: Locator, key: str) -> None:
    button.focus()
    button.press(key)


def again(page: Page) -> None:
    """The page and its Overview once more, as on another day."""
    page.goto(f"{ORIGIN}/")
    page.wait_for_function("() => window.ready")
    show(page, "overview", model("collectives"))


@pytest.mark.parametrize("way", WAYS)
def test_it_goes_from_all_overviews_and_does_not_come_back(page: Page, way: str) -> None:
    show(page, "overview", model("collectives"))
    show(page, "overview", model("collectives"))
    assert hint(page).count() == 2
    assert page.evaluate("() => document.activeElement === document.body")  # it does not take the focus

    WAYS[way](page)
    hint(page).first.wait_for(state="detached")
    assert hint(page).count() == 0
    if way in ("Enter", "Escape"):
        assert "Steps per second" in page.evaluate("() => document.activeElement.textContent")
    again(page)
    page.locator(".wb-figures").wait_for()
    assert hint(page).count() == 0


def test_where_nothing_can_be_kept_it_goes_all_the_same(browser: Browser) -> None:
    page = open_gallery(browser)
    page.add_init_script(NO_STORAGE)
    again(page)
    hint(page).get_by_role("button").click()
    hint(page).wait_for(state="detached")
    show(page, "overview", model("collectives"))
    page.locator(".wb-figures").nth(1).wait_for()
    assert hint(page).count() == 0

    again(page)
    hint(page).wait_for()
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


def test_it_says_where_the_other_views_are(page: Page) -> None:
    show(page, "overview", model("collectives"))
    assert "wb.inspect(value)" in hint(page).inner_text()  # in the output of a cell

    show(page, "replay", model("replay"))
    assert hint(page).nth(1).inner_text().count("The tabs above have the other views.") == 1

    show(page, "overview", model("collectives"), saved={})  # a page with one view
    assert hint(page).nth(2).locator("p").inner_text().strip().endswith("all charts mark it.")


def test_it_waits_for_something_to_click(page: Page) -> None:
    nothing = model("collectives")
    nothing["snapshot"]["groups"] = []
    show(page, "overview", nothing)
    page.locator(".wb-nothing").wait_for()
    assert hint(page).count() == 0


@pytest.mark.parametrize("width", [360, 680, 1300])
def test_it_covers_nothing_and_moves_nothing(browser: Browser, width: int) -> None:
    page = open_gallery(browser, width=width)
    page.set_viewport_size({"width": width, "height": 3000})  # without scrolling
    page.emulate_media(reduced_motion="reduce")
    show(page, "overview", model("collectives"))
    card = hint(page).bounding_box()
    assert card is not None
    drawn = """() => [...document.querySelectorAll('.wb-page *:not(.wb-hint, .wb-hint *)')]
      .filter((one) => one.getClientRects().length).map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return { x, y, width, height };
      })"""
    before = page.evaluate(drawn)
    assert len(before) > 20
    for box in before:
        assert box["y"] + box["height"] <= card["y"]
    assert card["x"] + card["width"] <= width
    moving = "() => document.getAnimations().filter((one) => one.effect.target.closest('.wb-hint')).length"
    assert page.evaluate(moving) == 0

    hint(page).get_by_role("button").click()
    hint(page).wait_for(state="detached")
    assert page.evaluate(drawn) == before
    page.close()
