"""Where the built views are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parents[2] / "static"


def is_built() -> bool:
    """Whether the views were built; a checkout that was never installed has none."""
    return (STATIC / "widget.js").is_file() and (STATIC / "loader.js").is_file()
