"""What pip knows the package by: a name of its own, and commands that install this project and no other."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from workbench import extras

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ANOTHER_PROJECT = re.compile(
    r"""pip3?\ (?:un)?install\ (?:[-\w=.,]+\ )*['"]?workbench(?![-\w/.])  # perhaps after options and other names
    | (?<![-\w/])workbench\[[a-z]  # with an extra
    """,
    re.VERBOSE,
)
"""Advice to install `workbench` from the package index, where that is somebody else's."""


def texts() -> list[tuple[str, str]]:
    """Name and text of each file of the repository that people or programs read."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so what belongs to the project is not known")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    ).stdout.split("\0")  # fmt: skip
    return [
        (name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
        for name in listed
        if name and name != f"tests/{Path(__file__).name}" and (ROOT / name).is_file()
    ]


@pytest.mark.parametrize(
    "text",
    [
        "pip install workbench",
        "`pip install -U 'workbench'`",
        "'workbench[gpu13]'",
        "pip uninstall workbench",
    ],
)
def test_advice_to_install_the_other_project_is_recognised(text: str) -> None:
    assert ANOTHER_PROJECT.search(text)


@pytest.mark.parametrize(
    "text",
    ["pip install replica-workbench", "'replica-workbench[jax]'", "pip install '.[jax]' in /srv/workbench/x",
     "pip install -e '/home/me/workbench[jax]'"],
)  # fmt: skip
def test_a_command_that_installs_this_project_is_not_mistaken_for_that(text: str) -> None:
    assert not ANOTHER_PROJECT.search(text)


def test_no_text_advises_to_install_the_other_project() -> None:
    read = texts()
    wrong = [
        f"{name}: {line.strip()[:100]}"
        for name, text in read
        for line in text.splitlines()
        if ANOTHER_PROJECT.search(line)
    ]

    assert len(read) > 500
    assert wrong == []


def test_the_project_goes_by_the_name_that_messages_use() -> None:
    own = PROJECT["optional-dependencies"]["dev"][0]

    assert PROJECT["name"] == extras.DISTRIBUTION
    assert re.fullmatch(rf"{extras.DISTRIBUTION}\[[a-z,]+\]", own)


def test_messages_name_extras_that_there_are() -> None:
    named = {
        extra
        for path in (ROOT / "workbench").rglob("*.py")
        for extra in re.findall(r"install_command\(['\"](\w+)['\"]\)", path.read_text(encoding="utf-8"))
    }

    assert {"jax", "dashboard", "gpu13"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_in_a_clone_the_command_works_in_any_folder() -> None:
    *command, what = shlex.split(extras.install_command("dashboard"))
    folder, extra = re.fullmatch(r"(.+)\[(\w+)\]", what).groups()  # type: ignore[union-attr]

    assert command == ["pip", "install", "-e"]
    assert (Path(folder).resolve(), extra) == (ROOT, "dashboard")


def test_without_a_clone_the_command_says_where_it_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "workbench" / "extras.py"))
    expected = "pip install '.[gpu12]' in a clone of workbench"
    assert extras.install_command("gpu12") == expected

    (tmp_path / "pyproject.toml").write_text('[project]\nname = "workbench"\n', encoding="ascii")
    assert extras.install_command("gpu12") == expected
