"""Row 39, files for other programs: reports run nothing of a stranger's, spreadsheets calculate nothing of it."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

import workbench as wb
from tests.extension.conftest import browser, built, hatch_build, page
from tests.extension.gallery import SHOWN, model, show
from tests.extension.test_exports import saved
from tests.security.payloads import HARMLESS, KINDS, PAYLOADS, Markup, encodable
from tests.security.runs import with_texts, write_run
from tests.security.test_views import LENGTH

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "built", "hatch_build", "page"]

TEXTS = [encodable(payload)[:LENGTH] for payload in PAYLOADS]
CALCULATED = tuple("=+-@\t\r")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "hostile.parquet", TEXTS)


class _Body(HTMLParser):
    """Collects a page's text without its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.inside: list[str] = []
        self._script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs))
            self.inside.append("")
        self._script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._script = self._script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._script:
            self.inside[-1] += data


def cells_of(table: bytes) -> list[str]:
    """The cells of a CSV file."""
    return [cell for row in csv.reader(io.StringIO(table.decode(), newline="")) for cell in row]


def test_no_cell_of_a_csv_file_is_calculated(hostile: Path, tmp_path: Path) -> None:
    wb.open_run(hostile, internal=True).to_csv(tmp_path / "run.csv")
    cells = cells_of((tmp_path / "run.csv").read_bytes())

    assert [cell for cell in cells if cell.startswith(CALCULATED)] == []
    for payload in KINDS["spreadsheets"]:
        assert payload in cells or f"'{payload}" in cells


def test_traces_and_tables_are_json_and_lines_whatever_is_in_them(hostile: Path, tmp_path: Path) -> None:
    run = wb.open_run(hostile, internal=True)
    run.to_perfetto(tmp_path / "trace.json")
    text = run.to_nccl_tests(tmp_path / "table.json")

    names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert set(TEXTS) <= names
    assert json.loads((tmp_path / "table.json").read_text())["results"]
    groups = {(row.op, row.group, row.n) for row in run.rows}
    assert len(text.splitlines()) == 3 * len(groups) + len(run.rows)


def report_of(run: Path, path: Path, title: str) -> Path:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(path.parent)
        return wb.report(path, wb.open_run(run), wb.runs(run.parent), title=title)


def test_a_report_has_its_own_elements_and_scripts_only(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = write_run(tmp_path / "plain" / "harmless.parquet", [HARMLESS, "", *["a b c"] * 12])
    known = report_of(plain, tmp_path / "plain.html", HARMLESS).read_text(encoding="utf-8")
    for title in (TEXTS[0], "</title><script>hit=1</script>"):
        text = report_of(hostile, tmp_path / "hostile.html", title).read_text(encoding="utf-8")
        body, other = _Body(text), _Body(known)
        assert [script.keys() for script in body.scripts] == [script.keys() for script in other.scripts]
        assert "<" not in body.inside[0]
        json.loads(body.inside[0])
        assert {tag for tag, _ in Markup(text.split("<script type=")[0]).elements} == {
            tag for tag, _ in Markup(known.split("<script type=")[0]).elements
        }


@pytest.mark.e2e
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_nothing_in_a_report_runs(browser: Browser, hostile: Path, tmp_path: Path, scripts: bool) -> None:
    path = report_of(hostile, tmp_path / "hostile.html", TEXTS[0])

    assert _opened(browser, path, scripts=scripts, views=2) == []


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("view", SHOWN)
def test_nothing_in_what_a_view_exports_runs(browser: Browser, page: Page, tmp_path: Path, view: str) -> None:
    texts = iter(TEXTS * 500)
    named = ("status", "kind", "severity", "state", "verdict", "label", "key")
    given = with_texts(model(SHOWN[view][0]), lambda name, text: text if name in named else next(texts))
    show(page, view, given)

    svg = ElementTree.fromstring(saved(page, "Picture (SVG)"))
    tags = {element.tag.rpartition("}")[2] for element in svg.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "clipPath", "circle", "line", "tspan"}
    assert not [
        name for element in svg.iter() for name in element.attrib if name.startswith("on") or "href" in name
    ]

    cells = cells_of(saved(page, "Table (CSV)"))
    numbers = [cell for cell in cells if cell.startswith(CALCULATED) and _is_number(cell)]
    assert [cell for cell in cells if cell.startswith(CALCULATED)] == numbers

    report = tmp_path / "report.html"
    report.write_bytes(saved(page, "Report (HTML)"))
    assert _opened(browser, report, scripts=True, views=1) == []


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _opened(browser: Browser, path: Path, *, scripts: bool, views: int) -> list[str]:
    """What a file does in a browser that it should not do."""
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url != path.as_uri() and faults.append(request.url))
    page.goto(path.as_uri())
    if scripts:
        page.wait_for_function("views => document.querySelectorAll('.wb').length >= views", arg=views)
        if page.evaluate("() => 'hit' in window"):
            faults.append("hit")
        found = page.evaluate(
            """() => [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes])
              .map(({ name }) => name).filter((name) => name.startsWith("on") || /^(src|href)$/.test(name))"""
        )
        faults += found
    context.close()
    return faults
