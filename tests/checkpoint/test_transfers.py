"""How far saves and restores are: what listeners are told, and what the log of the cluster has afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.checkpoint.conftest import Arm
from workbench.checkpoint import replica_reads, transfer
from workbench.checkpoint.listeners import listeners
from workbench.checkpoint.shard_reader import begin_read, forget_read
from workbench.errors import CheckpointInvalid, StorageFull
from workbench.telemetry.events import Event

Seen = list[tuple[str, str, int, tuple[int, ...]]]


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


def test_a_save_of_variables_on_servers_is_in_the_log_of_their_cluster(
    tmp_path: Path, cluster: wb.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = wb.distribute.ParameterServerStrategy(servers=1)
    with strategy.scope():
        v = wb.Variable(0.0)
    monkeypatch.setattr(transfer, "current_cluster", lambda: None)  # another file may be, or none

    path = wb.Checkpoint(v=v).save(tmp_path / "x")

    assert newest(cluster).message.startswith(f"saved {path!r}: ")
    strategy.close()


def test_each_detour_is_told(cluster: wb.Cluster) -> None:
    restore = transfer.Transfer("restore", "x", [])
    restore.detour(1024, "the files cannot be seen on a")
    restore.detour(2048, "the files cannot be seen on b")
    restore.end()

    assert newest(cluster).message.endswith(
        "; 1 KiB went through the notebook, as the files cannot be seen on a"
        "; 2 KiB went through the notebook, as the files cannot be seen on b"
    )


def test_the_notebook_reads_where_a_replica_was_lost_while_it_read(
    tmp_path: Path, cluster: wb.Cluster, w: wb.Variable, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = wb.Checkpoint(w=w)
    w.assign(np.ones(1 << 17))
    path = checkpoint.save(tmp_path / "x")
    w.assign(np.zeros(1 << 17))

    def begin(env: Any, folder: str, restore: str, wanted: Any) -> None:
        begin_read(env, folder, restore, wanted)
        if env.rank == 1:  # as in a process that replaces another one
            forget_read(env, restore)

    monkeypatch.setattr(replica_reads, "begin_read", begin)
    checkpoint.restore(path)

    assert w.numpy().tolist() == [1] * (1 << 17)
    assert "; 1 MiB went through the notebook, as a replica was lost while it read them on " in (
        newest(cluster).message
    )


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
