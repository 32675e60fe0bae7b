"""What a server has answered is in its journal; what it was writing when it was killed is not."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.distribute.servers import disk_space, journal
from workbench.distribute.servers.journal import Journal, folder_for, sweep
from workbench.distribute.servers.server import VariableServer
from workbench.errors import StorageFull
from workbench.runtime.services.frames import Received, receive, send
from workbench.runtime.services.service import Superseded

_CHANGES = [({"number": n}, [np.full((2, 3), n, "float32"), np.arange(n)]) for n in range(3)]


def _read(found: Journal) -> list[Any]:
    return [(fields["number"], [array.tolist() for array in arrays]) for fields, arrays in found.changes()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a journal is."""
    return tmp_path / "journal"


def _written(folder: Path) -> Journal:
    made = Journal(folder)
    for change in _CHANGES:
        made.append(change)
    return made


def test_changes_are_read_as_they_were_written(folder: Path) -> None:
    made = _written(folder)

    assert _read(made) == [(n, [np.full((2, 3), n).tolist(), list(range(n))]) for n in range(3)]
    made.remove()
    assert not folder.exists()


def test_only_its_owner_can_enter(folder: Path) -> None:
    made = _written(folder)

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "changes").stat().st_mode & 0o777 == 0o600
    made.remove()


def test_a_change_that_was_written_in_part_is_cut_off_wherever_the_server_was_killed(folder: Path) -> None:
    made = _written(folder)
    file = folder / "changes"
    whole = file.read_bytes()
    ends = [0]
    for change in _CHANGES:
        ends.append(ends[-1] + sum(map(len, journal.pack(*change))))

    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        again = Journal(folder)
        complete = max(n for n, end in enumerate(ends) if end <= size)

        assert [number for number, _ in _read(again)] == list(range(complete))
        again.append(_CHANGES[2])
        assert [number for number, _ in _read(again)] == [*range(complete), 2]
        os.close(again._descriptor)
    made.remove()


def test_a_journal_that_begins_anew_holds_what_it_was_given(folder: Path) -> None:
    made = _written(folder)

    made.begin_anew(_CHANGES[:1])
    made.append(_CHANGES[2])

    assert [number for number, _ in _read(made)] == [0, 2]
    assert sorted(os.listdir(folder)) == ["changes"]
    made.remove()


def test_a_server_begins_its_journal_anew_before_that_is_much_larger_than_the_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_LEAST_BYTES", 4096)
    former = VariableServer(folder)
    former.answer({"method": "create", "key": "w@1"}, [np.zeros(1000)])
    origin = {"stream": "s", "call": 0, "open": 0}
    sizes = []
    for index in range(50):
        fields = {"method": "update", "key": "w@1", "how": "assign_add", **origin, "index": index}
        assert former.answer(fields, [np.ones(1000)])[0]["applied"]
        sizes.append((folder / "changes").stat().st_size)

    assert 30_000 < max(sizes) < 45_000  # 8,000 bytes that it holds, and those of each update
    taker = VariableServer(folder)
    assert taker.answer({"method": "read", "key": "w@1"}, [])[1][0].tolist() == [50] * 1000
    assert not taker.answer({**fields, "index": 49}, [np.ones(1000)])[0]["applied"]
    for server in (former, taker):
        server.close()


def _arrived(fields: Any, arrays: list[Any]) -> Any:
    """The request as a server receives it."""
    client, server = socket.socketpair()
    with client, server:
        thread = threading.Thread(target=send, args=(client, fields, arrays))
        thread.start()
        try:
            return receive(server)
        finally:
            thread.join(20)


@pytest.mark.parametrize("size", [3, 100_000])  # received in one piece, and in two
def test_what_arrived_is_written_as_it_came_and_read_by_the_next_server(folder: Path, size: int) -> None:
    former = VariableServer(folder)
    update = {"method": "update", "key": "w@1", "how": "assign_add", "stream": "s", "call": 0, "open": 0}
    requests = [({"method": "create", "key": "w@1"}, [np.arange(float(size))])]
    requests += [({**update, "index": index}, [np.ones(size)]) for index in range(2)]
    pieces = []
    for request in requests:
        fields, arrays = _arrived(*request)
        assert isinstance(fields, Received)
        assert former.answer(fields, arrays)[0]["applied"]
        pieces += fields.pieces

    assert (folder / "changes").read_bytes().endswith(b"".join(pieces))
    taker = VariableServer(folder)
    fields, arrays = _arrived({"method": "read", "key": "w@1"}, [])
    np.testing.assert_array_equal(taker.answer(fields, arrays)[1][0], np.arange(2.0, size + 2))
    fields, arrays = _arrived(*requests[-1])
    assert not taker.answer(fields, arrays)[0]["applied"]
    for server in (former, taker):
        server.close()


def _taken_over(folder: Path) -> tuple[Journal, list[int]]:
    taker, numbers = Journal(folder), list[int]()
    kept = list[Any]()

    def replay(fields: Any, arrays: Any) -> None:
        numbers.append(fields["number"])
        kept.append((fields, arrays))

    taker.take_over(replay, lambda: kept)
    return taker, numbers


def test_one_that_takes_over_has_all_changes_and_the_former_one_writes_none(folder: Path) -> None:
    former = _written(folder)

    taker, numbers = _taken_over(folder)

    assert numbers == [0, 1, 2]
    assert (former.superseded, taker.superseded) == (True, False)
    for write in (lambda: former.append(_CHANGES[0]), lambda: former.begin_anew([])):
        with pytest.raises(Superseded):
            write()
    former.remove()
    taker.append(_CHANGES[1])
    assert [number for number, _ in _read(taker)] == [0, 1, 2, 1]
    taker.remove()
    assert not folder.exists()


def test_whoever_takes_over_waits_for_a_change_that_is_being_written(folder: Path) -> None:
    former = _written(folder)
    fcntl.flock(former._descriptor, fcntl.LOCK_EX)  # it is about to write
    taken: list[Any] = []
    thread = threading.Thread(target=lambda: taken.append(_taken_over(folder)))
    thread.start()
    try:
        former.append(_CHANGES[0])  # releases the lock
        thread.join(20)
        taker, numbers = taken[0]
        assert numbers == [0, 1, 2, 0]
    finally:
        thread.join(20)
    former.remove()
    taker.remove()


def test_one_whose_folder_was_removed_was_not_taken_over_and_goes_on(folder: Path) -> None:
    made = _written(folder)

    shutil.rmtree(folder)

    assert not made.superseded
    made.append(_CHANGES[0])
    made.begin_anew(_CHANGES[:2])
    assert [number for number, _ in _read(made)] == [0, 1]
    taker, numbers = _taken_over(folder)
    assert numbers == [0, 1]
    assert made.superseded
    made.remove()
    taker.remove()


def test_a_full_disk_leaves_the_journal_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _written(folder)
    before = (folder / "changes").read_bytes()

    def full(descriptor: int, change: Any) -> int:
        os.write(descriptor, b"some of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal, "_write", full)
    with pytest.raises(StorageFull, match="not applied"):
        made.append(_CHANGES[1])
    assert (folder / "changes").read_bytes() == before
    made.remove()


def _blocks_bytes(file: Path) -> int:
    return 512 * file.stat().st_blocks


def test_space_is_reserved_ahead_of_the_end_and_given_back(folder: Path) -> None:
    made = _written(folder)
    file, nbytes = folder / "changes", made.nbytes
    with open(file, "rb+") as opened:
        if not disk_space.reserve(opened.fileno(), 0, 4096):
            pytest.skip("this file system cannot reserve space")

    assert file.stat().st_size == nbytes
    assert _blocks_bytes(file) >= 1024 * 1024
    _read(made)  # truncates the file behind its last change
    assert (file.stat().st_size, _blocks_bytes(file) < 1024 * 1024) == (nbytes, True)
    made.remove()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EOPNOTSUPP])
def test_where_no_space_can_be_reserved_changes_are_written_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    asked: list[int] = []

    def refused(*args: int) -> int:
        asked.append(ctypes.set_errno(error))
        return -1

    monkeypatch.setattr(disk_space, "_fallocate", lambda: refused)
    made = _written(folder)
    made.begin_anew(_CHANGES[:2])
    for _ in range(20):
        made.append(_CHANGES[2])

    assert [number for number, _ in _read(made)] == [0, 1, *[2] * 20]
    assert len(asked) == 2  # once for each file
    made.remove()


def test_where_there_is_no_call_for_it_nothing_is_reserved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_space, "_fallocate", lambda: None)
    made = _written(folder)

    assert [number for number, _ in _read(made)] == [0, 1, 2]
    assert _blocks_bytes(folder / "changes") < 1024 * 1024
    made.remove()


def test_journals_of_killed_processes_are_removed_after_an_hour(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        ended = process.pid
    long_ago = time.time() - 7200
    for token, process, age in (
        ("old", ended, long_ago),
        ("torn", "", long_ago),
        ("torn-now", "", time.time()),
        ("new", ended, time.time()),
        ("used", os.getpid(), long_ago),
    ):
        folder = folder_for(str(tmp_path), token)
        folder.mkdir()
        (folder / "changes").touch()
        (folder / "process").write_text(str(process))
        os.utime(folder / "changes", (age, age))

    sweep(str(tmp_path))

    assert sorted(os.listdir(tmp_path)) == [
        "workbench-server-new",
        "workbench-server-torn-now",
        "workbench-server-used",
    ]
