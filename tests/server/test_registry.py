"""Rows 48 and 49: the folder in which clusters announce themselves is its owner's alone, and stale entries vanish."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from workbench.errors import NotFoundError
from workbench.runtime.deploy.registry import Entry, Registry, default_folder, new_id

ROOT = Path(__file__).parents[2]


def an_entry(**changes: object) -> Entry:
    entry = Entry(
        id=new_id(),
        kind="driver",
        name="train.py",
        pid=os.getpid(),
        machine=socket.gethostname(),
        started=1.0,
        socket="/tmp/nobody",
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


@contextmanager
def anyone_may(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_an_entry_is_listed_until_it_is_withdrawn(registry: Registry) -> None:
    older, newer = an_entry(started=1.0), an_entry(started=2.0)
    announced = [registry.announce(older), registry.announce(newer)]

    assert registry.entries() == (newer, older)
    assert registry.entry(older.id) == older

    for one in announced:
        one.withdraw()
    assert registry.entries() == ()
    assert os.listdir(registry.folder) == []


def test_files_are_their_owners_alone_whatever_the_umask(registry: Registry) -> None:
    with anyone_may(0):
        announced = registry.announce(an_entry())

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (registry.folder, *registry.folder.iterdir())]
    assert modes == [0o700, 0o600]
    announced.withdraw()


def test_the_entry_of_a_killed_process_vanishes(registry: Registry) -> None:
    script = (
        "import sys; from tests.server.test_registry import an_entry; "
        "from workbench.runtime.deploy.registry import Registry; from pathlib import Path; "
        "kept = Registry(Path(sys.argv[1])).announce(an_entry(id='0badcafe')); "
        "print('there', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(registry.folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        assert registry.entry("0badcafe").name == "train.py"

        process.send_signal(signal.SIGKILL)
        process.wait(30)

    assert registry.entries() == ()
    assert os.listdir(registry.folder) == []


@pytest.mark.parametrize(
    "id", ["..", "../x", "/etc/passwd", "0badcafe\0", "0BADCAFE", "0badcafe.json", "", "0badcaf", "é" * 8]
)
def test_what_is_no_id_names_no_file(registry: Registry, id: str) -> None:
    with pytest.raises(NotFoundError, match="no running cluster"):
        registry.entry(id)


def test_a_folder_that_others_can_use_is_refused(tmp_path: Path) -> None:
    open_folder = tmp_path / "clusters"
    open_folder.mkdir()
    open_folder.chmod(0o755)

    with pytest.raises(PermissionError, match="only you"):
        Registry(open_folder).announce(an_entry())
    assert Registry(open_folder).entries() == ()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir(mode=0o700)
    (tmp_path / "clusters").symlink_to(tmp_path / "victim")

    with pytest.raises(PermissionError, match="only you"):
        Registry(tmp_path / "clusters").announce(an_entry())
    assert os.listdir(tmp_path / "victim") == []


def test_links_pipes_and_files_that_others_could_write_are_not_read(registry: Registry) -> None:
    announced = registry.announce(an_entry())
    good = next(registry.folder.iterdir()).read_text(encoding="utf-8")
    outside = registry.folder.parent / "outside.json"
    outside.write_text(good, encoding="utf-8")
    (registry.folder / "aaaaaaaa.json").symlink_to(outside)
    os.mkfifo(registry.folder / "bbbbbbbb.json", 0o600)
    (registry.folder / "cccccccc.json").write_text(good, encoding="utf-8")
    (registry.folder / "cccccccc.json").chmod(0o644)

    assert [entry.id for entry in registry.entries()] == [json.loads(good)["id"]]
    assert outside.exists()
    announced.withdraw()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"id": "dddddddd"}', "x" * 100_000])
def test_a_file_that_is_no_entry_is_left_out(registry: Registry, text: str) -> None:
    registry.announce(an_entry()).withdraw()
    path = registry.folder / "dddddddd.json"
    with anyone_may(0o077):
        path.write_text(text, encoding="utf-8")

    assert registry.entries() == ()


@pytest.mark.parametrize(
    "change", [{"pid": "1"}, {"socket": ["/x"]}, {"connection": "no"}, {"id": "eeeeeeee"}]
)
def test_an_entry_with_wrong_types_or_another_files_id_is_left_out(
    registry: Registry, change: dict[str, object]
) -> None:
    announced = registry.announce(an_entry(id="ffffffff"))
    path = registry.folder / "ffffffff.json"
    path.write_text(json.dumps(asdict(an_entry(id="ffffffff")) | change), encoding="utf-8")

    assert registry.entries() == ()
    announced.withdraw()


def test_the_entry_of_another_machine_is_neither_shown_nor_removed(registry: Registry) -> None:
    registry.announce(an_entry()).withdraw()
    far = an_entry(machine="elsewhere")
    path = registry.folder / f"{far.id}.json"
    with anyone_may(0o077):
        path.write_text(json.dumps(asdict(far)), encoding="utf-8")

    assert registry.entries() == ()
    assert path.exists()


def test_an_entry_does_not_print_its_keys() -> None:
    assert "secret" not in repr(an_entry(connection={"key": "secret"}))


def test_the_folder_depends_on_nothing_that_a_job_and_a_server_see_differently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WORKBENCH_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/0")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    assert default_folder() == Path.home() / ".local/share/workbench/runtime/clusters"


def test_a_file_that_is_no_entry_stays(registry: Registry) -> None:
    registry.announce(an_entry()).withdraw()
    path = registry.folder / "deadbeef.json"
    with anyone_may(0o077):
        path.write_text('{"mine": true}', encoding="utf-8")

    assert registry.entries() == ()
    assert path.read_text(encoding="utf-8") == '{"mine": true}'
