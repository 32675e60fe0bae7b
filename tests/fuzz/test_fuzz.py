"""A few cases of each reader, and that the harness notices what it is there for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

import psutil
import pytest

from tests.fuzz import results, run
from tests.fuzz.__main__ import main
from tests.fuzz.run import TARGETS, Finding, fuzz
from tests.fuzz.targets import Target, WrongData
from tests.until import until

CASES = 60


@pytest.mark.parametrize("name", list(TARGETS))
def test_damaged_input_is_read_right_or_refused(name: str) -> None:
    findings, _ = fuzz(name, 0, CASES)
    assert not findings, "\n".join(map(str, findings))


class Bad(Target):
    """Fails in each way that there is."""

    name = "bad"

    def good_inputs(self) -> list[bytes]:
        return [b"input"]

    def check(self, data: bytes) -> None:
        case = len(self.path.read_bytes()) if self.path.exists() else 0
        self.written(bytes(case + 1))
        match case:
            case 1:
                raise WrongData("other data")
            case 3:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 5:
                bytearray(run.MEMORY_BYTES)
            case 7:
                while True:
                    time.sleep(1)


def test_the_harness_finds_wrong_data_crashes_hangs_and_claims_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = "import tests.fuzz.run as run; from tests.fuzz.test_fuzz import Bad"
    code = f"{plugin}; import sys; run.TARGETS['bad'] = Bad; run.CASE_SECONDS = 1; a = sys.argv"
    child = f"{code}; run._child(a[1], int(a[2]), int(a[3]), int(a[4]), a[5], a[6])"
    monkeypatch.setattr(run, "CHILD", ["-c", child])
    findings, refused = fuzz("bad", 0, 10)
    assert refused == 0
    assert [finding.case for finding in findings] == [1, 3, 5, 7]
    for finding, told in zip(
        findings, ("other data", "ended with -11", "MemoryError", "took too long"), strict=True
    ):
        assert told in finding.text


def test_a_reader_with_many_findings_ends_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = Event(), Event()
    seen: list[tuple[str, bool]] = []

    def fake(name: str, seed: int, cases: int, first: int, *, stop: Event) -> tuple[list[Finding], int]:
        if name != "records":
            seen.append((name, ended.wait(60)))
        elif first:
            begun.set()
            seen.append((name, stop.wait(60)))
            ended.set()
        else:
            assert begun.wait(60)
            return [Finding(name, case, "wrong") for case in range(run.MOST_FINDINGS)], 0
        return [], 0

    monkeypatch.setattr("tests.fuzz.__main__.fuzz", fake)
    monkeypatch.setattr("tests.fuzz.__main__.TARGETS", {"records": Bad, "csv": Bad})
    monkeypatch.setattr(sys, "argv", ["fuzz", "--cases", "20000", "--processes", "2"])
    assert main() == 1
    assert sorted(seen) == [("csv", True), ("csv", True), ("records", True)]


def test_an_interrupt_ends_it_and_its_process() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--reader", "zarr", "--cases", "1000000"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _child_of(process.pid), "the process of the cases")
            child = _child_of(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) != 0
        finally:
            process.kill()
    assert child is not None
    until(lambda: not child.is_running(), "the end of that process")


def _child_of(pid: int) -> psutil.Process | None:
    """The process that runs cases; imports may start and end others."""
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):
            if "tests.fuzz.run" in child.cmdline():
                return child
    return None


def test_a_case_follows_from_seed_and_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        for case in range(20):
            run.replay("position", 3, case)
        outputs.append(capsys.readouterr().out)
    assert "refused: DataLossError" in outputs[0]
    assert outputs[0].count("refused") == outputs[1].count("refused")


def test_counting_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    monkeypatch.setattr("tests.fuzz.__main__._SAVED_EVERY", 10)
    command = ["fuzz", "--reader", "tensors", "--processes", "2", "--results", str(path), "--cases"]
    for cases, ran in (("25", 25), ("40", 15), ("40", 0)):
        monkeypatch.setattr("sys.argv", [*command, cases])
        assert main() == 0
        assert f"tensors: {ran} cases" in capsys.readouterr().out
    found = results.load(path)["tensors"]
    assert found.cases == 40
    assert found.refused == fuzz("tensors", 0, 40)[1]


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    known = results.load(results.FILE)
    assert set(known) <= set(TARGETS)
    text = results.README.read_text()
    assert text == results.with_table(text, known)
