"""HTML: everything is text, nothing is a script, and light and dark both get readable colours."""

from __future__ import annotations

import pytest

from tests.ui.conftest import Tags
from workbench.ui.render import html

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><svg onload=alert(1)>",
    '"><b>bold</b>',
    "&lt;script&gt;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_users_write_is_shown_as_text(text: str) -> None:
    drawn = Tags(
        html.card(
            text,
            [text],
            word=text,
            parts=[html.table([text], [[text]], caption=text), html.alert(text), html.preformatted(text)],
        )
    )

    assert drawn.text.count(text) == 8
    assert set(drawn.tags) <= {
        "div",
        "strong",
        "span",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "pre",
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_a_verdict_is_a_sign_and_a_sentence_with_its_evidence_behind_a_click(text: str) -> None:
    drawn = Tags(html.verdict("warning", text, text))

    assert drawn.tags == ["details", "summary", "span", "div"]
    assert drawn.text == f"▲ {text}{text}"
    assert Tags(html.verdict("good", text, "")).tags == ["div", "span"]
    assert Tags(html.verdict(text, text, "")).text == f" {text}"


def test_a_status_is_a_sign_and_a_word_not_only_a_colour() -> None:
    signs = {
        Tags(html.status(word)).text.split()[0] for word in ("live", "stale", "lost", "stopped", "replay")
    }

    assert len(signs) == 5
    assert Tags(html.status("lost")).text.endswith("lost")


def test_colours_come_from_the_notebook_and_have_fallbacks() -> None:
    card = html.card("title", ["fact"])

    assert "var(--jp-content-font-color1,inherit)" in card


def test_column_headings_are_marked_as_such() -> None:
    assert html.table(["a"], [["1"]]).count('scope="col"') == 1
