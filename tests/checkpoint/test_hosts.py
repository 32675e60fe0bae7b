"""Checkpoints of several hosts: with one file system, and with files of their own."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import workbench as wb
from tests.own_cluster import OwnCluster, refusal, wait_for_workers
from workbench.errors import UnavailableError

# A simulated host with its own name and its own files in /tmp, where the tests' folders are.
HOST_B = (
    "unshare",
    "--uts",
    "--mount",
    "sh",
    "-c",
    'hostname host-b && mount -t tmpfs tmpfs /tmp && exec "$@"',
    "sh",
)
# A simulated host with the same files until something is mounted there.
HOST_B_WITH_THESE_FILES = ("unshare", "--uts", "--mount", "sh", "-c", 'hostname host-b && exec "$@"', "sh")
needs_hosts = pytest.mark.skipif(
    refusal(HOST_B) != "",
    reason=f"this user may not give a process a name and files of its own: {refusal(HOST_B)}",
)


def checkpoint_of(strategy: Any, start: float) -> wb.Checkpoint:
    with strategy.scope():
        return wb.Checkpoint(
            a=wb.Variable(np.full(3000, start), aggregation="MEAN"),
            b=wb.Variable(np.full(2000, start), aggregation="MEAN"),
            c=wb.Variable(np.full(1000, start), aggregation="MEAN"),
            count=wb.Variable(start, synchronization="ON_READ", aggregation="MEAN"),
        )


def values(checkpoint: wb.Checkpoint) -> set[float]:
    return {
        float(x) for name in ("a", "b", "c", "count") for x in np.unique(getattr(checkpoint, name).numpy())
    }


def on_replicas(strategy: Any, variable: wb.Variable) -> list[float]:
    """What each replica itself has."""
    return [float(x) for x in strategy.run(lambda: float(np.sum(variable.read_value()))).values]


def newest(cluster: wb.Cluster) -> str:
    return cluster.feed.snapshot().events[-1].message


@pytest.mark.parametrize("layout", [{"hosts": 2, "replicas_per_host": 2}, {"hosts": 3}, {"replicas": 1}])
def test_it_is_restored_on_another_number_of_hosts(tmp_path: Path, layout: dict[str, int]) -> None:
    with wb.connect(hosts=2, replicas_per_host=2, replace=True):
        path = Path(checkpoint_of(wb.MirroredStrategy(), 1.0).save(tmp_path / "x"))
    assert len(list(path.glob("*.safetensors"))) == 4, (
        "three variables on four replicas, and what is computed here"
    )
    with wb.connect(**layout, replace=True) as cluster:
        strategy = wb.MirroredStrategy()
        after = checkpoint_of(strategy, 9.0)
        after.restore(path).assert_consumed()
        assert values(after) == {1.0}
        assert on_replicas(strategy, after.a) == [3000.0] * strategy.num_replicas_in_sync
        assert "through the notebook" not in newest(cluster)


@needs_hosts
def test_replicas_that_see_the_folder_write_for_those_that_do_not(tmp_path: Path, own: OwnCluster) -> None:
    own.add("0")
    own.add("1", inside=HOST_B)
    wait_for_workers(own.address, 2)
    folder = tmp_path / "checkpoints"
    with wb.connect(own.address, replace=True) as cluster:
        assert "host-b" in cluster.hosts
        strategy = wb.MirroredStrategy()
        checkpoint = checkpoint_of(strategy, 1.0)
        path = Path(checkpoint.save(folder / "x"))
        assert "through the notebook" not in newest(cluster)
        found = {
            name: array for file in path.glob("*.safetensors") for name, array in load_file(file).items()
        }
        assert {name: array.sum() for name, array in found.items()} == {
            "a": 3000.0,
            "b": 2000.0,
            "c": 1000.0,
            "count": 1.0,
        }

        again = checkpoint_of(strategy, 9.0)
        again.restore(path).assert_consumed()
        assert values(again) == {1.0}
        assert on_replicas(strategy, again.a) == [3000.0, 3000.0]
        assert newest(cluster).endswith(
            "46.9 KiB went through the notebook, as the files cannot be seen on host-b"
        )


@needs_hosts
def test_what_no_replica_can_write_goes_through_the_notebook(tmp_path: Path, own: OwnCluster) -> None:
    own.add("0", inside=HOST_B)
    wait_for_workers(own.address, 1)
    with wb.connect(own.address, replace=True) as cluster:
        checkpoint = checkpoint_of(wb.MirroredStrategy(), 1.0)
        manager = wb.CheckpointManager(checkpoint, tmp_path / "checkpoints", 2, background=True)
        path = manager.save()
        manager.sync()
        assert newest(cluster).endswith(
            "46.9 KiB went through the notebook, as the folder cannot be seen on host-b"
        )
    with wb.connect(hosts=2, replace=True):
        after = checkpoint_of(wb.MirroredStrategy(), 9.0)
        after.restore(str(path)).assert_consumed()
        assert values(after) == {1.0}


@needs_hosts
def test_an_older_checkpoint_of_the_same_name_on_another_host_is_not_taken_for_it(
    tmp_path: Path, own: OwnCluster
) -> None:
    own.add("0")
    own.add("1", inside=HOST_B)
    wait_for_workers(own.address, 2)
    with wb.connect(own.address, replace=True):
        strategy = wb.MirroredStrategy()
        checkpoint = checkpoint_of(strategy, 1.0)
        path = Path(checkpoint.write(tmp_path / "x"))
        here = {file.name: file.read_bytes() for file in path.iterdir()}

        def left_there() -> None:
            """Whether host b has a folder of this name, with the lock and manifest of another checkpoint."""
            if not path.exists():
                path.mkdir(parents=True)
                for name, content in here.items():
                    (path / name).write_bytes(content)

        strategy.run(left_there)
        for name in ("a", "b", "c"):
            getattr(checkpoint, name).assign(getattr(checkpoint, name).numpy() * 0 + 2.0)
        checkpoint.count.assign(2.0)
        checkpoint.write(path)
        for name in ("a", "b", "c"):
            getattr(checkpoint, name).assign(getattr(checkpoint, name).numpy() * 0 + 9.0)
        checkpoint.restore(path)
        assert values(checkpoint) == {2.0}
        assert on_replicas(strategy, checkpoint.a) == [6000.0, 6000.0]


@needs_hosts
@pytest.mark.parametrize("background", [False, True])
def test_a_folder_that_a_host_sees_no_more_costs_the_save_that_finds_it(
    tmp_path: Path, own: OwnCluster, background: bool
) -> None:
    own.add("0")
    own.add("1", inside=HOST_B_WITH_THESE_FILES)
    wait_for_workers(own.address, 2)
    folder = tmp_path / "checkpoints"

    def unmount() -> None:
        """Hides the disk's content from host b."""
        if socket.gethostname() == "host-b":
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)

    with wb.connect(own.address, replace=True) as cluster:
        strategy = wb.MirroredStrategy()
        (blind,) = (rank for rank, device in enumerate(strategy.devices) if device.host == "host-b")
        checkpoint = checkpoint_of(strategy, 1.0)
        manager = wb.CheckpointManager(checkpoint, folder, 3)
        first = str(manager.save())
        files = sorted(folder.glob("*/*.safetensors"))
        for name in ("a", "b", "c"):
            getattr(checkpoint, name).assign(getattr(checkpoint, name).numpy() + 1.0)
        strategy.run(unmount)

        told = rf"host host-b does not see '{folder}/ckpt-2', although it saw .*; save again, and another host writes"
        with pytest.raises(UnavailableError, match=told) as caught:  # noqa: PT012 - in the background, `sync` raises
            manager.save(background=background)
            manager.sync()

        assert (caught.value.replica, caught.value.worker) == (blind, strategy.devices[blind].worker)
        assert manager.checkpoints == [first]
        assert sorted(folder.glob("*/*.safetensors")) == files
        second = str(manager.save(background=background))
        manager.sync()
        assert "through the notebook" not in newest(cluster)
        for path, expected in ((first, {1.0}), (second, {1.0, 2.0})):
            checkpoint.restore(path).assert_consumed()
            assert values(checkpoint) == expected
            assert on_replicas(strategy, checkpoint.a) == [3000.0 * max(expected)] * 2
