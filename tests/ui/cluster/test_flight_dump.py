"""Dumps: owner-only, never through a link, bounded, without secrets."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import StorageFull
from workbench.ui.cluster import flight_dump
from workbench.ui.cluster.flight_dump import write_dump


def details(collectives: int = 3, stacks: str = "") -> dict[str, Any]:
    flight = [{"step": 0, "seq": seq, "op": "all_reduce"} for seq in range(collectives)]
    return {
        "run": "7f3a",
        "verdict": ["fine"],
        "workers": [{"name": "0", "stacks": stacks}],
        "groups": [{"replicas": [{"replica": 0, "flight": flight}]}],
    }


def test_a_dump_is_json_that_only_its_owner_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = write_dump(details(), tmp_path / "dump.json")
    finally:
        os.umask(before)

    assert json.loads(path.read_text()) == details()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_that_lies_there_already_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "dump.json").symlink_to(victim)
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")

    for name in ("dump.json", "dangling.json"):
        with pytest.raises(FileExistsError):
            write_dump(details(), tmp_path / name)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_the_oldest_collectives_go_first_when_it_gets_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_dump, "MAX_BYTES", 40_000)
    path = write_dump(details(5000), tmp_path / "dump.json")
    kept = json.loads(path.read_text())["groups"][0]["replicas"][0]["flight"]

    assert path.stat().st_size <= 40_000
    assert [entry["seq"] for entry in kept] == list(range(4800, 5000))


def test_a_dump_that_cannot_fit_keeps_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_dump, "MAX_BYTES", 100)

    assert json.loads(write_dump(details(50), tmp_path / "d").read_text()) == {
        "run": "7f3a",
        "verdict": ["fine"],
    }


def test_what_looks_like_a_secret_is_left_out(tmp_path: Path) -> None:
    stacks = 'connect(token="abc123", api_key=xyz)\nPASSWORD = hunter2\nstep = 3'
    text = write_dump(details(stacks=stacks), tmp_path / "dump.json").read_text()

    assert not any(secret in text for secret in ("abc123", "xyz", "hunter2"))
    assert "step = 3" in text


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fdopen

    def full(descriptor: int, mode: str) -> Any:
        real(descriptor, mode).close()
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(StorageFull, match=r"dump\.json"):
        write_dump(details(), tmp_path / "dump.json")
    assert list(tmp_path.iterdir()) == []
