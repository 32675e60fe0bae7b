"""The location of the built views."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parents[2] / "static"


def is_built() -> bool:
    """Whether the views were built; a checkout that was never installed has none."""
    return all((STATIC / f"{name}.js").is_file() for name in ("widget", "exports", "loader"))
