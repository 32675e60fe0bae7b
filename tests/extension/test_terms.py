"""Plain words or the field's terms on a page that has no settings: a report, as anybody opens it from a disk."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import workbench as wb

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
SAMPLE = Path(__file__).parents[2] / "notebooks" / "guide" / "sample" / "digits.parquet"
NO_STORAGE = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); }
});"""


@pytest.fixture(scope="module")
def report(built: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of the guide's recorded run."""
    path = wb.report(tmp_path_factory.mktemp("report") / "run.html", wb.open_run(SAMPLE))
    return path.as_uri()


def headings(page: Page) -> str:
    page.get_by_role("tab", name="Collectives").click()
    return page.get_by_role("grid").first.locator("thead").inner_text()


@pytest.mark.parametrize("storage", ["allowed", "denied"])
def test_a_report_says_what_a_person_chooses_and_the_browser_keeps_it(
    browser: Browser, report: str, storage: str
) -> None:
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    if storage == "denied":
        page.add_init_script(NO_STORAGE)
    page.goto(report)
    switch = page.get_by_role("checkbox", name="The field's terms")
    assert not switch.is_checked()
    assert "bandwidth" in headings(page)

    switch.focus()
    page.keyboard.press("Space")
    page.get_by_role("columnheader", name="busbw").wait_for()
    assert "bandwidth" not in headings(page)

    page.reload()
    assert switch.is_checked() == (storage == "allowed")
    assert ("busbw" in headings(page)) == (storage == "allowed")
    switch.set_checked(False)
    page.get_by_role("columnheader", name="bandwidth", exact=True).wait_for()
    assert faults == []
    page.close()
