"""Checkpoints on a store of objects: nothing can be renamed or locked there, and the manifest comes last."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load

import workbench as wb
from tests.checkpoint.conftest import Arm
from tests.data.sources.web_server import Web, forget_files, serving
from workbench.checkpoint.tensor_file import PIECE_BYTES
from workbench.data.sources import remote
from workbench.errors import (
    CheckpointInvalid,
    FailedPreconditionError,
    NotFoundError,
    StorageFull,
    UnavailableError,
)

pytest.importorskip("s3fs", reason="s3fs is not installed: pip install -e '.[remote]'")
PART_BYTES = 5 << 20  # the smallest parts that S3 accepts
SIZE = (PIECE_BYTES >> 3) + 1000  # more than is written at a time


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving() as web:
        yield web


@pytest.fixture(autouse=True)
def bucket(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty bucket."""
    monkeypatch.setattr(remote, "_PAUSE_SECONDS", 0.0)
    access = {"key": "test", "secret": "s", "client_kwargs": {"region_name": "x"}}
    more = {"endpoint_url": web.url, "default_block_size": PART_BYTES}
    monkeypatch.setitem(fsspec.config.conf, "s3", access | more)
    web.files.clear()
    web.uploads.clear()
    web.trouble.clear()
    web.requests.clear()
    web.buckets = {"bucket"}
    yield
    web.before = lambda method, path: None
    forget_files()


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    """Two replicas in this process, so that they reach the server and its fault points."""
    with wb.connect(replicas=2, processes=False, replace=True):
        yield wb.MirroredStrategy()


@pytest.fixture
def checkpoint(strategy: wb.MirroredStrategy) -> wb.Checkpoint:
    with strategy.scope():
        large = wb.Variable(np.zeros(SIZE), aggregation="MEAN")
        small = wb.Variable(np.zeros(3))
    return wb.Checkpoint(large=large, small=small, epoch=0)


def give(checkpoint: wb.Checkpoint, value: float) -> None:
    checkpoint.large.assign(np.full(SIZE, value))
    checkpoint.small.assign(np.full(3, value))
    checkpoint.epoch = value


def values(checkpoint: wb.Checkpoint) -> set[float]:
    return {*checkpoint.large.numpy(), *checkpoint.small.numpy(), checkpoint.epoch}


def puts(web: Web) -> list[str]:
    """What was put, in order, of requests that make an object appear."""
    return [
        path.partition("?")[0].rpartition("/")[2]
        for method, path in web.requests
        if (method == "PUT" and "partNumber" not in path) or (method == "POST" and "uploadId" in path)
    ]


def test_replicas_put_their_shards_in_parts_and_the_manifest_comes_last(
    web: Web, checkpoint: wb.Checkpoint
) -> None:
    give(checkpoint, 1.0)
    path = checkpoint.save("s3://bucket/run/x")
    assert path == "s3://bucket/run/x-1"
    assert puts(web)[0] == "lock"
    assert puts(web)[-1] == "checkpoint.json"
    assert sum(name.endswith(".safetensors") for name in puts(web)) == 2
    assert any("partNumber=2" in name for _, name in web.requests), "the large one comes in parts"
    names = [Path(name).name for name in web.files]
    assert "lock" not in names
    found = [load(content) for name, content in web.files.items() if name.endswith(".safetensors")]
    assert {name for file in found for name in file} == {"large", "small"}

    give(checkpoint, 9.0)
    checkpoint.restore(path).assert_consumed()
    assert values(checkpoint) == {1.0}


def test_a_checkpoint_is_replaced_as_a_whole(web: Web, checkpoint: wb.Checkpoint) -> None:
    path = "s3://bucket/run/x"
    for value in (1.0, 2.0):
        give(checkpoint, value)
        checkpoint.write(path)
        assert len(web.files) == 3, "two shards and the manifest"
    give(checkpoint, 9.0)
    checkpoint.restore(path)
    assert values(checkpoint) == {2.0}


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("checkpoint.write", 2),
        ("checkpoint.write", 4),
        ("checkpoint.shard_written", 1),
        ("checkpoint.manifest_written", 1),
    ],
)
def test_a_save_without_room_leaves_the_former_checkpoint_and_no_object(
    web: Web, checkpoint: wb.Checkpoint, arm: Arm, point: str, nth: int
) -> None:
    path = "s3://bucket/run/x"
    give(checkpoint, 1.0)
    checkpoint.write(path)
    before = dict(web.files)
    give(checkpoint, 2.0)
    arm({"point": point, "nth": nth, "action": "full"})
    with pytest.raises(StorageFull):
        checkpoint.write(path)
    arm()
    gc.collect()  # a file that was never closed must not be uploaded later
    assert web.files == before
    assert not web.uploads, "parts of an object that was given up"
    checkpoint.restore(path)
    assert values(checkpoint) == {1.0}


def test_a_server_that_refuses_is_named_without_secrets(web: Web, checkpoint: wb.Checkpoint) -> None:
    web.trouble["/bucket/run/x/lock"] = 403
    with pytest.raises(UnavailableError, match=r"cannot write to 's3://bucket/run/x'") as told:
        checkpoint.write("s3://bucket/run/x")
    assert "test" not in str(told.value)


def test_a_bucket_that_does_not_exist_is_not_made(web: Web, checkpoint: wb.Checkpoint) -> None:
    with pytest.raises(NotFoundError, match=r"'s3://bukket/run/x'.*Make the bucket first, or check its name"):
        checkpoint.write("s3://bukket/run/x")
    assert not web.files
    assert {method for method, path in web.requests if path.rstrip("/") == "/bukket"} <= {"HEAD", "GET"}


def test_a_manager_sweeps_old_checkpoints_and_what_a_killed_process_left(
    web: Web, checkpoint: wb.Checkpoint
) -> None:
    web.files["/bucket/run/ckpt-1/lock"] = b"0123456789abcdef"
    web.files["/bucket/run/ckpt-1/0123456789abcdef-0.safetensors"] = b"half of it"
    web.files["/bucket/run/notes/lock"] = b"mine"
    manager = wb.CheckpointManager(checkpoint, "s3://bucket/run", 2)
    assert manager.latest_checkpoint is None
    paths = []
    for value in (1.0, 2.0, 3.0):
        give(checkpoint, value)
        paths.append(manager.save())
    assert manager.checkpoints == paths[1:]
    assert manager.latest_checkpoint == wb.latest_checkpoint("s3://bucket/run") == "s3://bucket/run/ckpt-3"
    folders = {name.split("/")[3] for name in web.files}
    assert folders == {"ckpt-2", "ckpt-3", "notes"}

    give(checkpoint, 9.0)
    later = wb.CheckpointManager(checkpoint, "s3://bucket/run", 2)
    assert later.restore_or_initialize() == paths[-1]
    assert values(checkpoint) == {3.0}


def test_a_sweep_leaves_what_this_process_is_writing(web: Web, checkpoint: wb.Checkpoint) -> None:
    arrived, go = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> None:
        if method == "PUT" and path == "/bucket/run/ckpt-7/checkpoint.json":
            arrived.set()
            assert go.wait(60)

    web.before = hold
    give(checkpoint, 1.0)
    first = wb.CheckpointManager(checkpoint, "s3://bucket/run", 2)
    path = first.save(7, background=True)
    assert arrived.wait(60)
    other = wb.Checkpoint(epoch=5)
    with pytest.raises(FailedPreconditionError, match="somebody else is saving"):
        other.write(str(path))
    wb.CheckpointManager(other, "s3://bucket/run", 2).save(8)
    go.set()
    first.sync()
    give(checkpoint, 9.0)
    checkpoint.restore(str(path))
    assert values(checkpoint) == {1.0}


def test_a_damaged_or_missing_object_is_told_and_changes_nothing(web: Web, checkpoint: wb.Checkpoint) -> None:
    give(checkpoint, 1.0)
    path = checkpoint.save("s3://bucket/run/x")
    shards = sorted(
        (name for name in web.files if name.endswith(".safetensors")), key=lambda n: len(web.files[n])
    )
    give(checkpoint, 9.0)
    whole = web.files[shards[-1]]
    web.files[shards[-1]] = whole[:-1] + bytes([whole[-1] ^ 1])
    with pytest.raises(CheckpointInvalid, match=Path(shards[-1]).name):
        checkpoint.restore(path)
    del web.files[shards[-1]]
    with pytest.raises(CheckpointInvalid, match=Path(shards[-1]).name):
        checkpoint.restore(path)
    assert values(checkpoint) == {9.0}


def test_a_store_that_cannot_be_reached_is_no_damage(
    web: Web, checkpoint: wb.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint.save("s3://bucket/run/x")
    monkeypatch.setattr(remote, "REQUEST_SECONDS", 0.5)  # s3fs itself retries many times
    for name in list(web.files):
        if name.endswith(".safetensors"):
            web.trouble[name] = 503
    with pytest.raises(UnavailableError, match="cannot be read"):
        checkpoint.restore(path)
