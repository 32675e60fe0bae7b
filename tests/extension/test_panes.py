"""Views in panes: charts fill them, whatever their size, and what does not fit is scrolled once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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
  const drawn = "canvas, svg, tr, p, dl, h3, h4, button, .wb-verdict, .wb-figures, .wb-legend, .wb-readout";
  const foot = Math.max(...[...document.querySelectorAll(drawn)].map((one) => {
    const { bottom } = one.getBoundingClientRect();
    return Math.min(bottom, one.closest(".wb-scroll")?.getBoundingClientRect().bottom ?? bottom);
  }));
  return 1 - (foot + pane.scrollTop) / pane.clientHeight;
}"""
"""The share of the pane below all that is drawn, whatever holds it; below 0 it has to be scrolled."""

HOLLOW = """() => Math.max(0, ...[...document.querySelectorAll(".wb-scroll")].map((box) => {
  const { top, bottom } = box.getBoundingClientRect();
  const seen = [...box.querySelectorAll("tr:not(.wb-gap)")].map((row) => row.getBoundingClientRect());
  const from = Math.max(top, Math.min(...seen.slice(1).map((row) => row.top)) - 24);
  return Math.max(from - top, bottom - Math.max(...seen.map((row) => row.bottom)));
}))"""
"""How many pixels of a table show no row."""

PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
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
    page.evaluate(PANE, (1500, 900))  # the pane becomes lower, and then higher again
    page.wait_for_function(f"before => ({ROW})() < before", arg=before)
    page.evaluate(PANE, (1500, 1200))
    page.wait_for_function(f"() => 0 <= ({LEFT_FREE})() && ({LEFT_FREE})() < 0.05")
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize("size", [(1500, 1200), (1500, 1400)])
def test_no_room_is_left_between_the_cards_of_the_overview(browser: Browser, size: tuple[int, int]) -> None:
    page = pane(browser, size, "overview", with_loss())
    page.wait_for_function(f"() => ({LEFT_FREE})() < 0.05")
    lateness, timing = (
        page.locator(f".wb-module-{name}").bounding_box() for name in ("lateness", "collectives")
    )
    assert lateness is not None
    assert timing is not None
    assert 0 < timing["y"] - lateness["y"] - lateness["height"] < 20
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
    page.evaluate(PAINTED)  # and stays so
    assert left_free(page) < 0.5
    assert page.evaluate(HOLLOW) < 24
    inside = (
        "() => { const pane = document.querySelector('main'); return pane.scrollWidth - pane.clientWidth; }"
    )
    assert page.evaluate(inside) == 0
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize("size", [(1500, 700), (900, 400), (700, 1200), (1200, 300)])
@pytest.mark.parametrize(
    ("view", "name"),
    [
        ("overview", "collectives"),
        ("collective_table", "collectives"),
        ("lanes", "collectives"),
        ("heat_map", "collectives"),
        ("sweep", "collectives"),
        ("collectives", "stuck"),
        ("stuck", "stuck"),
        ("topology", "topology"),
        ("values", "values_numbers"),
        ("array_sharding", "array_uneven"),
        ("dataset_sharding", "dataset_files"),
        ("log", "lost"),
    ],
)
def test_a_third_of_a_pane_at_most_is_free(
    browser: Browser, view: str, name: str, size: tuple[int, int]
) -> None:
    page = pane(browser, size, view, model(name))
    for _ in range(4):  # charts, followed by what is below them
        page.evaluate(PAINTED)
    assert left_free(page) < 1 / 3
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize("view", ["devices", "topology"])
@pytest.mark.parametrize("size", [(700, 1000), (700, 1200), (1500, 900)])
def test_of_one_device_a_third_of_a_pane_at_most_is_free(
    browser: Browser, view: str, size: tuple[int, int]
) -> None:
    shown = model(view)
    if view == "devices":
        shown["devices"] = shown["devices"][:1]
    else:
        shown["hosts"] = shown["hosts"][:1]
        shown["hosts"][0]["workers"] = shown["hosts"][0]["workers"][:1]
    page = pane(browser, size, view, shown)
    for _ in range(4):
        page.evaluate(PAINTED)
    assert left_free(page) < 1 / 3
    page.close()


@pytest.mark.parametrize("size", [(700, 480), (700, 560), (800, 500), (1000, 560)])
def test_in_a_pane_that_is_rather_low_the_loss_is_in_sight(browser: Browser, size: tuple[int, int]) -> None:
    page = pane(browser, size, "overview", with_loss())
    page.evaluate(PAINTED)
    box = page.locator(".wb-module-loss").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= size[1]
    page.close()


@pytest.mark.parametrize("size", [(900, 400), (880, 300), (1200, 300), (680, 400), (360, 700)])
def test_the_names_of_figures_are_whole(browser: Browser, size: tuple[int, int]) -> None:
    page = pane(browser, size, "overview", with_loss())
    page.evaluate(PAINTED)
    cut = "names => names.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    assert page.locator(".wb-figure-name").count() == 4
    assert page.locator(".wb-figure-name").evaluate_all(cut) == []


def test_the_course_of_values_is_higher_than_their_newest_ones(browser: Browser) -> None:
    page = pane(browser, (700, 1200), "values", model("values_numbers"))
    page.wait_for_function(f"() => ({LEFT_FREE})() < 0.05")
    heights = page.locator(".wb-chart").evaluate_all("(charts) => charts.map((one) => one.clientHeight)")
    assert len(heights) == 4  # the newest ones of two values, and their history
    for newest, course in zip(heights[::2], heights[1::2], strict=True):
        assert newest < 0.7 * course
    page.close()


@pytest.mark.parametrize("size", [(680, 460), (700, 400), (860, 400), (700, 560)])
def test_in_a_low_pane_that_is_not_wide_lanes_and_lateness_stand_side_by_side(
    browser: Browser, size: tuple[int, int]
) -> None:
    page = pane(browser, size, "overview", with_loss())
    page.evaluate(PAINTED)
    tops = set()
    for name in ("lanes", "lateness"):
        card = page.locator(f".wb-module-{name}")
        box = card.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= size[1]
        assert card.evaluate("(card) => card.scrollWidth <= card.clientWidth")
        tops.add(box["y"])
    assert len(tops) == 1
    page.close()


def test_in_a_low_pane_the_news_the_charts_and_the_hint_are_in_sight(browser: Browser) -> None:
    page = pane(browser, (1200, 300), "overview", with_loss())
    page.evaluate(PAINTED)
    for name in ("verdict", "figures", "module-lanes", "module-lateness", "module-loss"):
        box = page.locator(f".wb-{name}").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 300
    hint = page.get_by_role("note", name="First steps").bounding_box()
    assert hint is not None
    assert hint["y"] + 20 <= 300  # its first line
    page.close()


def test_a_table_scrolls_in_a_low_pane_instead_of_the_pane(browser: Browser) -> None:
    crowd = Crowd(2)
    crowd.work(2)
    crowd.speak(40)
    crowd.deliver()
    page = pane(browser, (1000, 300), "log", crowd.collectives())
    page.wait_for_function(f"() => ({LEFT_FREE})() >= 0")
    below = "element => element.scrollHeight - element.clientHeight"
    assert page.locator(".wb-scroll").evaluate(below) > 0
    assert page.locator(".wb").evaluate("view => view.offsetHeight") <= 300
    assert page.evaluate(HOLLOW) < 24
    page.close()


@pytest.fixture
def long_log(browser: Browser) -> Iterator[Page]:
    """A log with many more lines than a pane has room for, at its first one."""
    crowd = Crowd(2)
    crowd.work(2)
    crowd.speak(150)
    crowd.deliver()
    page = pane(browser, (1000, 900), "log", crowd.collectives())
    scrolled(page, 0)
    yield page
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


def scrolled(page: Page, share: float) -> None:
    """Scrolls the table."""
    page.locator(".wb-scroll").evaluate(
        "(box, share) => { box.scrollTop = share * (box.scrollHeight - box.clientHeight); }", share
    )
    page.evaluate(PAINTED)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_high_table_has_rows_wherever_it_is_scrolled_to(browser: Browser, share: float) -> None:
    crowd = Crowd(2)
    for _ in range(8):
        crowd.work(8)
        crowd.deliver()
    page = pane(browser, (1000, 1600), "lanes", crowd.collectives())
    table = page.locator(".wb-rest .wb-scroll")
    table.wait_for()
    assert table.evaluate("box => box.clientHeight") > 1000
    scrolled(page, share)
    page.wait_for_function(f"() => ({HOLLOW})() < 24")
    page.close()


def test_keys_go_on_where_the_table_was_scrolled_to(long_log: Page) -> None:
    long_log.locator("tbody td").first.focus()
    scrolled(long_log, 1)
    focused = "() => document.activeElement.closest('tr')?.getAttribute('aria-rowindex')"
    long_log.wait_for_function(f"() => Number(({focused})()) > 60")
    row = int(long_log.evaluate(focused))
    long_log.keyboard.press("ArrowDown")
    long_log.wait_for_function(f"row => Number(({focused})()) === row", arg=row + 1)


@pytest.mark.parametrize("view", ["lanes", "heat_map", "sweep"])
@pytest.mark.parametrize("width", [360, 540, 1000])
def test_a_chart_is_as_high_with_its_hint_as_without(browser: Browser, view: str, width: int) -> None:
    page = pane(browser, (width, 500), view, model("collectives"))
    chart, said = page.locator(".wb-chart").first, page.locator(".wb-chart + output").first
    page.evaluate(PAINTED)
    before = chart.bounding_box()
    assert before is not None
    assert said.evaluate("(line) => line.scrollHeight <= line.clientHeight")  # the hint is readable
    for share in (0.3, 0.5, 0.7):
        page.mouse.move(share * width, before["y"] + before["height"] / 2)
        page.evaluate(PAINTED)
        assert chart.bounding_box() == before
    page.mouse.move(0, 0)
    chart.focus()
    page.keyboard.press("ArrowLeft")
    page.evaluate(PAINTED)
    assert said.inner_text() != ""
    assert chart.bounding_box() == before
    page.close()


def test_the_hint_of_a_chart_of_the_overview_is_seen_by_whoever_comes_to_it_by_keys(browser: Browser) -> None:
    page = pane(browser, (1500, 1200), "overview", model("collectives"))
    said = page.locator(".wb-module-lanes output")
    assert page.locator(".wb-module .wb-readout").count() > 3
    for line in page.locator(".wb-module .wb-readout").all():  # of charts, and of tables
        assert line.evaluate("(line) => line.clientWidth < 10")
    hidden = "(line) => line.clientWidth < 10"
    assert said.evaluate(hidden)
    page.get_by_role("button", name="More of lanes").focus()
    page.keyboard.press("Tab")
    assert not said.evaluate(hidden)
    assert said.evaluate("(line) => line.scrollWidth <= line.clientWidth + 1")
    page.close()


@pytest.mark.parametrize("view", ["overview", "lanes"])
def test_whoever_points_at_a_chart_has_no_pane_measured(browser: Browser, view: str) -> None:
    page = pane(browser, (1000, 700), view, model("collectives"))
    page.evaluate(PAINTED)
    page.evaluate("""() => {
      const measure = Element.prototype.getBoundingClientRect;
      window.measured = 0;
      Element.prototype.getBoundingClientRect = function () {
        if (this.matches("main, .wb > *")) window.measured += 1;
        return measure.call(this);
      };
    }""")
    box = page.locator(".wb-chart").first.bounding_box()
    assert box is not None
    said = set()
    for share in (0.3, 0.5, 0.7):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        page.evaluate(PAINTED)
        said.add(page.locator(".wb-chart + output").first.inner_text())
    assert len(said) > 1
    assert page.evaluate("() => window.measured") == 0
    page.close()


def test_outside_of_panes_charts_are_as_high_as_they_like_best(browser: Browser) -> None:
    page = open_gallery(browser)
    show(page, "heat_map", model("collectives"))
    rows = len(model("collectives")["snapshot"]["groups"][0]["lateness"]["replicas"])
    assert page.evaluate(ROW) == 16 + 24 * rows + 22
    assert page.locator(".wb-rest").inner_text() == ""
    page.close()


NAMED = """() => {
  window.named = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (this.canvas.closest(".wb-module-lanes") && /^(step )?\\d+$/.test(text)) {
      if (x < window.named.at(-1)?.[0]) window.named = [];  // it is drawn anew
      window.named.push([x, x + this.measureText(text).width]);
    }
    return fillText.call(this, text, x, y);
  };
}"""
"""Keeps from where to where in the lanes steps are named, in the newest drawing."""


def test_in_a_low_pane_the_charts_of_the_overview_stand_side_by_side(browser: Browser) -> None:
    page = open_gallery(browser, width=1500)
    page.evaluate(PANE, (1500, 300))
    page.evaluate(NAMED)
    show(page, "overview", with_loss())
    page.evaluate(PAINTED)
    boxes = [page.locator(f".wb-module-{name}").bounding_box() for name in ("lanes", "lateness", "loss")]
    assert len({box and box["y"] for box in boxes}) == 1
    assert all(box is not None and box["y"] + 40 < 300 for box in boxes)
    names: list[tuple[float, float]] = page.evaluate("() => window.named")
    assert len(names) > 3
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(names))  # none covers another
    page.close()
