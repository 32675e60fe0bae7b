"""The top of the repository stays as small as ARCHITECTURE.md says."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
FILES = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
    "wb",
}
FOLDERS = {"binder", "extension", "notebooks", "tests", "workbench"}


def _listed() -> list[str]:
    """The files of the project."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so what belongs to the project is not known")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return [name for name in listed.stdout.split("\0") if name]


def test_nothing_else_stands_at_the_top() -> None:
    top = {Path(name).parts[0] for name in _listed()}

    assert {name for name in top if not name.startswith(".")} <= FILES | FOLDERS


def test_the_map_names_every_folder_and_only_files_that_exist() -> None:
    files = _listed()
    folders = {str(parent) for name in files for parent in Path(name).parents}
    packages = {f"`{name}/`" for name in folders if re.fullmatch(r"workbench/[^/]+", name)}
    tests = {name for name in folders if re.fullmatch(r"tests/[^/]+", name)}
    others = {
        f"`{Path(name).name}/`" for name in tests if name.replace("tests/", "workbench/") not in folders
    }
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = text.partition("## Folders")[2].partition("## Layers")[0]
    named = set(re.findall(r"`([\w./]+\.(?:py|tsx?|mjs|html))`", text))

    assert {name for name in packages | others if name not in rows} == set()
    assert named
    assert {name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)} == set()


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="ascii").splitlines()

    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_each_pinned_version_installs_on_the_oldest_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="ascii").splitlines()
    )
    wants = {}
    for name, version in pins.items():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # only for another system, or for an extra
            continue
        if found.version == version:  # otherwise its metadata says nothing about the pin
            # Not by [], because the backport of this module, if imported, raises where there is none.
            wants[name] = found.metadata.get("Requires-Python") or ""

    assert wants
    assert {name: python for name, python in wants.items() if oldest not in SpecifierSet(python)} == {}
