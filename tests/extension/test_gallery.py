"""The views in real Chromium: nothing fails or is fetched, the rules of accessibility hold, keys and themes work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.gallery import SHOWN, chromium, model, open_gallery, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
AXE = """async () => {
  const found = await axe.run("main", { rules: { region: { enabled: false } } });
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""
COLOURS = """() => {
  const style = getComputedStyle(document.querySelector(".wb"));
  return [style.color, style.backgroundColor];
}"""


@pytest.fixture(scope="module")
def browser(built: ModuleType) -> Iterator[Browser]:
    pytest.importorskip("playwright", reason="Playwright is not installed")
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("there is no Chromium on PATH")
    with chromium() as browser:
        yield browser


def faults(page: Page) -> list[str]:
    found: list[str] = page.faults  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", SHOWN)
def test_a_view_can_be_read_by_everybody(browser: Browser, built: ModuleType, view: str, dark: bool) -> None:
    page = open_gallery(browser, dark=dark)
    for name in SHOWN[view]:
        show(page, view, model(name))
    page.add_script_tag(path=built.EXTENSION / "node_modules" / "axe-core" / "axe.min.js")

    assert page.evaluate(AXE) == []
    for button in page.get_by_role("button", name="Table").all():
        button.click()
    assert page.evaluate(AXE) == []
    assert faults(page) == []
    page.close()


def test_colours_are_those_of_jupyterlab_where_it_has_some(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "devices", model("devices"))
    assert page.evaluate(COLOURS) == ["rgb(27, 27, 31)", "rgb(255, 255, 255)"]

    page.evaluate(
        """() => {
          document.body.style.setProperty("--jp-content-font-color1", "rgb(1, 2, 3)");
          document.body.style.setProperty("--jp-layout-color1", "rgb(4, 5, 6)");
        }"""
    )

    assert page.evaluate(COLOURS) == ["rgb(1, 2, 3)", "rgb(4, 5, 6)"]
    page.close()


def test_a_canvas_is_painted_anew_when_the_theme_changes(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "lanes", model("collectives"))
    before = page.evaluate("() => document.querySelector('canvas').toDataURL()")

    page.evaluate("() => document.body.style.setProperty('--jp-content-font-color1', 'rgb(200, 0, 0)')")

    page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=before)
    page.close()


def test_the_keyboard_alone_reaches_charts_tabs_and_cells(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "collectives", model("stuck"))
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")  # from "Table" to "Lanes"
    for _ in range(5):  # past its four buttons, to the chart
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")

    page.wait_for_function("() => /step \\d+ seq \\d+/.test(document.querySelector('output').textContent)")
    page.keyboard.press("Shift+Tab")  # its button "Export"
    page.keyboard.press("Shift+Tab")  # its button "Table"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.tagName") == "TD"
    page.close()


def test_dragging_over_lanes_zooms_and_the_button_goes_back(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "lanes", model("collectives"))
    box = page.locator("canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 20, steps=3)
    page.mouse.up()

    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Show all").wait_for(state="detached")
    page.close()


def test_ten_thousand_updates_leave_the_page_as_it_was(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "collectives", model("collectives"))
    count = "() => document.querySelectorAll('*').length"
    before = page.evaluate(count)

    painted = page.evaluate(
        """async (model) => {
          let painted = 0;
          new MutationObserver(() => { painted += 1; }).observe(
            document.querySelector(".wb"), { subtree: true, childList: true, characterData: true, attributes: true });
          const begin = performance.now();
          for (let i = 0; i < 10000; i += 1) {
            const counters = { ...model.snapshot.counters, collectives: i };
            window.mounted.update({ ...model, snapshot: { ...model.snapshot, counters } });
            if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
          }
          const seconds = (performance.now() - begin) / 1000;
          await new Promise((resolve) => setTimeout(resolve, 300));
          return { painted, allowed: 10 * (seconds + 0.3) + 2 };
        }""",
        model("collectives"),
    )

    assert 1 <= painted["painted"] <= painted["allowed"]
    assert "9,999 collectives" in page.locator(".wb").inner_text()
    assert page.evaluate(count) <= before + 2
    page.close()


def shadow_styles(page: Page) -> Any:
    return page.evaluate(
        """async (model) => {
          const { mount } = await import("./widget.js");
          const host = document.createElement("div");
          document.body.append(host);
          const inside = document.createElement("div");
          host.attachShadow({ mode: "open" }).append(inside);
          mount("devices", inside, model);
          return getComputedStyle(inside.querySelector(".wb")).paddingLeft;
        }""",
        model("devices"),
    )


def test_a_view_in_a_shadow_tree_has_its_style(browser: Browser) -> None:
    page = open_gallery(browser)

    assert shadow_styles(page) == "10px"
    page.close()
