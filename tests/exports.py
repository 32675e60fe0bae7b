"""The menu "Export" of views, as a person uses it in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def choose(place: Any, name: str, index: int = 0) -> None:
    """Chooses an entry of a menu in a page or a part of one; the menus there are numbered, from the last with -1."""
    place.get_by_role("button", name="Export", exact=True).nth(index).click()
    place.get_by_role("menuitem", name=name, exact=True).click()


def saved(place: Any, name: str, index: int = 0) -> bytes:
    """What is saved where a person does so."""
    page = getattr(place, "page", place)
    with page.expect_download() as download:
        choose(place, name, index)
    return Path(download.value.path()).read_bytes()
