"""A save in the background, and the end of its cluster and of its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb


@pytest.mark.parametrize("processes", [False, True])
def test_a_cluster_closes_once_the_checkpoint_is_complete(tmp_path: Path, processes: bool) -> None:
    with wb.connect(replicas=2, processes=processes, replace=True) as cluster:
        with wb.MirroredStrategy().scope():
            checkpoint = wb.Checkpoint(w=wb.Variable(np.ones(3_000_000)))
        manager = wb.CheckpointManager(checkpoint, tmp_path, None, background=True)
        before = list(cluster.closing)
        manager.save()
        manager.sync()
        assert cluster.closing == before  # it has ended
        path = manager.save()
    assert manager.latest_checkpoint == path
    manager.sync()


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
