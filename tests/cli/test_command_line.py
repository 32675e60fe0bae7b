"""The `workbench` command itself."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import workbench
from workbench.cli import doctor, main


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"workbench {workbench.__version__}\n"


@pytest.mark.parametrize("arguments", [["fly"], ["demo", "--replicas", "0"], ["demo", "--replicas", "x"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == 2
    assert "usage: workbench" in capsys.readouterr().err


def test_without_a_command_it_lists_them_and_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search("^ +lab +open JupyterLab", shown.err, re.MULTILINE)


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
def test_a_number_that_is_none_is_named(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", f"--replicas={number}"])

    assert f"argument --replicas: must be an integer of at least 1, got {number}" in capsys.readouterr().err


def test_an_interrupt_ends_a_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupted)
    assert main(["doctor"]) == 130
