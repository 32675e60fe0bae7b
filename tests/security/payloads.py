"""The hostile texts of `payloads.txt`, and what may be left of them where they are shown."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).with_name("payloads.txt")
_DIRECTIONS: Final = frozenset(("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"))
_MARKS: Final = frozenset("\u200e\u200f\u061c")
HARMLESS: Final = "harmless"


def _read() -> dict[str, tuple[str, ...]]:
    kinds: dict[str, list[str]] = {}
    found: list[str] = []
    for line in _FILE.read_text(encoding="ascii").splitlines():
        if line.startswith("## "):
            found = kinds.setdefault(line.removeprefix("## "), [])
        elif line and not line.startswith("#"):
            text = json.loads(line)
            found.append(text if isinstance(text, str) else text[0] * text[1])
    return {kind: tuple(texts) for kind, texts in kinds.items()}


KINDS: Final = _read()
"""Kind -> its texts."""
PAYLOADS: Final = tuple(text for texts in KINDS.values() for text in texts)
"""All of them."""
SOME: Final = tuple(text for texts in KINDS.values() for text in texts[::4])
"""A fourth of each kind, for places that write a file, or draw all views, for each text."""


def encodable(text: str) -> str:
    """The text as far as files and messages in UTF-8 can hold it: without halves of pairs."""
    return text.encode("utf-8", "replace").decode()


def acts_on_a_terminal(text: str) -> set[str]:
    """The characters of a text that a terminal obeys, that turn its direction, or that cannot be written at all."""
    return {
        character
        for character in text
        if character not in "\n\t"
        and (
            unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(character) in _DIRECTIONS
            or character in _MARKS
        )
    }


class Markup(HTMLParser):
    """The elements of some HTML with all of their attributes, and its text.

    Attributes:
      elements: Each with its attributes and their values.
      text: What is between them.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[tuple[str, tuple[tuple[str, str | None], ...]]] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        self.elements.add((tag, tuple(sorted(attrs, key=lambda attribute: attribute[0]))))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element without an end."""
        self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        """Called for each comment, of which there are none."""
        self.elements.add(("!--", ()))

    def handle_decl(self, decl: str) -> None:
        """Called for each declaration, of which there are none."""
        self.elements.add(("!", ()))

    def unknown_decl(self, data: str) -> None:
        """Called for sections such as CDATA, of which there are none."""
        self.elements.add(("![", ()))

    def handle_pi(self, data: str) -> None:
        """Called for processing instructions, of which there are none."""
        self.elements.add(("?", ()))

    def handle_data(self, data: str) -> None:
        """Called for text."""
        self.text += data
