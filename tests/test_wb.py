"""`./wb` finds a Python that runs and is new enough, whatever stands in front of it, or says what is missing."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli.command_line import parser

ROOT = Path(__file__).parents[1]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = shlex.quote(sys.executable)
PYENV_SHIM = 'echo "pyenv: $0: command not found" >&2; exit 127'
TOO_OLD = f'exec {PYTHON} -c "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])" "$2"'
WITHOUT_VENV = f'exec {PYTHON} -c "import sys; sys.modules[\'ensurepip\'] = None; exec(sys.argv[1])" "$2"'
WORKS = f'exec {PYTHON} "$@"'
RECORDS_VENV = """\
[ "$1" = -c ] && echo "3.13 $0" && exit
echo "$0 $@" >>record
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "venv $@" >>record\\n' >"$3/bin/python"
chmod +x "$3/bin/python"
"""


class Clone:
    """A copy of the script beside small project files, on a machine with the Pythons that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = [folder / "tools"]
        self.path[0].mkdir()
        for tool in ("cat", "cksum", "dirname", "mkdir", "chmod"):
            self.path[0].joinpath(tool).symlink_to(str(shutil.which(tool)))
        shutil.copy2(ROOT / "wb", folder)
        for name in ("pyproject.toml", "constraints.txt"):
            (folder / name).write_text("", encoding="ascii")

    def add(self, name: str, script: str, *, folder: str = "bin") -> Path:
        """Puts a program at the end of PATH, or behind those of the same folder."""
        at = self.folder / folder
        at.mkdir(parents=True, exist_ok=True)
        if at not in self.path:
            self.path.append(at)
        program = at / name
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        program.chmod(0o755)
        return program

    def wb(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "wb", *arguments],
            env={"PATH": ":".join(map(str, self.path)), "HOME": str(self.folder)} | environment,
            cwd="/", capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def record(self) -> list[str]:
        """What the recording Pythons were asked for."""
        return (self.folder / "record").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize("unusable", [PYENV_SHIM, TOO_OLD, WITHOUT_VENV], ids=["shim", "old", "no venv"])
def test_a_python_that_cannot_be_used_is_passed_over(clone: Clone, unusable: str) -> None:
    clone.add("python3", unusable)
    clone.add("python3.12", unusable)
    clone.add("python3.12", WORKS, folder="usr/bin")

    done = clone.wb("pythons")

    assert (done.stdout, done.stderr) == (f"{HERE} {sys.executable}\n", "")


def test_each_version_is_listed_once(clone: Clone) -> None:
    for name in ("python3", "python3.11", "python3.13"):
        clone.add(name, WORKS)

    assert clone.wb("pythons").stdout == f"{HERE} {sys.executable}\n"


def test_pythons_of_pyenv_are_found_where_it_keeps_them(clone: Clone) -> None:
    clone.add("python3", PYENV_SHIM, folder=".pyenv/shims")
    clone.add("python3.12", WORKS, folder=".pyenv/versions/3.12.1/bin")
    clone.path.pop()  # not on PATH

    assert clone.wb("pythons").stdout == f"{HERE} {sys.executable}\n"


@pytest.mark.parametrize("unusable", [None, PYENV_SHIM, TOO_OLD, WITHOUT_VENV])
def test_without_a_python_it_says_so_in_one_sentence(clone: Clone, unusable: str | None) -> None:
    if unusable is not None:
        clone.add("python3", unusable)

    done = clone.wb("lab")

    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "wb: workbench needs Python 3.11 or newer with venv, and none runs here: install one"
    )


def test_the_first_use_installs_with_the_python_that_was_found(clone: Clone) -> None:
    clone.add("python3", PYENV_SHIM)
    found = clone.add("python3.13", RECORDS_VENV, folder="usr/bin")

    done = clone.wb("doctor")

    assert done.returncode == 0, done.stderr
    assert clone.record() == [
        f"{found} -m venv .venv",
        "venv -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .[dev]",
        "venv -m workbench doctor",
    ]


def test_the_next_use_installs_nothing_until_the_project_files_change(clone: Clone) -> None:
    clone.add("python3", RECORDS_VENV)
    clone.wb("doctor")
    before = clone.record()

    assert clone.wb("test", "-x").stderr == ""
    assert clone.record() == [*before, "venv -m pytest -x"]
    (clone.folder / "constraints.txt").write_text("numpy==2.4.6\n", encoding="ascii")
    clone.wb("doctor")
    assert clone.record()[len(before) + 1 :] == before[1:]  # into the same environment


def test_views_whose_sources_have_changed_are_built_before_the_next_use(clone: Clone) -> None:
    sources = clone.folder / "extension" / "src" / "views"
    sources.mkdir(parents=True)
    (sources / "input.tsx").write_text("1", encoding="ascii")
    clone.add("python3", RECORDS_VENV)
    clone.wb("doctor")
    before = clone.record()

    (sources / "input.tsx").write_text("2", encoding="ascii")
    clone.wb("lab")
    assert clone.record()[len(before) :] == [*before[1:-1], "venv -m workbench lab"]
    clone.wb("lab")
    assert clone.record()[-2:] == ["venv -m workbench lab"] * 2


def test_further_packages_go_into_the_environment_that_is_asked_for(clone: Clone) -> None:
    clone.add("python3", PYENV_SHIM)
    found = clone.add("chosen", RECORDS_VENV)

    clone.wb("install", "torch", WB_PYTHON=str(found), WB_VENV="elsewhere")

    pip = "venv -m pip install --quiet --disable-pip-version-check -c constraints.txt"
    assert clone.record() == [f"{found} -m venv elsewhere", f"{pip} -e .[dev]", f"{pip} torch"]


def test_with_uv_no_python_is_needed(clone: Clone) -> None:
    clone.add("uv", f'echo "uv $@" >>record\nif [ "$1" = venv ]; then shift 2; {RECORDS_VENV}fi')

    done = clone.wb("doctor")

    assert done.returncode == 0, done.stderr
    assert clone.record()[0] == "uv venv --quiet --python >=3.11 .venv"
    assert clone.record()[-2:] == [
        "uv pip install --quiet --python .venv/bin/python -c constraints.txt -e .[dev]",
        "venv -m workbench doctor",
    ]


def test_an_unknown_command_installs_nothing(clone: Clone) -> None:
    done = clone.wb("labb")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ./wb COMMAND")
    assert not (clone.folder / ".venv").exists()


def test_help_lists_each_command_and_installs_nothing(clone: Clone) -> None:
    done = clone.wb("--help")

    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  ([a-z-]+(?:, [a-z-]+)*)(?:  |$)", done.stdout, re.MULTILINE)
    commands = next(action for action in parser()._actions if action.dest == "command").choices
    assert {*", ".join(listed).split(", ")} == {*(commands or ()), "test", "check", "install", "pythons"}
    assert not (clone.folder / ".venv").exists()


@pytest.mark.parametrize("command", ["dashboard", "join", "data-worker"])
def test_each_command_of_workbench_is_one_of_wb(clone: Clone, command: str) -> None:
    clone.add("python3", RECORDS_VENV)

    clone.wb(command, "--help")

    assert clone.record()[-1] == f"venv -m workbench {command} --help"
