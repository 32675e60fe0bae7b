"""Rows 31, 34, 38 and 48 for what datasets write and read: a writer dies, the disk is full, files are hostile."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset, NumpyDataset, TFRecordDataset
from workbench.data.service.dispatch.journal import Journal
from workbench.errors import DataCorruption, InvalidArgumentError, WorkbenchError
from workbench.io import TFRecordWriter
from workbench.io.checksums import crc32c

PREAMBLE = """
import os, resource, signal, sys
import workbench as wb
from workbench.data import Dataset
from workbench.errors import StorageFull
path, number = sys.argv[1], int(sys.argv[2])
def kill_at(element):
    if int(element) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return element
"""
SNAPSHOT = "Dataset.range(40_000).map(kill_at).snapshot(path, snapshot_name='mine')"
FULL = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
try:
    {write}
except StorageFull as error:
    print("StorageFull:", error)
"""


def run(code: str, path: Path, number: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PREAMBLE + code, str(path), str(number)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Row 31


@pytest.mark.parametrize("number", [0, 1, 1023, 1024, 20_000, 39_999])
def test_a_snapshot_completes_after_its_writer_was_killed(tmp_path: Path, number: int) -> None:
    killed = run(f"for element in {SNAPSHOT}: pass", tmp_path, number)
    assert killed.returncode == -signal.SIGKILL
    assert not list(tmp_path.glob("**/dataset.json")), "an unfinished snapshot counts for nothing"

    dataset = Dataset.range(3000).snapshot(tmp_path, snapshot_name="mine")
    assert [int(each) for each in dataset] == list(range(3000))
    assert len(list(tmp_path.glob("**/dataset.json"))) == 1
    again = Dataset.range(5).snapshot(tmp_path, snapshot_name="mine")
    assert [int(each) for each in again] == list(range(3000)), "what is complete is read"
    assert len(list(tmp_path.glob("mine/pass-*"))) == 1, "what the killed writer left is gone"


# Row 34

WRITES = {
    "save": "Dataset.range(100_000).save(path)",
    "snapshot": "list(Dataset.range(100_000).snapshot(path, snapshot_name='mine'))",
    "records": "wb.data.experimental.TFRecordWriter(path).write(Dataset.from_tensors(b'x' * 100).repeat(3000))",
    "cache": "list(Dataset.range(100_000).cache(path))",
    "position": "next(iterator := iter(Dataset.range(9))); iterator.save(path)",
}


@pytest.mark.parametrize(
    "number",
    [
        0,
        pytest.param(1, marks=pytest.mark.thorough),
        100,
        pytest.param(5000, marks=pytest.mark.thorough),
        50_000,
    ],
)
@pytest.mark.parametrize("kind", list(WRITES))
def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path: Path, kind: str, number: int) -> None:
    path = tmp_path / "data"
    match kind:
        case "save":
            Dataset.range(3).save(path)
        case "records":
            with TFRecordWriter(path) as writer:
                writer.write(b"former")
        case "position":
            path.write_bytes(b"former")
    before = below(tmp_path)
    done = run(FULL.format(write=WRITES[kind]), path, number)
    fits = kind == "position" and number >= 5000
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("" if fits else "StorageFull:"), done.stderr
    assert fits or str(path) in done.stdout
    match kind:
        case "save":
            assert [int(each) for each in Dataset.load(path)] == [0, 1, 2]
            assert below(tmp_path) == before, "nothing half written stays"
        case "snapshot":
            read = Dataset.range(4).snapshot(path, snapshot_name="mine")
            assert [int(each) for each in read] == [0, 1, 2, 3]
        case "cache":
            assert not list(tmp_path.glob("*/pass-*")), "nothing half written stays"
            assert [int(each) for each in Dataset.range(4).cache(str(path))] == [0, 1, 2, 3]
        case "records":
            assert list(TFRecordDataset(path)) == [b"former"]
            assert below(tmp_path) == before
        case "position":
            assert below(tmp_path) == before
            assert fits or path.read_bytes() == b"former"


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_record_file_on_a_full_disk_holds_what_was_flushed(tmp_path: Path, compression: str) -> None:
    write = (
        f"writer = wb.io.TFRecordWriter(path, {compression!r})\n"
        "    writer.write(b'flushed'); writer.flush()\n"
        "    for _ in range(1000): writer.write(os.urandom(1000)); writer.flush()"
    )
    done = run(FULL.format(write=write), tmp_path / "data", 10_000)
    assert done.stdout.startswith("StorageFull:"), done.stderr
    iterator = iter(TFRecordDataset(tmp_path / "data", compression))
    assert next(iterator) == b"flushed"
    with pytest.raises(DataCorruption, match=r"cut off|end too early"):
        list(iterator)


@pytest.mark.parametrize("number", [0, 1, 30, 5000])
def test_row_34_a_journal_on_a_full_disk_holds_what_was_acknowledged(tmp_path: Path, number: int) -> None:
    write = (
        "from workbench.data.service.dispatch.journal import Journal\n"
        "    journal = Journal(path)\n"
        "    for each in range(1000):\n"
        "        journal.append({'number': each})\n"
        "        print(each)"
    )
    done = run(FULL.format(write=write), tmp_path / "journal", number)
    *written, told = done.stdout.splitlines()
    assert told.startswith("StorageFull:"), done.stderr
    assert str(tmp_path / "journal") in told
    journal = Journal(str(tmp_path / "journal"))
    try:
        assert journal.entries == [{"number": int(each)} for each in written]
        journal.append({"number": -1})  # there is room again
    finally:
        journal.close()


# Rows 38 and 48


class Executed:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_pickles_in_data_are_never_loaded(tmp_path: Path) -> None:
    bomb, mark = tmp_path / "bomb", tmp_path / "executed"
    array = np.empty(3, object)
    array[:] = [Executed(mark)] * 3
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=array)
    bomb.write_bytes(pickle.dumps(Executed(mark)))
    for path in (tmp_path / "a.npy", tmp_path / "a.npz", bomb):
        with pytest.raises(WorkbenchError):
            list(NumpyDataset(path))
    with pytest.raises(DataCorruption):
        list(TFRecordDataset(bomb, strict=True))
    with pytest.raises(WorkbenchError):
        iter(Dataset.range(3)).restore(bomb)
    with pytest.raises(WorkbenchError):
        Dataset.load(bomb)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "..\\x"])
def test_names_in_an_archive_are_only_names(tmp_path: Path, name: str) -> None:
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    folder = tmp_path / "folder"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        archive.writestr(f"{name}.npy", stream.getvalue())
    before = below(tmp_path)
    try:
        (rows,) = [list(element.values()) for element in NumpyDataset(folder / "a.npz").batch(3)]
        assert rows[0].tolist() == [0, 1, 2]
    except WorkbenchError:
        pass
    assert below(tmp_path) == before


def test_an_archive_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", stream.getvalue() + bytes(1 << 20))
    with pytest.raises(WorkbenchError):
        list(NumpyDataset(tmp_path / "a.npz"))


@pytest.mark.parametrize("name", ["../victim", "/etc/passwd", "0.records\0", "a/../../victim", "link"])
def test_a_manifest_names_files_of_its_folder_only(tmp_path: Path, name: str) -> None:
    Dataset.range(3).save(tmp_path / "data")
    Dataset.range(9).save(tmp_path / "victim")
    file = tmp_path / "data" / "dataset.json"
    manifest = json.loads(file.read_bytes().splitlines()[0])
    for key in ("folder", "file"):
        changed = json.loads(json.dumps(manifest))
        if key == "folder":
            changed["folder"] = name
        else:
            changed["shards"][0]["file"] = name
        body = json.dumps(changed).encode()
        file.write_bytes(body + b"\n%08x\n" % crc32c(body))
        with pytest.raises(WorkbenchError) as told:
            list(Dataset.load(tmp_path / "data"))
        assert str(tmp_path / "data") in str(told.value)


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", ".", "..", "a\0b", ".hidden"])
def test_a_snapshot_has_a_name_and_no_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "snapshots"
    with pytest.raises(InvalidArgumentError, match="snapshot_name"):
        list(Dataset.range(3).snapshot(folder, snapshot_name=name))
    assert below(tmp_path) == []


@pytest.mark.parametrize("name", ["a\0b", ".."])
def test_names_that_cannot_be_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    for use in (
        lambda: TFRecordWriter(path),
        lambda: wb.data.experimental.TFRecordWriter(path).write(Dataset.from_tensors(b"a")),
        lambda: iter(Dataset.range(3)).save(path),
        lambda: iter(Dataset.range(3)).restore(path),
        lambda: list(TFRecordDataset(path)),
        lambda: list(NumpyDataset(path)),
    ):
        with pytest.raises(WorkbenchError) as told:
            use()
        assert repr(path) in str(told.value)
    assert below(tmp_path) == []
