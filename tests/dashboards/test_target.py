"""What people name is found, and what cannot be found says what there is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.dashboards.recordings import Recordings
from workbench.dashboards.target import Jobs, find
from workbench.errors import DataCorruption, NotFoundError
from workbench.runtime.deploy.registry import Entry, Registry


def entry(id: str, name: str, *, kind: str = "driver", scheduler: str = "") -> Entry:
    return Entry(id, kind, name, 7, _machine(), time.time(), "/nowhere", scheduler=scheduler)


def _machine() -> str:
    import socket

    return socket.gethostname()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    registry = Registry(tmp_path / "clusters")
    announced = [
        registry.announce(one)
        for one in (
            entry("0000000a", "train.py", scheduler="tls://127.0.0.1:8786"),
            entry("0000000b", "same.py"),
            entry("0000000c", "same.py"),
            entry("0000000d", "2 workers", kind="workers"),
        )
    ]
    yield registry
    for one in announced:
        one.withdraw()


def test_nothing_means_whatever_there_is(registry: Registry) -> None:
    assert find(None, registry) == Jobs()


@pytest.mark.parametrize(
    "what", ["0000000a", "train.py", "tls://127.0.0.1:8786", "localhost:8786", "tcp://127.0.0.1:8786"]
)
def test_a_job_is_found_by_name_id_and_scheduler(registry: Registry, what: str) -> None:
    assert find(what, registry) == Jobs("0000000a")


def test_a_name_of_two_jobs_asks_for_the_id(registry: Registry) -> None:
    with pytest.raises(NotFoundError, match=r"several.*0000000.*0000000"):
        find("same.py", registry)


@pytest.mark.parametrize("what", ["0000000d", "127.0.0.1:1", "nothing", "../../etc/nothing", "\0", ""])
def test_what_is_not_there_is_answered_with_what_is(registry: Registry, what: str) -> None:
    with pytest.raises(NotFoundError, match=r"your jobs: .*train\.py"):
        find(what, registry)


def test_without_any_job_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no job of yours runs"):
        find("train.py", Registry(tmp_path / "empty"))


def test_a_file_and_a_folder_are_recorded_runs(registry: Registry, run_file: Path) -> None:
    one, all = find(str(run_file), registry), find(run_file.parent, registry)

    assert isinstance(one, Recordings)
    assert isinstance(all, Recordings)
    assert (one.first, all.first) == (str(run_file), "")
    assert [run["name"] for run in all.runs.all()["runs"]] == ["first"]


def test_a_file_that_is_missing_or_damaged_is_an_error_at_once(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"absent\.parquet"):
        find(str(tmp_path / "absent.parquet"), registry)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 no such thing PAR1")
    with pytest.raises(DataCorruption, match=r"damaged\.parquet"):
        find(str(damaged), registry)
    other = tmp_path / "notes.txt"
    other.write_text("text", encoding="ascii")
    with pytest.raises(DataCorruption, match=r"notes\.txt.*no job has that name.*train\.py"):
        find(str(other), registry)


def test_a_script_that_does_not_run_is_answered_with_the_jobs_that_do(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.py").write_text("print()", encoding="ascii")
    with pytest.raises(NotFoundError, match=r"no job has that name.*your jobs: .*'train\.py'"):
        find("other.py", registry)
