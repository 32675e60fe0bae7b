"""The lowest versions that pyproject.toml allows: they install together, and the core's tests pass with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.commands import output_of

pytestmark = [pytest.mark.installs, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[1]
EXTRAS = ("lab", "dashboard", "jax", "dev")
"""What needs neither a GPU nor a TPU."""
READERS_AND_FAULTS = [
    *("tests/data/formats", "tests/data/service", "tests/data/sources", "tests/faults"),
    *("-m", "not slow and not thorough and not soak"),
]
"""What is not in the quick part, and uses other libraries a lot."""
VERSIONS = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment.

    Attributes:
      programs: The folder of its programs.
    """

    programs: Path

    def run(self, program: str, *arguments: str | Path) -> str:
        """Runs one of its programs in the root of the repository; its output.

        Raises:
          AssertionError: if it fails.
        """
        command = [self.programs / program, *arguments]
        return output_of(command, environment=os.environ, timeout_seconds=3000, folder=ROOT)


@pytest.fixture(scope="module")
def lowest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """An environment with workbench and the lowest versions of what it names itself."""
    folder = tmp_path_factory.mktemp("floors")
    tools, lowest = Environment(folder / "tools" / "bin"), Environment(folder / "lowest" / "bin")
    try:
        for environment in (tools, lowest):
            venv = [sys.executable, "-m", "venv", environment.programs.parent]
            subprocess.run(venv, check=True, timeout=300)
        tools.run("pip", "install", "uv")  # pip has no option for the lowest versions
        resolution = ("--resolution", "lowest-direct", "--python", lowest.programs / "python")
        tools.run("uv", "pip", "install", *resolution, "-e", ".[dev]")
        yield lowest
    finally:
        shutil.rmtree(folder)  # 1.5 GB, which pytest would otherwise keep for three more runs


def _floors() -> dict[str, Version]:
    """The dependencies in pyproject.toml that have a lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [
        *project["dependencies"],
        *(text for extra in EXTRAS for text in project["optional-dependencies"][extra]),
    ]
    requirements = [Requirement(text) for text in texts]
    return {
        requirement.name: Version(specifier.version)
        for requirement in requirements
        for specifier in requirement.specifier
        if specifier.operator == ">="
    }


def test_the_lowest_versions_can_be_installed_together(lowest: Environment) -> None:
    floors = _floors()

    installed = json.loads(lowest.run("python", "-c", VERSIONS, *floors))

    releases = {
        name: Version(installed[name]).release[: len(floor.release)] for name, floor in floors.items()
    }
    assert releases == {name: floor.release for name, floor in floors.items()}, (
        "write what there is, or what works"
    )


@pytest.mark.parametrize(
    "tests", [["@.ci/quick"], READERS_AND_FAULTS], ids=["quick part", "readers and faults"]
)
def test_the_tests_pass_with_the_lowest_versions(lowest: Environment, tests: list[str]) -> None:
    again = ("-p", "tests.second_chances", "--reruns", "1", "--reruns-delay", "2", "--max-suite-reruns", "6")

    lowest.run("python", "-m", "pytest", "-p", "no:cacheprovider", *again, *tests)
