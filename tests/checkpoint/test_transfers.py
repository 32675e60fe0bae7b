"""How far saves and restores are: what listeners are told, and what the log of the cluster has afterwards."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import faults
from workbench.checkpoint.listeners import listeners
from workbench.errors import CheckpointInvalid, StorageFull
from workbench.telemetry.events import Event

Seen = list[tuple[str, str, int, tuple[int, ...]]]
Arm = Callable[..., None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False, replace=True) as cluster:
        yield cluster


@pytest.fixture
def w(cluster: wb.Cluster) -> wb.Variable:
    with wb.MirroredStrategy().scope():
        return wb.Variable(np.zeros(1 << 17), aggregation="MEAN")


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Kind, state, bytes and shards under way, of each call."""
    calls: Seen = []

    def listen(transfer: Any) -> None:
        calls.append((transfer.kind, transfer.state, transfer.done_bytes, transfer.under_way))

    listeners.append(listen)
    yield calls
    listeners.remove(listen)


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Arm]:
    def rules(*rules: dict[str, Any]) -> None:
        faults._counts.clear()
        monkeypatch.setenv("WB_FAULTS", json.dumps(rules))
        faults.arm()

    yield rules
    rules()


def newest(cluster: wb.Cluster) -> Event:
    return cluster.feed.snapshot().events[-1]


def test_a_save_tells_bytes_and_shards_and_is_a_line_of_the_log(
    tmp_path: Path, cluster: wb.Cluster, w: wb.Variable, seen: Seen, arm: Arm
) -> None:
    strategy: Any = w.strategy
    for _ in range(3):
        strategy.run(lambda: w.assign_add(np.ones(1 << 17)))
    go = tmp_path / "go"
    arm({"point": "checkpoint.shard", "action": f"block:{go}"})
    heard: list[Event] = []
    cluster.event_listeners.append(heard.append)
    checkpoint = wb.Checkpoint(w=w, mine=np.zeros(4))
    path = checkpoint.save(tmp_path / "x", background=True)

    def write_on(transfer: Any) -> None:
        if transfer.under_way and transfer.done_bytes:
            go.touch()

    listeners.append(write_on)
    checkpoint.sync()
    listeners.remove(write_on)
    cluster.event_listeners.remove(heard.append)

    assert seen[0][:3] == ("save", "running", 0)
    assert any(len(under_way) >= 1 for *_, under_way in seen)
    assert seen[-1] == ("save", "done", (1 << 20) + 32, ())
    (event,) = heard
    assert (event.kind, event.name, event.severity) == ("lifecycle", "checkpoint_saved", "info")
    assert event.step == strategy.group.number - 1 >= 2
    assert event.message.startswith(f"saved {path!r}: 1.00 MiB in ")
    assert "in the background" in event.message
    assert "B/s" in event.message


def test_a_restore_tells_bytes_and_is_a_line_of_the_log(
    tmp_path: Path, cluster: wb.Cluster, w: wb.Variable, seen: Seen
) -> None:
    checkpoint = wb.Checkpoint(w=w, mine=np.zeros(4))
    path = checkpoint.save(tmp_path / "x")
    seen.clear()
    checkpoint.restore(path)

    assert seen[0][:3] == ("restore", "running", 0)
    assert {1 << 20, (1 << 20) + 32} <= {done for _, _, done, _ in seen}, "first the replicas, then here"
    assert seen[-1][1] == "done"
    assert newest(cluster).name == "checkpoint_restored"
    assert newest(cluster).message.startswith(f"restored {path!r}: 1.00 MiB in ")


def test_a_save_in_the_background_that_fails_is_told_at_once(
    tmp_path: Path,
    cluster: wb.Cluster,
    w: wb.Variable,
    seen: Seen,
    arm: Arm,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    arm({"point": "checkpoint.write", "nth": 1, "action": "full"})
    checkpoint = wb.Checkpoint(w=w)
    path = checkpoint.save(tmp_path / "x", background=True)
    assert checkpoint.saving is not None
    with pytest.raises(StorageFull):
        checkpoint.saving.wait(60)

    assert seen[-1][1] == "failed"
    assert (newest(cluster).kind, newest(cluster).severity) == ("alert", "error")
    assert newest(cluster).name == "checkpoint_save_failed"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    for text in (newest(cluster).message, record.getMessage(), repr(checkpoint.saving)):
        assert f"could not save {path!r}, after " in text
        assert "StorageFull: no space left" in text


def test_old_checkpoints_that_cannot_be_removed_are_told_at_once(
    tmp_path: Path, cluster: wb.Cluster, w: wb.Variable, arm: Arm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    manager = wb.CheckpointManager(wb.Checkpoint(w=w), tmp_path, 1, background=True)
    arm({"point": "checkpoint.sweep", "action": "full"})
    path = manager.save()
    with pytest.raises(OSError, match="No space"):
        manager.sync()
    assert manager.latest_checkpoint == path
    assert newest(cluster).message.startswith(f"saved {path!r}, but could not remove older ones: ")
    assert len(caplog.records) == 1


def test_a_damaged_file_is_an_alert(tmp_path: Path, cluster: wb.Cluster, w: wb.Variable) -> None:
    checkpoint = wb.Checkpoint(w=w)
    path = Path(checkpoint.save(tmp_path / "x"))
    (shard,) = path.glob("*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointInvalid):
        checkpoint.restore(path)
    assert newest(cluster).name == "checkpoint_restore_failed"
    assert shard.name in newest(cluster).message


def test_state_without_a_strategy_is_in_the_log_of_the_current_cluster(
    tmp_path: Path, cluster: wb.Cluster
) -> None:
    path = wb.Checkpoint(epoch=3).save(tmp_path / "x")
    assert newest(cluster).message.startswith(f"saved {path!r}: 0 B in ")
    assert newest(cluster).step == -1


def test_a_recorded_run_has_it(tmp_path: Path, cluster: wb.Cluster, w: wb.Variable) -> None:
    with wb.record(tmp_path / "run.parquet", cluster):
        path = wb.Checkpoint(w=w).save(tmp_path / "x")
    (event,) = wb.open_run(tmp_path / "run.parquet").events
    assert event.name == "checkpoint_saved"
    assert repr(path) in event.message


def test_a_listener_that_fails_does_not_stop_a_save(tmp_path: Path, w: wb.Variable) -> None:
    def broken(transfer: Any) -> None:
        raise ValueError("nobody looks")

    listeners.append(broken)
    try:
        path = wb.Checkpoint(w=w).save(tmp_path / "x")
    finally:
        listeners.remove(broken)
    assert wb.Checkpoint(w=w).restore(path).assert_consumed()
