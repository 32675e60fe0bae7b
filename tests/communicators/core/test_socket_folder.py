"""Folders of sockets: what is removed is provably what a killed process has left, and nothing else."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench.communicators.core.socket_folder import SocketFolder, sweep
from workbench.communicators.shm.handshake import Listener
from workbench.runtime.comm.unix_listener import UnixListener

OURS = "workbench-0123456789abcdef"


@pytest.fixture
def parent() -> Iterator[Path]:
    """A folder with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def refusing(path: Path) -> None:
    """A socket at which nobody listens any more."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def folder_with(parent: Path, name: str = OURS, mode: int = 0o700) -> Path:
    folder = parent / name
    folder.mkdir()
    folder.chmod(mode)
    return folder


def abandoned(parent: Path) -> Path:
    folder = folder_with(parent)
    refusing(folder / "s")
    return folder


def aged(folder: Path) -> Path:
    os.utime(folder, (1, 1))
    return folder


def test_a_socket_that_refuses_is_removed_with_its_folder(parent: Path) -> None:
    abandoned(parent)
    sweep(parent)
    assert not list(parent.iterdir())


def half_made(parent: Path) -> Path:
    folder = folder_with(parent)
    refusing(folder / "s.n")
    return folder


@pytest.mark.parametrize("make", [folder_with, half_made])
def test_half_made_folders_are_removed_once_they_are_old(parent: Path, make: Callable[[Path], Path]) -> None:
    folder = make(parent)
    sweep(parent)
    assert folder.exists()  # a process may be creating it right now
    aged(folder)
    sweep(parent)
    assert not folder.exists()


def a_file_of_the_same_name(parent: Path) -> None:
    (folder_with(parent) / "s").write_text("mine")


def a_folder_of_the_same_name(parent: Path) -> None:
    (folder_with(parent) / "s").mkdir()


def a_link_to_a_socket(parent: Path) -> None:
    refusing(parent / "elsewhere")
    (folder_with(parent) / "s").symlink_to(parent / "elsewhere")


def something_else_beside_it(parent: Path) -> None:
    (abandoned(parent) / "weights.npy").write_text("mine")


def an_old_folder_with_a_file(parent: Path) -> None:
    folder = folder_with(parent)
    (folder / "s.n").write_text("mine")
    aged(folder)


def another_mode(parent: Path) -> None:
    refusing(folder_with(parent, mode=0o750) / "s")


def another_user(parent: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give files away")
    os.chown(abandoned(parent), 12345, -1)


def another_name(parent: Path) -> None:
    for name in ("wb-results", "workbench-abc12345", "workbench-", OURS + "0", OURS.upper()):
        refusing(folder_with(parent, name) / "s")


def a_link_to_a_folder(parent: Path) -> None:
    refusing(folder_with(parent, "elsewhere") / "s")
    (parent / OURS).symlink_to(parent / "elsewhere", target_is_directory=True)


KEPT = [
    a_file_of_the_same_name,
    a_folder_of_the_same_name,
    a_link_to_a_socket,
    something_else_beside_it,
    an_old_folder_with_a_file,
    another_mode,
    another_user,
    another_name,
    a_link_to_a_folder,
]


@pytest.mark.parametrize("make", KEPT)
def test_everything_else_is_kept(parent: Path, make: Callable[[Path], None]) -> None:
    make(parent)
    before = sorted(parent.rglob("*"))
    sweep(parent)
    assert sorted(parent.rglob("*")) == before


def test_a_socket_that_is_in_use_is_kept_also_while_nobody_accepts(parent: Path) -> None:
    folder = SocketFolder(1, parent=parent)
    waiting = []
    for _ in range(4):  # more than may wait
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(folder.path)
    sweep(parent)
    assert Path(folder.path).exists()
    for sock in waiting:
        sock.close()
    folder.close()
    folder.close()
    assert not list(parent.iterdir())


def test_closing_keeps_what_somebody_else_has_put_there(parent: Path) -> None:
    folder = SocketFolder(1, parent=parent)
    other = Path(folder.path).with_name("notes.txt")
    other.write_text("mine")
    folder.close()
    assert other.read_text() == "mine"


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_folder_is_its_owners_alone_under_any_umask(parent: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = SocketFolder(1, parent=parent)
    finally:
        os.umask(before)
    path = Path(folder.path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folder.close()


def test_a_path_that_is_too_long_leaves_nothing_behind(parent: Path) -> None:
    deep = parent / ("d" * 120)
    deep.mkdir()
    with pytest.raises(OSError, match="too long"):
        SocketFolder(1, parent=deep)
    assert not list(deep.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from workbench.communicators.shm.handshake import Listener
listener = Listener()
print(listener.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_process_leaves_that_is_killed_while_it_meets_others_goes_with_the_next_listener() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60)
    folder = Path(done.stdout.strip()).parent
    assert folder.exists()

    meeting = Listener()
    UnixListener(lambda sock: sock.close(), thread_name="test").close()

    assert not folder.exists()
    assert Path(meeting.path).exists()  # this one is in use
    meeting.close()


def test_users_folders_whose_names_look_alike_stay() -> None:
    with tempfile.TemporaryDirectory(prefix="wb-", dir="/tmp") as folder:
        results = Path(folder)
        (results / "s").mkdir()
        (results / "weights.npy").write_text("mine")
        UnixListener(lambda sock: sock.close(), thread_name="test").close()
        assert (results / "weights.npy").read_text() == "mine"
        assert (results / "s").is_dir()
