"""`workbench doctor` finds what is there and names what is missing, with the remedy."""

from __future__ import annotations

import re
import resource
import socket
import subprocess
import tomllib
from pathlib import Path

import pytest

import workbench
from workbench.cli import doctor, machine, main, software
from workbench.cli.findings import Finding, Status, as_text, note, ok, problem

PROJECT = tomllib.loads((Path(workbench.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=]", requirement)[0]


def test_a_report_shows_each_finding_with_its_remedy() -> None:
    text = as_text("Thing", [ok("there"), note("slow", "buy another"), problem("broken", "mend it")])

    assert text == (
        "Thing\n"
        "  ok       there\n"
        "  note     slow\n"
        "           -> buy another\n"
        "  PROBLEM  broken\n"
        "           -> mend it"
    )


def test_a_healthy_machine_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0

    report = capsys.readouterr().out
    assert all(title in report for title, _ in doctor.SECTIONS)
    assert "All that workbench needs is there." in report


def test_a_problem_fails_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "SECTIONS", (("Thing", lambda: [problem("broken", "mend it")]),))

    assert main(["doctor"]) == 1
    assert "1 problem; the lines with -> say what to do" in capsys.readouterr().out


def test_the_packages_looked_up_are_those_of_the_project() -> None:
    required = {name_of(text) for text in PROJECT["dependencies"]} | {"distributed"}

    assert set(software.CORE) == required
    for extra, names in software.EXTRAS.items():
        assert set(names) == {name_of(text) for text in PROJECT["optional-dependencies"][extra]}


def test_a_missing_package_is_a_problem_and_a_missing_extra_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        software, "version", lambda package: None if package in ("optree", "panel") else "1.0"
    )

    assert problem("missing: optree", software.install("optree")) in list(software.packages())
    assert note("[dashboard] without panel", software.install("panel")) in list(software.extras())


def test_a_loopback_that_cannot_be_bound_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> socket.socket:
        raise PermissionError("not here")

    monkeypatch.setattr(socket, "create_server", refuse)

    statuses = [finding.status for finding in machine.ports()]
    assert statuses == [Status.PROBLEM, Status.OK]


def test_missing_memfd_is_a_note_and_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create")

    first = next(machine.shared_memory())
    assert (first.status, "TCP" in first.remedy) == (Status.NOTE, True)


def test_too_few_open_files_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 1024))

    assert problem("only 64 open files are allowed", "ulimit -n 1024") in list(machine.resources())


@pytest.mark.parametrize(
    ("cores", "gibibytes", "said"),
    [
        (2, 1, "2 cores: wb.connect() makes CPU:0 to CPU:1"),
        (1, 8, "1 core: wb.connect() makes CPU:0"),
        (64, 2, "64 cores: wb.connect() makes CPU:0 to CPU:3"),
    ],
)
def test_the_devices_are_those_for_which_a_container_leaves_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int, gibibytes: int, said: str
) -> None:
    monkeypatch.setattr("workbench.allowance.cores", lambda: cores)
    monkeypatch.setattr("workbench.allowance.memory_bytes", lambda: gibibytes << 30)
    monkeypatch.setattr(
        "os.sysconf", {"SC_PHYS_PAGES": 1 << 24, "SC_AVPHYS_PAGES": 1 << 22, "SC_PAGE_SIZE": 4096}.get
    )

    first, second, *_ = machine.resources()
    assert first.text == said
    assert (
        second.text
        == f"64.0 GiB memory, 16.0 GiB of it unused, limited to {gibibytes}.0 GiB by the container"
    )


def found_with_nvidia_smi(monkeypatch: pytest.MonkeyPatch, script: str, folder: Path) -> list[Finding]:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    tool.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(tool))
    return list(machine.accelerators())


def test_gpus_are_listed_and_missing_packages_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(software, "version", lambda package: None)

    found = found_with_nvidia_smi(monkeypatch, "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'", tmp_path)

    assert found[0] == ok("GPU:0 NVIDIA H200")
    assert "cupy-cuda13x" in found[1].remedy
    assert "nvidia-ml-py" in found[2].remedy


def test_a_driver_that_fails_means_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = found_with_nvidia_smi(monkeypatch, "echo broken; exit 9", tmp_path)

    assert [finding.status for finding in found] == [Status.OK]


def test_a_driver_that_hangs_means_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hang(*args: object, **kwargs: object) -> None:
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    monkeypatch.setattr(subprocess, "run", hang)

    found = found_with_nvidia_smi(monkeypatch, "true", tmp_path)
    assert [finding.status for finding in found] == [Status.OK]
