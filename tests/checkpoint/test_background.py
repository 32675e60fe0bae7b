"""Saving in the background: training goes on, the snapshot is that of the call, and the next call raises errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.checkpoint.conftest import Arm
from workbench.errors import FailedPreconditionError, StorageFull


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    """Two replicas in this process, so that tests reach their fault points."""
    with wb.connect(replicas=2, processes=False, replace=True):
        yield wb.MirroredStrategy()


@pytest.fixture
def w(strategy: wb.MirroredStrategy) -> wb.Variable:
    with strategy.scope():
        return wb.Variable(np.zeros(1000), aggregation="MEAN")


def test_steps_run_while_a_snapshot_is_written(
    tmp_path: Path, strategy: wb.MirroredStrategy, w: wb.Variable, arm: Arm
) -> None:
    checkpoint = wb.Checkpoint(w=w, mine=np.zeros(2), epoch=0)
    go = tmp_path / "go"
    arm(
        {"point": "checkpoint.shard", "action": f"block:{go}"},
        {"point": "checkpoint.shard", "nth": 2, "action": f"block:{go}"},
    )
    path = checkpoint.save(tmp_path / "x", background=True)
    for _ in range(5):
        strategy.run(lambda: w.assign_add(np.ones(1000)))
    checkpoint.mine += 1
    checkpoint.epoch = 5
    saving = checkpoint.saving
    assert saving is not None
    assert not saving.done
    assert not saving.wait(0.0)
    assert not (Path(path) / "checkpoint.json").exists()
    assert saving.total_bytes == 8016

    assert "saving" in repr(saving)
    assert "of 7.83 KiB" in repr(saving)

    go.touch()
    checkpoint.sync()
    assert saving.done
    assert "saved" in repr(saving)
    assert saving.written_bytes == saving.total_bytes
    checkpoint.restore(path)
    assert (w.numpy().sum(), checkpoint.mine.tolist(), checkpoint.epoch) == (0, [0, 0], 0)


@pytest.mark.parametrize("ending", ["sync", "save", "restore"])
def test_an_error_is_told_by_the_next_call_and_once(
    tmp_path: Path, w: wb.Variable, arm: Arm, ending: str
) -> None:
    checkpoint = wb.Checkpoint(w=w)
    before = checkpoint.write(tmp_path / "x")
    w.assign(np.ones(1000))
    arm({"point": "checkpoint.write", "nth": 2, "action": "full"})
    checkpoint.write(tmp_path / "x", background=True)
    call = {
        "sync": checkpoint.sync,
        "save": lambda: checkpoint.save(tmp_path / "y"),
        "restore": lambda: checkpoint.restore(before),
    }[ending]
    with pytest.raises(StorageFull, match=r"no space left for the checkpoint .* bytes are free there"):
        call()
    arm()
    checkpoint.restore(before)
    assert w.numpy().sum() == 0
    assert len(list((tmp_path / "x").iterdir())) == 3, "lock, manifest and the file of one replica"


def test_a_manager_removes_old_checkpoints_only_once_the_new_one_is_complete(
    tmp_path: Path, w: wb.Variable, arm: Arm
) -> None:
    manager = wb.CheckpointManager(wb.Checkpoint(w=w), tmp_path, 1, background=True)
    first = manager.save()
    manager.sync()
    go = tmp_path / "go"
    arm({"point": "checkpoint.before_manifest", "action": f"block:{go}"})
    second = manager.save()
    assert manager.checkpoints == [first]
    go.touch()
    manager.sync()
    assert manager.checkpoints == [second]
    assert not Path(str(first)).exists()


def test_two_that_write_to_the_same_path_do_not_mix(tmp_path: Path, w: wb.Variable, arm: Arm) -> None:
    go = tmp_path / "go"
    arm({"point": "checkpoint.before_manifest", "action": f"block:{go}"})
    one, other = wb.Checkpoint(w=w), wb.Checkpoint(w=w, more=1)
    one.write(tmp_path / "x", background=True)
    with pytest.raises(FailedPreconditionError, match="somebody else is saving"):
        other.write(tmp_path / "x")
    go.touch()
    one.sync()
    other.write(tmp_path / "x")
    other.restore(tmp_path / "x").assert_consumed()
