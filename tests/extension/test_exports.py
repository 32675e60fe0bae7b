"""The menu "Export" of every view in real Chromium: what it saves is read again by other programs."""

from __future__ import annotations

import csv
import io
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from tests.exports import saved
from tests.extension.crowd import Crowd
from tests.extension.gallery import SHOWN, model, open_gallery, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
SVG = "{http://www.w3.org/2000/svg}"
PAYLOAD = "</script><script>parent.hit=1</script><img src=x onerror=parent.hit=1>\x1b]0;\ud800\"'&"
"""A text as a replica may print it, with half of a pair, a control character and markup."""


def test_the_menu_is_used_with_keys_alone(page: Page) -> None:
    show(page, "devices", model("devices"))
    page.get_by_role("button", name="Export", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("[role=menuitem]:focus >> text=Picture (PNG)")
    page.keyboard.press("ArrowUp")  # from the first to the last
    page.wait_for_selector("[role=menuitem]:focus >> text=Report (HTML)")
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=menu]", state="detached")
    page.wait_for_selector("button:focus[aria-label=Export]")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "devices.csv"
    page.wait_for_selector("[role=status] >> text=devices.csv is saved")


def test_a_menu_that_is_left_is_closed(page: Page) -> None:
    show(page, "devices", model("devices"))
    page.get_by_role("button", name="Export", exact=True).click()
    page.keyboard.press("Tab")
    page.wait_for_selector("[role=menu]", state="detached")


def test_what_makes_files_is_loaded_once_when_a_person_asks_for_one(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    show(page, "devices", model("devices"))
    page.get_by_role("button", name="Export", exact=True).click()
    page.get_by_role("menuitem", name="Report (HTML)").wait_for()
    page.keyboard.press("Escape")
    assert "exports.js" not in asked

    saved(page, "Table (CSV)")
    saved(page, "Table (Parquet)")

    assert asked.count("exports.js") == 1


def test_where_it_cannot_be_loaded_the_view_says_why_until_it_can(page: Page) -> None:
    show(page, "devices", model("devices"))
    page.route("**/exports.js", lambda route: route.abort())
    page.get_by_role("button", name="Export", exact=True).click()
    page.get_by_role("menuitem", name="Table (CSV)").click()
    said = page.get_by_text("devices.csv is not saved: the code that makes files did not come: ")
    said.wait_for()
    assert said.bounding_box()["width"] > 200  # type: ignore[index]
    assert "Failed to fetch" in said.inner_text()

    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.wb-unsaved')")

    page.unroute("**/exports.js")
    assert b"name" in saved(page, "Table (CSV)")
    said.wait_for(state="detached")
    page.faults.clear()  # type: ignore[attr-defined]  # the console tells of what was aborted


@pytest.mark.parametrize("view", SHOWN)
def test_csv_and_parquet_have_the_same_rows(page: Page, view: str) -> None:
    show(page, view, model(SHOWN[view][0]))

    rows = list(csv.DictReader(io.StringIO(saved(page, "Table (CSV)").decode(), newline="")))
    table = pq.read_table(io.BytesIO(saved(page, "Table (Parquet)")))

    assert rows
    assert table.column_names == list(rows[0])
    for row, found in zip(rows, table.to_pylist(), strict=True):
        assert {name: _as(type(value), row[name]) for name, value in found.items()} == found


def _as(kind: type, text: str) -> Any:
    """A CSV cell as the value in the other file."""
    if kind is type(None):
        return text or None
    return text == "true" if kind is bool else kind(text)


def test_a_table_of_many_rows_and_all_kinds_of_texts_comes_back(page: Page) -> None:
    shown = model("lost")
    event = shown["snapshot"]["events"][0]
    texts = [f'{number} "quoted",\r\nnäme €🙂' for number in range(1000)]
    shown["snapshot"]["events"] = [event | {"key": text, "message": text} for text in texts]
    show(page, "log", shown)

    table = pq.read_table(io.BytesIO(saved(page, "Table (Parquet)")))
    rows = list(csv.DictReader(io.StringIO(saved(page, "Table (CSV)").decode(), newline="")))

    assert table["message"].to_pylist() == [row["message"] for row in rows] == texts
    assert table.schema.field("t_ns").type == "int64"


@pytest.mark.parametrize("view", SHOWN)
def test_a_picture_shows_what_the_page_shows(page: Page, view: str) -> None:
    show(page, view, model(SHOWN[view][0]))

    svg = ElementTree.fromstring(saved(page, "Picture (SVG)"))
    texts = " ".join("".join(text.itertext()) for text in svg.iter(f"{SVG}text"))
    title = page.locator("h3").first.inner_text()
    assert title in texts
    assert {element.tag.removeprefix(SVG) for element in svg.iter()} <= {
        *("svg", "g", "rect", "path", "text", "clipPath", "circle", "line", "tspan"),
    }
    assert "Export" not in texts

    png = saved(page, "Picture (PNG)")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (2 * int(svg.get("width", "0")), 2 * int(svg.get("height", "0")))
    assert len(_colours(page, png)) > 3


def test_squares_of_replicas_are_shapes_and_texts_in_a_picture(page: Page) -> None:
    crowd = Crowd(16)
    crowd.work(8)
    crowd.deliver()
    shown = crowd.topology(workers=16, hosts=2)
    shown["hosts"][1]["workers"][3]["devices"][0]["replicas"][0]["news"] = "late"
    show(page, "topology", shown)

    svg = ElementTree.fromstring(saved(page, "Picture (SVG)"))
    texts = ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]
    assert {"host-0", "host-1", "replica 0", "\u25b2 replica 11", "late"} <= set(texts)


def _colours(page: Page, png: bytes) -> set[int]:
    """Some of the colours in a picture, as the browser decodes it."""
    import base64

    found: list[int] = page.evaluate(
        """async (encoded) => {
          const image = new Image();
          image.src = "data:image/png;base64," + encoded;
          await image.decode();
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.width, image.height];
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          const { data } = context.getImageData(0, 0, image.width, image.height);
          return [...new Set(new Uint32Array(data.buffer))].slice(0, 20);
        }""",
        base64.b64encode(png).decode(),
    )
    return set(found)


def test_the_trace_has_a_process_per_host_and_an_arrow_through_each_collective(page: Page) -> None:
    shown = model("collectives")
    show(page, "lanes", shown)

    events = json.loads(saved(page, "Trace (Perfetto)"))["traceEvents"]

    hosts = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert sorted(hosts) == ["host a", "host b"]
    group = shown["snapshot"]["groups"][0]
    taking_part = sum(time is not None for item in group["items"] for time in item["enter_ns"])
    slices = [event for event in events if event["ph"] == "X" and event["cat"] == "collective"]
    assert len(slices) == taking_part
    assert all(isinstance(event["pid"], int) and event["dur"] >= 0 for event in slices)
    flows: dict[int, list[str]] = {}
    for event in events:
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event["ph"])
    assert len(flows) == len(group["items"])
    assert all(flow[0] == "s" and flow[-1] == "f" and set(flow[1:-1]) <= {"t"} for flow in flows.values())


def test_the_tables_of_nccl_tests_are_those_of_python(page: Page) -> None:
    from workbench.telemetry.export.trace_files import nccl_tests_json, nccl_tests_text
    from workbench.telemetry.snapshot import TableRow

    shown = model("collectives")
    show(page, "collective_table", shown)
    rows = [TableRow(**row) for row in shown["snapshot"]["table"]]

    assert saved(page, "Table (nccl-tests)").decode().rstrip("\n") == nccl_tests_text(rows)
    found, expected = json.loads(saved(page, "Table (nccl-tests JSON)")), nccl_tests_json(rows)
    assert [result["type"] for result in found["results"]] == [r["type"] for r in expected["results"]]
    for ours, theirs in zip(found["results"], expected["results"], strict=True):
        assert ours["out_of_place"] == pytest.approx(theirs["out_of_place"])


def test_everything_is_saved_as_json(page: Page) -> None:
    show(page, "collectives", model("stuck"))

    assert json.loads(saved(page, "Everything (JSON)")) == {"view": "collectives", "model": model("stuck")}


def test_markup_in_data_stays_text_in_a_saved_picture_and_report(browser: Browser, tmp_path: Path) -> None:
    page = open_gallery(browser)
    page.evaluate(
        "([model, payload]) => window.show('log', JSON.parse(model.replaceAll('POISON', payload)))",
        [
            json.dumps(model("lost")).replace("slow again", "POISON"),
            json.dumps(PAYLOAD.replace("\ud800", "�"))[1:-1],
        ],
    )
    svg = saved(page, "Picture (SVG)")
    ElementTree.fromstring(svg)
    assert b"&lt;/script&gt;" in svg
    assert b"<script" not in svg
    assert b"<img" not in svg
    (tmp_path / "report.html").write_bytes(saved(page, "Report (HTML)"))
    page.close()

    assert opened(browser, tmp_path / "report.html") == (1, [])


def opened(browser: Browser, file: Path) -> tuple[int, list[str]]:
    """How many views a report draws when it is opened from the disk, and what it should not have done."""
    page = browser.new_page()
    wrong: list[str] = []
    page.on("request", lambda request: wrong.append(request.url) if request.url != file.as_uri() else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(file.as_uri())
    page.wait_for_selector(".wb-head")
    assert page.evaluate("() => window.hit") is None
    views = page.locator(".wb").count()
    page.close()
    return views, wrong


def today(page: Page) -> str:
    """The day where the browser is, such as 2026-01-31."""
    return str(page.evaluate("() => new Date().toLocaleDateString('sv')"))


def test_a_report_draws_from_the_disk_and_can_be_exported_again(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    show(page, "replay", model("replay"))
    file = tmp_path / "report.html"
    days = [today(page)]
    file.write_bytes(saved(page, "Report (HTML)"))
    days.append(today(page))  # another date, if midnight came in between
    assert opened(browser, file) == (1, [])

    again = browser.new_page()
    again.goto(file.as_uri())
    recorded = model("replay")["run"]["written"][:19].replace("T", " ")
    told = again.locator("h1 + p").inner_text()
    assert told.startswith(tuple(f"recorded {recorded}, exported {day} " for day in days))
    again.get_by_role("tab", name="Collectives").click()
    again.get_by_role("tab", name="Lanes").click()
    again.wait_for_selector("canvas")
    assert saved(again, "Picture (PNG)", 1)[:4] == b"\x89PNG"
    assert len(saved(again, "Report (HTML)")) == pytest.approx(file.stat().st_size, abs=2000)
    again.close()


def test_a_report_opens_where_it_was_exported_and_says_that_it_is_a_recording(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    shown = model("collectives") | {"status": "live"}
    show(page, "collectives", shown)
    page.get_by_role("tab", name="Lanes").click()
    page.wait_for_selector("canvas")
    file = tmp_path / "report.html"
    file.write_bytes(saved(page, "Report (HTML)"))

    again = browser.new_page()
    again.goto(file.as_uri())
    again.wait_for_selector("canvas")
    assert again.get_by_role("tab", name="Lanes").get_attribute("aria-selected") == "true"
    (group,) = shown["snapshot"]["groups"]
    assert again.locator("h1").inner_text() == f"Lanes: {group['group']}, run {group['run_id']}"
    counters = shown["snapshot"]["counters"]
    summary = again.locator("h1 + p").inner_text()
    assert f"by workbench: {counters['collectives']:,} collectives, {counters['failed']} failed" in summary
    assert f"{group['group']}: {group['n']} replicas; {group['lateness']['text']}" in summary
    again.get_by_role("tab", name="Table").click()
    assert again.locator(".wb-head .wb-status").inner_text() == "▷ recorded"
    again.close()


def test_a_report_can_be_read_without_scripts(browser: Browser, page: Page, tmp_path: Path) -> None:
    shown = model("devices")
    show(page, "devices", shown)
    file = tmp_path / "report.html"
    file.write_bytes(saved(page, "Report (HTML)"))

    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(file.as_uri())
    text = plain.locator("table").inner_text()
    assert all(device["name"] in text for device in shown["devices"])
    context.close()


def test_a_script_that_is_not_of_the_report_does_not_run_in_it(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    show(page, "devices", model("devices"))
    file = tmp_path / "report.html"
    text = saved(page, "Report (HTML)").decode()
    evil = "<script>window.hit=1</script><img src=x onerror='window.hit=1'>"
    file.write_text(text.replace("<main>", f"<main>{evil}", 1), encoding="utf-8")

    opened_page = browser.new_page()
    opened_page.goto(file.as_uri())
    opened_page.wait_for_selector(".wb-head")
    assert opened_page.evaluate("() => window.hit") is None
    opened_page.close()


def test_figures_that_are_not_known_are_missing_values(page: Page) -> None:
    shown = model("devices")
    shown["devices"][0]["use_percent"] = None
    shown["devices"][1]["use_percent"] = 1.5
    show(page, "devices", shown)
    data = saved(page, "Table (Parquet)")

    assert pq.read_table(io.BytesIO(data))["use_percent"].to_pylist()[:2] == [None, 1.5]
    assert pq.ParquetFile(io.BytesIO(data)).metadata.created_by == "workbench"
