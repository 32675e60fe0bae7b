"""The guide: it builds without a warning, its code runs, and it describes all that there is."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

import workbench
from tests.chromium import chromium, why_not
from tests.commands import output_of
from workbench.cli.guide_site import build

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "notebooks" / "guide"
PACKAGE = Path(workbench.__file__).parent
PAGES = sorted(GUIDE.rglob("*.md"))
ENTRANCES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "notebooks/README.md")
]
IDS = [str(path.relative_to(GUIDE).with_suffix("")) for path in PAGES]


def blocks(page: Path, language: str) -> list[str]:
    """The code of a page: "python" is run, "py" needs hardware, other machines or other libraries."""
    found = re.findall(
        rf"^( *)(?:[*-] )*```{language}\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    return [textwrap.dedent(code) for _, code in found]


RUN = [page for page in (*PAGES, ROOT / "README.md") if blocks(page, "python")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install -e '.[docs]'")
    target = tmp_path_factory.mktemp("guide") / "site"
    build(ROOT / "notebooks", target, "-W", "--keep-going")  # a broken link is a warning
    return target


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_page_of_the_guide_is_built(site: Path) -> None:
    built = {
        str(path.relative_to(site / "guide").with_suffix("")) for path in (site / "guide").rglob("*.html")
    }

    assert set(IDS) <= built


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_needs_no_network(site: Path) -> None:
    loads = {
        "*.html": r"<(?:script|link|img|iframe|source)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"",
        "*.css": r"(?:@import\s*|url\(\s*)[\"']?(?:https?:)?//[^\"')\s]*",
    }
    other = {
        f"{path.relative_to(site)}: {found}"
        for pattern, address in loads.items()
        for path in site.rglob(pattern)
        for found in re.findall(address, path.read_text(encoding="utf-8"))
    }

    assert other == set()


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_browser_draws_the_sample_run_without_a_kernel(site: Path) -> None:
    if why := why_not():
        pytest.skip(why)
    verdict = "NaN since step 30, first on replica 3"
    with served(site) as address, chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/guide/sample-run.html")
        frame = page.frame_locator("iframe.sample-run")
        frame.get_by_role("heading", name=verdict).wait_for()
        tabs = frame.get_by_role("tablist", name="What was recorded").get_by_role("tab")
        assert set(tabs.all_inner_texts()) >= {
            "Collectives",
            "Topology",
            "Devices",
            "Array",
            "Dataset",
            "Input",
        }
        frame.get_by_role("button", name="Show the values").click()
        frame.get_by_role("tab", name="Values", exact=True, selected=True).wait_for()
        frame.get_by_text("replica 3 gave it to all_reduce").first.wait_for()

        # From the disk, as `workbench docs` opens it.
        page.goto((site / "guide" / "sample" / "digits.html").as_uri())
        page.get_by_role("heading", name=verdict).wait_for()
        page.get_by_role("tab", name="Devices", exact=True).click()
        page.get_by_role("tabpanel", name="Devices").wait_for()
    assert [url for url in asked if not url.startswith((address, "file:", "data:", "blob:"))] == []


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A plain web server of a folder; its address."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_reference_describes_every_public_name(site: Path) -> None:
    text = "".join(
        page.read_text(encoding="utf-8") for page in (site / "guide" / "reference").glob("wb*.html")
    )
    modules = [importlib.import_module(name) for name in namespaces()]
    missing = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in module.__all__
        if f"{module.__name__}.{name}" not in text and not isinstance(getattr(module, name), ModuleType)
    ]

    assert len(modules) >= 20
    assert missing == []


def namespaces() -> list[str]:
    """The packages and modules that pages of the reference are about."""
    pages = (GUIDE / "reference").glob("wb*.md")
    return [
        name
        for page in sorted(pages)
        for name in re.findall(r"{namespace} (\S+)", page.read_text(encoding="utf-8"))
    ]


def test_every_list_of_public_names_has_a_page() -> None:
    stubs = {
        ".".join(path.parent.relative_to(PACKAGE.parent).parts) for path in PACKAGE.rglob("__init__.pyi")
    } - {"workbench.runtime"}
    packages = map(importlib.import_module, stubs)
    members = (getattr(package, name) for package in packages for name in package.__all__)
    modules = {each.__name__ for each in members if isinstance(each, ModuleType) and hasattr(each, "__all__")}

    assert (stubs | modules) - set(namespaces()) == set()


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

    output_of([sys.executable, program], environment=environment, timeout_seconds=100, folder=tmp_path)


def test_code_that_is_not_run_is_python_at_least() -> None:
    found = [(page, code) for page in PAGES for code in blocks(page, "py")]

    assert found
    for page, code in found:
        ast.parse(re.sub(r"^( *)%.*$", r"\1pass", code, flags=re.M), filename=str(page))


@pytest.mark.parametrize("page", ENTRANCES, ids=lambda page: page.name)
def test_a_link_in_a_text_of_the_repository_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_environment_variable_is_described() -> None:
    named = {
        variable
        for path in PACKAGE.rglob("*.py")
        for variable in re.findall(r"[\"'$](W(?:ORKBENCH|B)_[A-Z_]+)\b", path.read_text(encoding="utf-8"))
    }
    text = (GUIDE / "reference" / "environment.md").read_text(encoding="utf-8")

    assert {"WORKBENCH_SECRET", "WORKBENCH_RUNTIME_DIR"} <= named
    # WB_FAULTS is only for workbench's own tests.
    assert {name for name in named if f"`{name}`" not in text} == {"WB_FAULTS"}


def test_every_command_and_magic_is_described() -> None:
    from workbench.cli.command_line import parser
    from workbench.ui.magics import WorkbenchMagics

    commands = next(action for action in parser()._actions if action.dest == "command").choices
    text = (GUIDE / "reference" / "command-line.md").read_text(encoding="utf-8")
    described = (GUIDE / "reference" / "magics.md").read_text(encoding="utf-8")
    magics = {name for names in WorkbenchMagics.magics.values() for name in names}

    assert {name for name in commands if f"{{command-help}} {name}\n" not in text} == set()
    assert {"replica", "collectives", "workbench"} <= magics
    assert {name for name in magics if f"{{magic-help}} {name}\n" not in described} == set()


def test_the_entrances_stay_short() -> None:
    lines = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in ENTRANCES[:2]}

    assert lines["README.md"] <= 120
    assert lines["ARCHITECTURE.md"] <= 150
