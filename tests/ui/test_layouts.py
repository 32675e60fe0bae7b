"""`wb.layout` and `%workbench layout`: known names, and what the pages of JupyterLab are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import IPython.display
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import workbench as wb
from workbench.runtime.deploy.registry import Registry
from workbench.server.layout_names import keep
from workbench.ui import layouts, magics
from workbench.ui.models.messages import MODELS
from workbench.ui.widgets import bundle


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a kernel displays."""
    displayed: list[dict[str, Any]] = []
    monkeypatch.setattr(bundle, "in_a_kernel", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda data, raw: displayed.append(data))
    return displayed


def test_layouts_consist_of_views_that_there_are() -> None:
    assert {view for views in layouts.LAYOUTS.values() for view in views} <= set(MODELS)


def test_the_pages_that_show_the_notebook_are_told(shown: list[dict[str, Any]]) -> None:
    wb.layout("overview")

    (data,) = shown
    assert data[layouts.MIME] == {"layout": "overview"}
    assert data["text/plain"] == "<Layout 'overview': overview, lanes, log>"


def test_an_unknown_name_is_an_error_with_the_names_that_there_are(shown: list[dict[str, Any]]) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match=r"overview, collectives, debugging, data$"):
        wb.layout("evening")

    keep(["evening"], Registry())
    wb.layout("evening")
    with pytest.raises(wb.errors.InvalidArgumentError, match=r"data, evening$"):
        wb.layout("morning")
    assert [data[layouts.MIME]["layout"] for data in shown] == ["evening"]


def test_outside_of_a_notebook_there_is_nothing_to_arrange() -> None:
    with pytest.raises(wb.errors.FailedPreconditionError, match="JupyterLab"):
        wb.layout("overview")


def test_the_magic_does_the_same(shown: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    keep(["an evening"], Registry())
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    magics.register(shell)

    shell.run_line_magic("workbench", "layout an evening")
    with pytest.raises(UsageError, match="there are: overview"):
        shell.run_line_magic("workbench", "layout nothing")
    for nothing in ("layout", ""):
        shell.run_line_magic("workbench", nothing)
        assert "%workbench layout NAME   opens a layout of panes" in capsys.readouterr().out
    assert [data[layouts.MIME]["layout"] for data in shown] == ["an evening"]
