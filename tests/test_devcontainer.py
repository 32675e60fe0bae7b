"""The development container: its commands are those of this repository, its Python is one that workbench supports."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FILE = ROOT / ".devcontainer" / "devcontainer.json"


@pytest.fixture
def container() -> dict[str, Any]:
    """What the file says."""
    if not FILE.is_file():
        pytest.skip("not a checkout: the package was installed without .devcontainer")
    described: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return described


def test_its_commands_are_those_of_wb(container: dict[str, Any]) -> None:
    wb = (ROOT / "wb").read_text(encoding="utf-8")
    commands = {name: value.split() for name, value in container.items() if name.endswith("Command")}
    offered = set(re.findall(r"^  (\w+)  ", wb, re.M))

    assert "postCreateCommand" in commands
    for program, command, *_ in commands.values():
        assert program == "./wb"
        assert command in offered
    assert os.access(ROOT / "wb", os.X_OK)


def test_it_needs_no_dockerfile_and_its_python_is_supported(container: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.fullmatch(r"python:(\d+\.\d+)-\w+", container["image"])

    assert found
    assert f"Programming Language :: Python :: {found[1]}" in project["classifiers"]
    assert not {"build", "dockerFile", "dockerComposeFile"} & container.keys()


def test_its_notebooks_use_the_environment_that_wb_makes(container: dict[str, Any]) -> None:
    settings = container["customizations"]["vscode"]["settings"]
    (made,) = re.findall(r"^venv=\$\{WB_VENV:-(.+)\}$", (ROOT / "wb").read_text(encoding="utf-8"), re.M)

    assert settings["python.defaultInterpreterPath"] == f"${{containerWorkspaceFolder}}/{made}/bin/python"
