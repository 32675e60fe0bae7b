"""Row 39, drawn views: in Chromium no hostile text becomes an element, an attribute, a request, a dialog or code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.extension.conftest import browser, built, hatch_build
from tests.extension.gallery import SHOWN, model, open_gallery
from tests.security.payloads import HARMLESS, KINDS, PAYLOADS, SOME

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "built", "hatch_build"]

pytestmark = pytest.mark.e2e
SCRIPT = Path(__file__).with_name("views.js").read_text(encoding="utf-8")
MEANINGS = [
    "status",
    "kind",
    "severity",
    "state",
    "verdict",
    "op",
    "policy",
    "dtype",
    "redop",
    "key",
    "label",
]
"""Fields by which views choose what to draw; they are replaced every other time."""
LENGTH = 400
"""A view draws some hundred texts; all of them as long as the longest would take a browser minutes."""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = open_gallery(browser)
    page.on("dialog", lambda dialog: (page.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))  # type: ignore[attr-defined]
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "texts", [SOME, pytest.param(PAYLOADS, marks=pytest.mark.thorough)], ids=["some", "all"]
)
def test_every_view_shows_every_hostile_text_as_text(page: Page, texts: tuple[str, ...]) -> None:
    """Each text in each view: in all places, or in all that mean nothing to the view, by turns."""
    views = [[view, [model(name) for name in names]] for view, names in SHOWN.items()]
    payloads = [payload[:LENGTH] for payload in texts]
    harmless = [HARMLESS, "", "a b c", "0", "x" * LENGTH]

    found: dict[str, Any] = page.evaluate(
        SCRIPT, {"views": views, "payloads": payloads, "harmless": harmless, "meanings": MEANINGS}
    )

    assert found["faults"] == []
    assert page.faults == []  # type: ignore[attr-defined]
    assert found["drawn"] >= len(views) * len(payloads)
    assert found["seen"] > found["drawn"] / 2


def test_a_page_that_took_them_for_markup_would_be_noticed(page: Page) -> None:
    """The check above sees what it looks for."""
    smuggled = [*KINDS["event handlers"], *KINDS["svg and mathml"], "<img src=//evil.test/x.png>"]
    page.evaluate(
        """(payloads) => {
          for (const payload of payloads) {
            const place = document.createElement("div");
            place.innerHTML = payload;
            document.querySelector("main").append(place);
          }
        }""",
        smuggled,
    )
    page.wait_for_function("() => window.hit === 1")

    assert any("evil.test" in fault for fault in page.faults)  # type: ignore[attr-defined]
