"""The views in real Chromium: nothing fails or is fetched, the rules of accessibility hold, keys and themes work."""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.gallery import SHOWN, model, open_gallery, show

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

ROOM_LEFT = """() => [...document.querySelectorAll(".wb-head[data-tight]")].filter((head) => {
  const [title, next] = [head.querySelector("h3"), head.querySelector(".wb-actions > [hidden]")];
  if (!next) return head.dataset.tight === "folded";
  next.hidden = false;
  next.style.marginLeft = "6px"; // the width of the "…" is known so well
  const isCut = title.scrollWidth > title.clientWidth;
  next.style.marginLeft = "";
  next.hidden = true;
  return !isCut;
})"""
"""Rows above views in which the first button that waits behind the "…" has room."""

HEIGHTS = """() => [...document.querySelectorAll(".wb-head[data-tight]")].map((head) => {
  const shown = [...head.querySelectorAll(":scope > h3, :scope > .wb-state, button:not([hidden], [hidden] *)")];
  const middles = shown.map((part) => part.getBoundingClientRect()).map((box) => (box.top + box.bottom) / 2);
  return Math.max(...middles) - Math.min(...middles);
})"""
"""Of the row above each view: how far the middles of what stands in it are apart."""

GROUPS = """() => [...document.querySelectorAll(".wb-group")].map((node) => {
  const [kind, cell] = [node.firstElementChild, node.closest("td")];
  const range = document.createRange();
  // The letters that neither their own box nor the cell cuts off.
  const seen = [...node.childNodes].map((part) => {
    const text = part.firstChild ?? part;
    const boxes = [cell, node, kind.contains(text) ? kind : node].map((each) => each.getBoundingClientRect());
    const right = Math.min(...boxes.map((box) => box.right));
    return [...text.textContent].filter((_, at) => {
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      return range.getBoundingClientRect().right <= right + 0.5;
    }).join("");
  });
  return { text: node.textContent, cut: kind.scrollWidth > kind.clientWidth, seen };
})"""
"""Of the name of each group: its text, whether its kind is cut, and what can be seen of its kind and of its number."""


def faults(page: Page) -> list[str]:
    found: list[str] = page.faults  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    "dark", [pytest.param(False, id="light"), pytest.param(True, id="dark", marks=pytest.mark.thorough)]
)
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


def test_charts_write_in_the_font_of_the_page(browser: Browser) -> None:
    page = open_gallery(browser)
    for view in ("overview", "lanes", "heat_map", "sweep"):
        show(page, view, model("collectives"))
    fonts = page.evaluate(
        "() => [...document.querySelectorAll('canvas')].map((each) => each.getContext('2d').font)"
    )
    family = page.evaluate("() => getComputedStyle(document.querySelector('.wb')).fontFamily")
    assert fonts
    assert {font.split(" ", 1)[0] for font in fonts} == {"11px"}
    assert {font.split(" ", 1)[1] for font in fonts} == {family}
    page.close()


def test_names_of_groups_that_have_no_room_keep_the_ends_that_tell_them_apart(browser: Browser) -> None:
    page = open_gallery(browser, width=410)
    shown = model("collectives")
    (row, *_) = shown["snapshot"]["table"]
    groups = ("MirroredStrategy/1", "MirroredStrategy/2", "MultiWorkerMirroredStrategy/12", "all")
    shown["snapshot"]["table"] = [row | {"group": group, "key": group} for group in groups]
    show(page, "collective_table", shown)
    page.locator(".wb-folded").wait_for()

    found = page.evaluate(GROUPS)
    assert [one["text"] for one in found] == [
        "MirroredStrategy",  # the first one of its kind has no number
        "MirroredStrategy 2",
        "MultiWorkerMirroredStrategy 12",
        "all",
    ]
    assert [one["cut"] for one in found] == [True, True, True, False]
    assert ["".join(one["seen"][1:]) for one in found] == ["", " 2", " 12", ""]
    seen = ["".join(one["seen"]) for one in found]
    assert len(set(seen)) == len(groups), seen
    assert all(
        group.startswith(one["seen"][0]) and one["seen"][0] for group, one in zip(groups, found, strict=True)
    )
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

    page.wait_for_function("() => /step \\d+ number \\d+/.test(document.querySelector('output').textContent)")
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
    show(page, "heat_map", model("collectives"))
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 20, steps=3)
    page.mouse.up()
    chosen = page.get_by_role("button", name=re.compile(r"^steps \d+ to \d+"))
    chosen.nth(1).wait_for()  # of both

    chosen.first.click()
    chosen.first.wait_for(state="detached")

    heat = page.locator(".wb-heat-map")
    heat.locator("canvas").click(position={"x": 300, "y": 30})
    pinned = page.get_by_role("button", name=re.compile(r"^step \d+"))
    pinned.nth(1).wait_for()
    assert re.match(r"step (\d+) pinned · replica \d .*step \1: ", heat.locator("output").inner_text())
    page.keyboard.press("Escape")
    pinned.first.wait_for(state="detached")
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


MATRICES = ("Lateness in µs by replica and step", "Elements [")
"""Tables with a column for each step or element, none of which matters less than the others."""


def too_wide(page: Page) -> list[str]:
    """Labels of the tables that have to be scrolled sideways."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll(".wb-scroll")]
          .filter((box) => box.scrollWidth > box.clientWidth)
          .map((box) => box.querySelector("table").getAttribute("aria-label"))"""
    )
    return [label for label in found if not label.startswith(MATRICES)]


@pytest.mark.parametrize("width", [480, 640, 1000])
@pytest.mark.parametrize("view", SHOWN)
def test_no_table_has_to_be_scrolled_sideways(browser: Browser, view: str, width: int) -> None:
    page = open_gallery(browser, width=width)
    for name in SHOWN[view]:
        show(page, view, model(name))
    assert too_wide(page) == []
    for button in page.get_by_role("button", name="Table").all():
        button.click()

    assert too_wide(page) == []
    assert faults(page) == []
    page.close()


@pytest.mark.parametrize("view", SHOWN)
def test_nothing_sticks_out_of_a_narrow_page(browser: Browser, view: str) -> None:
    page = open_gallery(browser, width=320)
    for name in SHOWN[view]:
        show(page, view, model(name))
    wider = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) == 0
    for button in page.get_by_role("button", name="Table", exact=True).all():
        button.click()

    assert page.evaluate(wider) == 0
    page.close()


def test_columns_that_are_folded_away_are_read_below_and_unfolded_by_a_button(browser: Browser) -> None:
    shown = model("collectives")
    page = open_gallery(browser, width=480)
    show(page, "collective_table", shown)
    grid = page.get_by_role("grid")
    every = int(grid.get_attribute("aria-colcount") or 0)
    headings = page.locator("th").all_inner_texts()
    assert headings[:2] == ["operation", "size"]
    assert {"median", "bandwidth"} <= set(headings)
    more = page.get_by_role("button", name=f"{every - len(headings)} more columns")
    assert more.get_attribute("aria-expanded") == "false"
    assert page.locator("th").last.get_attribute("aria-colindex") != str(len(headings))

    page.locator("th").first.focus()
    page.keyboard.press("ArrowDown")
    said = page.locator("td:focus").get_attribute("aria-describedby")
    row = shown["snapshot"]["table"][0]
    page.wait_for_function(
        "([id, text]) => document.getElementById(id).textContent.includes(text)",
        arg=[said, f"elements {row['count']:,}"],
    )
    page.locator("tbody tr").nth(2).hover()
    third = f"elements {shown['snapshot']['table'][2]['count']:,}"
    page.wait_for_function(
        "text => document.querySelector('.wb-readout').textContent.includes(text)", arg=third
    )

    more.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("n => document.querySelectorAll('th').length === n", arg=every)
    page.get_by_role("button", name="Fewer columns", expanded=True).click()
    page.wait_for_function("n => document.querySelectorAll('th').length === n", arg=len(headings))
    page.close()


def test_columns_come_and_go_with_the_width_of_the_page(browser: Browser) -> None:
    page = open_gallery(browser, width=1600)
    show(page, "collective_table", model("collectives"))
    every = page.locator("th").count()
    assert page.locator(".wb-folded").count() == 0
    for width in (700, 480, 900):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function(
            "() => { const box = document.querySelector('.wb-scroll'); return box.scrollWidth <= box.clientWidth; }"
        )
        assert 3 < page.locator("th").count() < every
    page.set_viewport_size({"width": 1600, "height": 700})
    page.wait_for_function("n => document.querySelectorAll('th').length === n", arg=every)
    assert faults(page) == []
    page.close()


def test_a_text_that_is_cut_off_is_read_below(browser: Browser) -> None:
    shown = model("lost")
    event = shown["snapshot"]["events"][0] | {"message": "long " * 40 + "end", "key": "long"}
    shown["snapshot"]["events"] = [event]
    page = open_gallery(browser, width=640)
    show(page, "log", shown)
    assert too_wide(page) == []
    assert "message" in page.locator("th").all_inner_texts()

    page.locator("tbody tr").hover()
    page.wait_for_function("() => /long end/.test(document.querySelector('.wb-readout').textContent)")
    page.close()


@pytest.mark.parametrize("width", [320, 400, 700])
def test_the_row_above_a_narrow_view_does_not_wrap(browser: Browser, width: int) -> None:
    page = open_gallery(browser, width=width)
    for view in ("topology", "dataset_sharding", "servers", "lanes", "sweep", "heat_map", "log", "runs"):
        show(page, view, model(SHOWN[view][0]))
    page.wait_for_function(f"() => ({HEIGHTS})().every((height) => height < 8)")

    assert len(page.evaluate(HEIGHTS)) == 9
    assert faults(page) == []
    page.close()


def test_buttons_that_have_no_room_wait_behind_one_with_dots(browser: Browser) -> None:
    page = open_gallery(browser, width=360)
    show(page, "log", model("lost"))
    names = ("All", "Alerts", "Output", "Lifecycle", "Export")
    buttons = [page.get_by_role("button", name=name, exact=True) for name in names]
    lifecycle = buttons[3]
    more = page.get_by_role("button", name="More", exact=True)
    more.wait_for()
    there = [button.is_visible() for button in buttons]
    assert there == sorted(there, reverse=True)  # the last ones wait
    assert there[0]
    assert not there[3]
    row, dots = (box for box in (buttons[0].bounding_box(), more.bounding_box()) if box)
    assert abs(row["y"] - dots["y"]) < 8

    more.focus()
    page.keyboard.press("Enter")
    assert all(button.is_visible() for button in buttons)
    unfolded = there.index(False)
    focused = "() => document.activeElement.ariaLabel ?? document.activeElement.textContent"
    # The Tab key visits them, and then the button that collapses them.
    for name in (*names[unfolded:], "More"):
        assert page.evaluate(focused) == name
        page.keyboard.press("Tab")
    lifecycle.click()
    page.get_by_text("stdout").first.wait_for(state="detached")
    assert more.get_attribute("aria-expanded") == "true"
    page.set_viewport_size({"width": 900, "height": 700})
    more.wait_for(state="detached")
    assert lifecycle.get_attribute("aria-pressed") == "true"
    assert faults(page) == []
    page.close()


def test_nothing_is_folded_that_has_room(browser: Browser) -> None:
    page = open_gallery(browser, width=900)
    for view in ("sweep", "dataset_sharding", "log", "lanes"):
        show(page, view, model(SHOWN[view][0]))
    page.wait_for_function("() => document.querySelectorAll('.wb-head[data-tight]').length === 4")
    for width in range(880, 300, -40):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function(f"() => ({ROOM_LEFT})().length === 0")
    assert faults(page) == []
    assert faults(page) == []
    page.close()


def test_a_narrow_log_keeps_replica_step_and_call_site(browser: Browser) -> None:
    page = open_gallery(browser, width=440)
    show(page, "log", model("lost"))
    assert too_wide(page) == []
    titles = page.locator("th").all_inner_texts()
    assert [title for title in titles if title not in ("s", "host")] == [
        "what",
        "replica",
        "step",
        "message",
        "line",
    ]
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
