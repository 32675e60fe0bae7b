"""Renews pictures of the guide: `python -m tests.e2e.pictures` takes them, and keeps them with 256 colours."""

from __future__ import annotations

import argparse
import sys
from typing import Final

import pytest
from PIL import Image

from tests.e2e.conftest import ARTIFACTS, ROOT
from tests.few_colours import few_colours

IMAGES: Final = ROOT / "notebooks" / "guide" / "images"
NAMES: Final = ("overview", "lab", "dashboard", "nan", "sharding")


def keep(name: str) -> None:
    """Puts a picture that was taken where the guide shows it."""
    with Image.open(ARTIFACTS / f"picture_{name}.png") as taken:
        few = few_colours(taken)
    file = IMAGES / f"{name}.png"
    few.save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


def main() -> int:
    """Returns 1 if one could not be taken."""
    argparse.ArgumentParser(
        prog="python -m tests.e2e.pictures",
        description="Takes the pictures of the guide again, in a JupyterLab and a browser of its own.",
    ).parse_args()
    if pytest.main(["-q", str(ROOT / "tests" / "e2e" / "test_pictures.py")]):
        return 1
    IMAGES.mkdir(exist_ok=True)
    for name in NAMES:
        keep(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
