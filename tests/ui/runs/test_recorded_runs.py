"""Recorded runs for those who serve pages: the list, a run, a comparison; each file is read once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.runs.test_recorder import record
from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.server.recorded import RunsBelow
from workbench.telemetry.runs.recorded_run import Run, open_run
from workbench.ui.runs.recorded_runs import Folder, OneFile, RecordedRuns, Shelf

PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("run") / "run.parquet"
    record(path)
    return path.read_bytes()


@pytest.fixture(params=[Folder, lambda folder: RunsBelow(folder.parent)], ids=["dashboard", "server"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path, run: bytes) -> Shelf:
    """A shelf with the runs "first" and "second", and a file that is cut."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for age, name in enumerate(("first", "second")):
        (folder / f"{name}.parquet").write_bytes(run)
        os.utime(folder / f"{name}.parquet", ns=(age, age))
    (folder / "cut.parquet").write_bytes(run[: len(run) // 2])
    os.utime(folder / "cut.parquet", ns=(9, 9))
    make: Callable[[Path], Shelf] = request.param
    return make(folder)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were opened to be shown."""
    names: list[str] = []

    def reading(path: Path) -> Run:
        names.append(path.stem)
        return open_run(path)

    monkeypatch.setattr("workbench.ui.runs.recorded_runs.open_run", reading)
    return names


def paths(runs: RecordedRuns) -> dict[str, str]:
    """Name -> path of each run that is listed."""
    return {entry["name"]: entry["path"] for entry in runs.all()["runs"]}


def test_runs_are_listed_newest_first_and_what_is_wrong_with_them_is_told(shelf: Shelf) -> None:
    listed = RecordedRuns(shelf).all()["runs"]

    assert [entry["name"] for entry in listed] == ["cut", "second", "first"]
    assert listed[0]["path"] in listed[0]["problem"]
    assert listed[1]["problem"] == ""
    assert listed[1]["records"] > 0


@pytest.mark.parametrize("content", [b"", b"P", b"PAR1", b"PAR1PAR1", b"\0" * 4096], ids=repr)
def test_a_file_that_is_being_written_or_is_none_is_listed_with_its_problem(
    shelf: Shelf, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "runs" / "cut.parquet").write_bytes(content[:4096])
    runs = RecordedRuns(shelf)
    path = paths(runs)["cut"]
    with pytest.raises(DataCorruption) as caught:
        runs.replay(path)
    assert path in str(caught.value)
    assert [entry["problem"] != "" for entry in runs.all()["runs"]] == [True, False, False]


def test_a_run_is_found_by_the_path_that_the_list_gives(shelf: Shelf) -> None:
    runs = RecordedRuns(shelf)
    path = paths(runs)["first"]
    model = runs.replay(path)
    assert model["run"]["path"] == path
    some = runs.replay(path, range(3, 5))
    assert (some["shown_from"], some["shown_to"]) == (3, 4)


def test_two_runs_are_compared_and_one_that_is_damaged_is_named(shelf: Shelf) -> None:
    runs = RecordedRuns(shelf)
    known = paths(runs)
    compared = runs.all((known["first"], known["second"]))
    assert compared["compared"] == ["first", "second"]
    assert {row["verdict"] for row in compared["rows"]} == {"alike"}
    for two in ((known["first"], known["cut"]), (known["cut"], known["first"])):
        with pytest.raises(DataCorruption) as caught:
            runs.all(two)
        assert known["cut"] in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="two runs can be compared, not 1"):
        runs.all((known["first"],))


@pytest.mark.parametrize(
    "path", ["", "\0", ".", "runs", "first", "runs/../runs/first.parquet", "/etc/runs/x.parquet"]
)
def test_nothing_else_is_opened(shelf: Shelf, path: str) -> None:
    runs = RecordedRuns(shelf)
    with pytest.raises(NotFoundError, match="no recorded run"):
        runs.replay(path)
    with pytest.raises(NotFoundError, match="no recorded run"):
        runs.all((path, path))


def test_a_pipe_and_a_hidden_file_are_no_runs(shelf: Shelf, tmp_path: Path, run: bytes) -> None:
    os.mkfifo(tmp_path / "runs" / "pipe.parquet")
    (tmp_path / "runs" / ".hidden.parquet").write_bytes(run)
    (tmp_path / "runs" / "folder.parquet").mkdir()
    assert paths(RecordedRuns(shelf)).keys() == {"first", "second", "cut"}


def test_a_run_is_read_once_as_long_as_its_file_stays_as_it_is(
    shelf: Shelf, read: list[str], run: bytes, tmp_path: Path
) -> None:
    runs = RecordedRuns(shelf)
    path = paths(runs)["first"]
    assert runs.replay(path) == runs.replay(path)
    assert runs.replay(path, range(1)) != runs.replay(path)
    assert read == ["first"]

    file = tmp_path / "runs" / "first.parquet"
    (tmp_path / "new").write_bytes(run)
    os.utime(tmp_path / "new", ns=(0, 0))  # recorded again, within the clock's resolution
    os.replace(tmp_path / "new", file)
    runs.replay(path)
    assert read == ["first", "first"]

    file.write_bytes(b"damaged meanwhile")
    with pytest.raises(DataCorruption):
        runs.replay(path)
    file.unlink()
    with pytest.raises(NotFoundError):
        runs.replay(path)
    assert "first" not in paths(runs)


def test_who_comes_together_waits_for_one_reading(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = RecordedRuns(shelf)
    path = paths(runs)["first"]
    folded: list[Path] = []
    fold = Run._fold

    def folding(self: Run, *arguments: Any) -> Any:
        folded.append(self.path)
        return fold(self, *arguments)

    monkeypatch.setattr(Run, "_fold", folding)
    together = threading.Barrier(4)

    def look() -> dict[str, Any]:
        together.wait(PATIENCE_SECONDS)
        return runs.replay(path)

    with ThreadPoolExecutor(4) as pool:
        models = [waiting.result(PATIENCE_SECONDS) for waiting in [pool.submit(look) for _ in range(4)]]
    assert models == models[:1] * 4
    assert folded == [tmp_path / "runs" / "first.parquet"]


def test_a_file_that_goes_while_it_is_listed_is_left_out(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Going:
        name = shelf.name
        find, path_of = shelf.find, shelf.path_of

        def files(self) -> list[Path]:
            found = list(shelf.files())
            (tmp_path / "runs" / "first.parquet").unlink()
            return found

    assert paths(RecordedRuns(Going())).keys() == {"second", "cut"}


def test_a_dashboard_of_one_file_has_that_only(tmp_path: Path, run: bytes) -> None:
    for name in ("shown", "other"):
        (tmp_path / f"{name}.parquet").write_bytes(run)
    runs = RecordedRuns(OneFile(tmp_path / "shown.parquet"))
    assert paths(runs).keys() == {"shown"}
    assert runs.replay(str(tmp_path / "shown.parquet"))["run"]["name"] == "shown"
    with pytest.raises(NotFoundError):
        runs.replay(str(tmp_path / "other.parquet"))


def test_of_many_runs_below_a_root_the_newest_are_listed(
    tmp_path: Path, run: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.ui.runs.recorded_runs.MAX_RUNS", 2)
    (tmp_path / "runs").mkdir()
    for age, name in enumerate("edcba"):
        (tmp_path / "runs" / f"{name}.parquet").write_bytes(run)
        os.utime(tmp_path / "runs" / f"{name}.parquet", ns=(age, age))
    assert list(paths(RecordedRuns(RunsBelow(tmp_path)))) == ["a", "b"]


@pytest.mark.parametrize("deep", [False, True])
def test_of_too_many_folders_those_that_lie_deepest_are_left_out(
    tmp_path: Path, run: bytes, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    monkeypatch.setattr("workbench.server.recorded._MAX_FOLDERS", 8)
    for number in range(20):
        (tmp_path / "data" / str(number) if deep else tmp_path / f"data{number}").mkdir(parents=True)
    for folder in ("runs", "data/19/runs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{folder.count('/')}.parquet").write_bytes(run)

    assert list(paths(RecordedRuns(RunsBelow(tmp_path)))) == ["0"]


def test_folders_that_cannot_be_read_hide_no_others(
    tmp_path: Path, run: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("closed/runs", "open/runs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{folder.split('/')[0]}.parquet").write_bytes(run)
    scandir = os.scandir

    def refusing(folder: Path) -> Any:
        if Path(folder).name == "closed":
            raise PermissionError(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert list(paths(RecordedRuns(RunsBelow(tmp_path)))) == ["open"]
