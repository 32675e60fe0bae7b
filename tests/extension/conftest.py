"""The build of the views, for the tests of what it makes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.chromium import chromium, why_not
from tests.extension.gallery import open_gallery

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def hatch_build() -> ModuleType:
    """`extension/hatch_build.py`, imported from where it lies."""
    path = ROOT / "extension" / "hatch_build.py"
    if not path.is_file():
        pytest.skip("the sources of the views are not here: the package was installed without them")
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built(hatch_build: ModuleType) -> ModuleType:
    """The same, with the bundle made of the sources as they are, and npm's packages installed."""
    if not hatch_build.node_on_path():
        pytest.skip(f"no node >= {'.'.join(map(str, hatch_build.NODE))} with npm on PATH")
    hatch_build.install()
    hatch_build.build()
    return hatch_build


@pytest.fixture(scope="module")
def browser(built: ModuleType) -> Iterator[Browser]:
    """A Chromium, when the views are built."""
    if why := why_not():
        pytest.skip(why)
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page with the views; the test fails if something went wrong there, or was asked of another machine."""
    page = open_gallery(browser)
    yield page
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()
