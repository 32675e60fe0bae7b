"""A save in the background, and the end of its cluster and of its script."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.checkpoint import background
from workbench.checkpoint.background import BackgroundSave
from workbench.errors import FailedPreconditionError, WorkbenchError
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt


@pytest.mark.parametrize("processes", [False, True])
def test_a_cluster_closes_once_the_checkpoint_is_complete(tmp_path: Path, processes: bool) -> None:
    with wb.connect(replicas=2, processes=processes, replace=True) as cluster:
        with wb.MirroredStrategy().scope():
            checkpoint = wb.Checkpoint(w=wb.Variable(np.ones(3_000_000)))
        manager = wb.CheckpointManager(checkpoint, tmp_path, None, background=True)
        before = list(cluster.closing)
        manager.save()
        manager.sync()
        assert cluster.closing == before  # the process has ended
        path = manager.save()
    assert manager.latest_checkpoint == path
    manager.sync()


def test_servers_close_under_a_checkpoint_that_becomes_complete_and_refuse_the_next(tmp_path: Path) -> None:
    values = np.arange(3_000_000.0)
    with wb.connect(replicas=2, replace=True):
        strategy = wb.distribute.ParameterServerStrategy(servers=1)
        with strategy.scope():
            checkpoint = wb.Checkpoint(w=wb.Variable(values))
        manager = wb.CheckpointManager(checkpoint, tmp_path, None, background=True)
        path = manager.save()
        strategy.close()
        with pytest.raises(FailedPreconditionError, match="their strategy was closed"):
            manager.save()
        manager.sync()
        assert manager.latest_checkpoint == path
        assert [file.parent.name for file in tmp_path.glob("*/*.safetensors")] == ["ckpt-1"]

        with wb.MirroredStrategy().scope():
            restored = wb.Variable(np.zeros_like(values))
        wb.Checkpoint(w=restored).restore(path)
        assert np.array_equal(restored.numpy(), values)


SCRIPT = """
import numpy as np, sys
import workbench as wb
if __name__ == "__main__":
    strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        checkpoint = wb.Checkpoint(w=wb.Variable(np.ones(3_000_000)))
    manager = wb.CheckpointManager(checkpoint, sys.argv[1], None, background=True)
    manager.save()
    manager.sync()
    with wb.connect(replicas=2, replace=True):
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            other = wb.Checkpoint(w=wb.Variable(np.ones(3_000_000)))
        manager = wb.CheckpointManager(other, sys.argv[1], None, background=True)
        manager.save()
    wb.connect(replicas=2)
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        third = wb.Checkpoint(w=wb.Variable(np.ones(3_000_000)))
    wb.CheckpointManager(third, sys.argv[1], None, background=True).save()
"""


def test_a_script_ends_once_the_checkpoint_is_complete(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    folder = tmp_path / "checkpoints"
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.parent.name for path in folder.glob("*/checkpoint.json")) == [
        "ckpt-1",
        "ckpt-2",
        "ckpt-3",
    ]


class _Clock:
    """A clock that advances by a second at each reading."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(background, "time", clock)
    monkeypatch.setattr(background, "_running", weakref.WeakSet())
    monkeypatch.setattr(background, "_POLL_SECONDS", 0.001)
    return clock


def _endless(*clusters: Any, begins: Callable[[], object] = lambda: None) -> BackgroundSave:
    """A save that ends only when told to."""

    def finish(stop: threading.Event) -> None:
        begins()
        stop.wait()
        raise WorkbenchError("given up")

    save: Any = SimpleNamespace(finish=finish, path="x", transfer=SimpleNamespace(clusters=clusters))
    return BackgroundSave(save, lambda: None)


def _close(cluster: Any) -> None:
    for callback in tuple(cluster.closing):
        callback()


def _assert_given_up(saves: list[BackgroundSave]) -> None:
    for save in saves:
        with pytest.raises(WorkbenchError, match="given up"):
            save.wait()


def test_a_cluster_waits_a_minute_for_all_saves_together(clock: _Clock) -> None:
    own = SimpleNamespace(closing=[])
    other = SimpleNamespace(closing=[])
    elsewhere = _endless(other)
    saves = [_endless(own), _endless(own, other), _endless(own)]
    _close(own)
    _assert_given_up(saves)
    assert 60 <= clock.now < 100
    assert not elsewhere.done
    assert own.closing == []
    assert len(other.closing) == 1
    _close(other)
    _assert_given_up([elsewhere])


def test_a_program_that_ends_waits_a_minute_for_all_saves_together(clock: _Clock) -> None:
    clusters = [SimpleNamespace(closing=[]) for _ in range(3)]
    saves = [_endless(cluster) for cluster in clusters] + [_endless()]
    background._end_at_exit()
    for cluster in clusters:  # which then close
        _close(cluster)
    _assert_given_up(saves)
    assert 60 <= clock.now < 100


def test_ctrl_c_ends_the_wait_of_a_cluster_that_closes(clock: _Clock) -> None:
    clock.monotonic = lambda: 0.0  # type: ignore[method-assign]
    cluster = SimpleNamespace(closing=[])
    reached = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():  # noqa: PT012
        saves = [_endless(cluster), _endless(cluster, begins=lambda: signal.raise_signal(signal.SIGINT))]
        _close(cluster)
        reached = True
    assert reached
    _assert_given_up(saves)
