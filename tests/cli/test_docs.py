"""`workbench docs` finds the guide, builds it once, and says what is missing."""

from __future__ import annotations

import importlib.util
import webbrowser
from pathlib import Path

import pytest

from workbench.cli import guide_site, main


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Stands for Sphinx; the folders that it was asked to write to."""
    targets: list[Path] = []

    def build(notebooks: Path, target: Path, *options: str) -> None:
        assert (notebooks / "guide" / "conf.py").is_file()
        targets.append(target)
        (target / "guide").mkdir()
        (target / "guide" / "index.html").write_text("<p>guide", encoding="ascii")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(guide_site, "build", build)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return targets


def test_the_guide_is_built_once_and_opened(
    built: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    assert [main(["docs"]), main(["docs", "--no-browser"])] == [0, 0]

    first, second = map(Path, capsys.readouterr().out.split())
    assert first == second
    assert first.read_text(encoding="ascii") == "<p>guide"
    assert tmp_path in first.parents
    assert opened == [first.as_uri()]
    assert len(built) == 1
    assert list(first.parents[2].glob(".part-*")) == []


def test_sites_of_earlier_versions_do_not_pile_up(built: list[Path], tmp_path: Path) -> None:
    sites = tmp_path / "workbench" / "guide"
    for name in ("0.0.1-a", "0.0.2-b", "0.0.3-c"):
        (sites / name).mkdir(parents=True)

    site = guide_site.built_site()

    assert site in sites.iterdir()
    assert len(list(sites.iterdir())) == 2


def test_without_sphinx_the_command_says_what_to_install(
    built: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["docs"]) == 1

    message = capsys.readouterr().err
    assert "sphinx is missing" in message
    assert "[docs]" in message
    assert built == []


def test_an_installation_without_pages_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guide_site, "shipped_notebooks", lambda: None)

    assert main(["docs"]) == 1
    assert "reinstall" in capsys.readouterr().err
