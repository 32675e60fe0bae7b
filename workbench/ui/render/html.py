"""Script-free HTML, readable in light and dark notebooks and without styles. This file escapes all text."""

from __future__ import annotations

import html
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from workbench.telemetry.formatting import SIGNS, printable_lines

# Okabe–Ito colours. The word and the sign say the same, for people who cannot distinguish colours.
_STATUS: Final = {
    "starting": ("○", "#0072B2"),
    "live": ("●", "#009E73"),
    "stale": ("◐", "#E69F00"),
    "stalled": ("◐", "#D55E00"),
    "lost": ("✖", "#D55E00"),
    "stopped": ("■", "currentColor"),
    "replay": ("▷", "#0072B2"),
    "recorded": ("▷", "#0072B2"),
    "in sync": ("●", "#009E73"),
    "diverged": ("✖", "#D55E00"),
}
_SEVERITY: Final = {"good": "#009E73", "warning": "#E69F00", "error": "#D55E00"}
_CARD: Final = (
    "max-width:100%;overflow-x:auto;padding:6px 10px;border:1px solid;"
    "border-color:var(--jp-border-color2,rgba(128,128,128,.5));border-radius:4px;"
    "color:var(--jp-content-font-color1,inherit)"
)
_TABS: Final = (
    ".ID{display:flex;flex-wrap:wrap;gap:0 4px;margin-top:4px}"
    ".ID>input{position:absolute;opacity:0}"
    ".ID>label{padding:1px 8px;border-bottom:2px solid transparent;cursor:pointer}"
    ".ID>input:checked+label{border-bottom-color:var(--jp-brand-color1,currentColor);font-weight:600}"
    ".ID>input:focus-visible+label{outline:2px solid var(--jp-brand-color1,currentColor)}"
    ".ID>div{order:1;flex:0 0 100%;min-width:0;overflow-x:auto;display:none;"
    "border-top:1px solid var(--jp-border-color2,rgba(128,128,128,.5))}"
    ".ID>input:checked+label+div{display:block}"
)
"""Styles of `tabs`; ID is replaced by its class."""
_QUIET: Final = "color:var(--jp-content-font-color2,inherit);opacity:.85"
_CODE: Final = "font-family:var(--jp-code-font-family,monospace)"
_ALERT: Final = "border-left:3px solid #D55E00;padding-left:6px"


def escaped(value: object) -> str:
    """Any text as HTML that shows exactly this text, with escapes for invisible characters."""
    return html.escape(printable_lines(str(value)))


_MOMENTARY: Final = frozenset(("live", "stale", "replay"))
_recorded: ContextVar[bool] = ContextVar("recorded", default=False)


@contextmanager
def recorded() -> Iterator[None]:
    """In a `with` block, momentary states have the status "recorded", because files do not change."""
    before = _recorded.set(True)
    try:
        yield
    finally:
        _recorded.reset(before)


def status(word: str) -> str:
    """A status: sign, word and colour."""
    if _recorded.get() and word in _MOMENTARY:
        word = "recorded"
    sign, colour = _STATUS.get(word, ("", "currentColor"))
    return (
        f'<span style="white-space:nowrap"><span style="color:{colour}">{sign}</span> {escaped(word)}</span>'
    )


def quiet(text: str) -> str:
    """Text in the background."""
    return f'<span style="{_QUIET}">{escaped(text)}</span>'


def alert(text: str) -> str:
    """A line that needs attention."""
    return f'<div style="{_ALERT}">{escaped(text)}</div>'


def verdict(severity: str, sentence: str, evidence: str) -> str:
    """A sentence on a run with its sign; a click shows the evidence, without a script.

    Args:
      severity: One of `formatting.SIGNS`, for sign and colour.
      sentence: The sentence.
      evidence: The figures behind it, or "".
    """
    colour = _SEVERITY.get(severity, "currentColor")
    said = f'<span style="color:{colour}">{SIGNS.get(severity, "")}</span> {escaped(sentence)}'
    if not evidence:
        return f"<div>{said}</div>"
    return f"<details><summary>{said}</summary>{remark(evidence)}</details>"


def remark(text: str) -> str:
    """A line in the background."""
    return f'<div style="{_QUIET}">{escaped(text)}</div>'


def link(url: str) -> str:
    """A link that opens beside the notebook, and sends no referrer."""
    return f'<a href="{escaped(url)}" target="_blank" rel="noopener noreferrer">{escaped(url)}</a>'


def progress(text: str, count: int, total: int | None) -> str:
    """A bar followed by a text; only the text without a total.

    Args:
      text: The text after the bar.
      count: How much is done.
      total: The total; None if unknown.
    """
    bar = (
        "" if total is None else f'<progress value="{count}" max="{total}" aria-label="progress"></progress> '
    )
    return f'<div>{bar}<span style="{_CODE}">{escaped(text)}</span></div>'


def card(
    title: str,
    facts: Sequence[str] = (),
    *,
    word: str = "",
    parts: Sequence[str] = (),
    wide: bool = False,
) -> str:
    """A framed block.

    Args:
      title: Text in bold.
      facts: Texts after the title.
      word: A status, or "".
      parts: HTML from the functions of this file.
      wide: Whether it has the width of the page instead of only what it needs.
    """
    display = "block" if wide else "inline-block"
    head = [f"<strong>{escaped(title)}</strong>", *map(quiet, facts)]
    if word:
        head.append(status(word))
    return f'<div style="display:{display};{_CARD}"><div>{" · ".join(head)}</div>{"".join(parts)}</div>'


def tabs(label: str, pages: Sequence[tuple[str, str]], *, chosen: int = 0) -> str:
    """Pages that are shown one at a time, or below each other if styles are stripped.

    The names are radio buttons, so that keys work without a script: arrow keys move from one to the next.

    Args:
      label: A description of the pages, for screen readers.
      pages: Name, and HTML from the functions of this file; at least one page.
      chosen: Index of the page that is shown first.
    """
    id = f"wb-{secrets.token_hex(6)}"  # a page has many outputs, and radio buttons with one name form a group
    parts = [f"<style>{_TABS.replace('ID', id)}</style>"]
    for index, (name, page) in enumerate(pages):
        checked = " checked" if index == chosen else ""
        parts += [
            f'<input type="radio" name="{id}" id="{id}-{index}"{checked}>',
            f'<label for="{id}-{index}">{escaped(name)}</label><div>{page}</div>',
        ]
    return f'<div class="{id}" role="radiogroup" aria-label="{escaped(label)}">{"".join(parts)}</div>'


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, caption: str = "") -> str:
    """A table of texts.

    Args:
      headings: One per column.
      rows: Cells, as many in each row.
      left: The number of leading columns that are names; the others are figures.
      caption: A caption above the table, also for screen readers.
    """
    sides = ["left" if column < left else "right" for column in range(len(headings))]
    head = "".join(
        f'<th scope="col" style="text-align:{side}">{escaped(text)}</th>'
        for text, side in zip(headings, sides, strict=True)
    )
    body = "".join(f"<tr>{_row(row, sides)}</tr>" for row in rows)
    title = f'<caption style="text-align:left;{_QUIET}">{escaped(caption)}</caption>' if caption else ""
    return (
        f'<table style="{_CODE};border-collapse:collapse;margin:4px 0">{title}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: Sequence[str], sides: Sequence[str]) -> str:
    return "".join(
        f'<td style="text-align:{side};white-space:pre">{escaped(cell)}</td>'
        for cell, side in zip(row, sides, strict=True)
    )


def preformatted(text: str) -> str:
    """Text with its own line breaks and columns."""
    return f'<pre style="{_CODE};margin:4px 0">{escaped(text)}</pre>'
