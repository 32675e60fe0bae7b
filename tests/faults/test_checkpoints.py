"""Rows 34 to 38 for checkpoints: killed saves, full disks, damaged and hostile files, differences."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.checkpoint.conftest import Arm, arm
from tests.checkpoint.torture import KILL_POINTS
from tests.faults.conftest import meanwhile, until
from tests.own_cluster import ROOT
from workbench.checkpoint.folder import folder_at
from workbench.checkpoint.manifest import read_manifest
from workbench.errors import CheckpointInvalid, NotFoundError, ReplicaLost, WorkbenchError

__all__ = ["arm"]  # a fixture


def torture(cases: int, seed: int, seconds: float) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.checkpoint.torture", "--cases", str(cases), "--seed", str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_a_sample_of_tortures_is_restored_or_refused_rightly() -> None:
    assert "60 of 60" in torture(60, 7, 100)


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_thousand_tortures_are_restored_or_refused_rightly() -> None:
    told = torture(1000, 1, 800)
    assert "1000 of 1000" in told
    assert set(re.findall(r"killed at (\S+)", told)) == {point for point, _ in KILL_POINTS}


def test_every_byte_of_a_manifest_counts(tmp_path: Path) -> None:
    path = Path(wb.Checkpoint(w=wb.Variable([1.0, 2.0]), epoch=3).save(tmp_path / "x"))
    file = path / "checkpoint.json"
    whole = file.read_bytes()
    folder = folder_at(path)
    for offset in range(len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 0x20  # letters change case, and capitals are not valid in checksums
        file.write_bytes(damaged)
        with pytest.raises(CheckpointInvalid):
            read_manifest(folder)
        file.write_bytes(whole[:offset])
        with pytest.raises(CheckpointInvalid):
            read_manifest(folder)


def test_a_replica_that_is_killed_while_it_writes_costs_this_save_only(tmp_path: Path) -> None:
    rule = {"point": "checkpoint.shard", "nth": 2, "action": "kill", "once": str(tmp_path / "fired")}
    environment = {"WB_FAULTS": json.dumps([rule])}
    with wb.connect(replicas=2, environment=environment, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            w = [wb.Variable(np.zeros(10)), wb.Variable(np.zeros(10))]
        manager = wb.CheckpointManager(wb.Checkpoint(w=w), tmp_path / "c", 3)
        first = manager.save()
        for variable in w:
            variable.assign(np.ones(10))
        with pytest.raises(ReplicaLost):
            manager.save()
        assert manager.checkpoints == [first]
        second = manager.save()
        assert manager.checkpoints == [first, second]
        assert not [
            path for path in (tmp_path / "c").glob("*") if path.name not in (".ckpt.lock", "ckpt-1", "ckpt-2")
        ]
        for variable in w:
            variable.assign(np.full(10, 5.0))
        manager.restore_or_initialize()
        assert [variable.numpy().sum() for variable in w] == [10, 10]


class Bomb:
    """Pickled, it makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def test_hostile_files_are_refused_and_never_executed(tmp_path: Path) -> None:
    executed = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(executed))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped", bytes(10_000_000))
        archive.writestr("archive/data.pkl", bomb)
    checkpoint = wb.Checkpoint(w=wb.Variable(np.zeros(3)))
    path = Path(checkpoint.save(tmp_path / "x"))
    (shard,) = path.glob("*.safetensors")
    good = {each: each.read_bytes() for each in (shard, path / "checkpoint.json")}
    for content in (bomb, packed.getvalue(), b"\xff" * 64, b"[" * 100_000, b""):
        for file in good:
            file.write_bytes(content)
            with pytest.raises(CheckpointInvalid):
                checkpoint.restore(path)
            file.write_bytes(good[file])
    checkpoint.restore(path)
    assert not executed.exists()
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    ("point", "kind", "told"),
    [
        (
            "checkpoint.made",
            NotFoundError,
            "is not there any more on host .*: it was removed, or its disk was",
        ),
        (
            "checkpoint.shard",
            WorkbenchError,
            r"\.safetensors in '.*' is missing here, and had [0-9]+ bytes where",
        ),
        ("checkpoint.before_manifest", NotFoundError, "is not there any more on host .*; save again"),
    ],
)
def test_a_folder_that_vanishes_while_it_is_written_costs_this_save_only(
    tmp_path: Path, arm: Arm, point: str, kind: type[Exception], told: str
) -> None:
    w = wb.Variable(np.zeros(10))
    checkpoint = wb.Checkpoint(w=w)
    before = checkpoint.save(tmp_path / "before")
    w.assign(np.ones(10))
    came, go = tmp_path / "came", tmp_path / "go"
    arm({"point": point, "action": f"touch:{came}"}, {"point": point, "action": f"block:{go}"})

    def vanish() -> None:
        try:
            until(came.exists, "the save's coming there")
            shutil.rmtree(tmp_path / "now-2")
        finally:
            go.touch()  # otherwise the save would wait forever

    with meanwhile(vanish), pytest.raises(kind, match=told):
        checkpoint.save(tmp_path / "now")
    arm()
    again = checkpoint.save(tmp_path / "now")
    for path, expected in ((before, 0), (again, 10)):
        checkpoint.restore(path)
        assert w.numpy().sum() == expected


def test_a_link_in_the_place_of_a_manifest_is_not_followed(tmp_path: Path) -> None:
    checkpoint = wb.Checkpoint(epoch=1)
    path = Path(checkpoint.save(tmp_path / "x"))
    (path / "checkpoint.json").rename(tmp_path / "elsewhere")
    (path / "checkpoint.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotFoundError):
        checkpoint.restore(path)
