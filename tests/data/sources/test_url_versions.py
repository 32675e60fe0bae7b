"""Files behind URLs that change: while they are read, and between the passes of what keeps elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.data.sources.web_server import Web, forget_files
from workbench.data import Dataset, FixedLengthRecordDataset, TextLineDataset
from workbench.data.sources.remote import version_of
from workbench.data.sources.urls import Url
from workbench.errors import DataLossError, NotFoundError, WorkbenchError

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install -e '.[remote]'")
pytest.importorskip("s3fs", reason="s3fs is not installed: pip install -e '.[remote]'")
pytestmark = pytest.mark.usefixtures("fresh")
EVERYWHERE = pytest.mark.parametrize("where", ["memory", "http", "s3"])
SERVED = pytest.mark.parametrize("where", ["http", "s3"])
RECORD = 1 << 20
COUNT = 10  # more than are fetched at a time


def put(web: Web, where: str, content: bytes) -> str:
    """Puts a file where a URL finds it, and gives the URL."""
    web.files["/bucket/a"] = content
    if where == "memory":
        fsspec.filesystem("memory").pipe_file("/bucket/a", content)
    return {"memory": "memory://bucket/a", "http": f"{web.url}/bucket/a", "s3": "s3://bucket/a"}[where]


@EVERYWHERE
def test_a_version_changes_with_the_content_only(web: Web, where: str) -> None:
    url = Url(put(web, where, b"1\n"))
    first = version_of(url)
    assert first == version_of(url) != ""
    put(web, where, b"2\n")
    forget_files()
    assert version_of(url) != first
    with pytest.raises(NotFoundError):
        version_of(Url(f"{url.target}x"))


@EVERYWHERE
@pytest.mark.parametrize("size", [COUNT, COUNT + 1, COUNT - 1])
def test_a_file_that_changes_between_two_ranges_is_told(web: Web, where: str, size: int) -> None:
    url = put(web, where, b"a" * COUNT * RECORD)
    records = iter(FixedLengthRecordDataset(url, RECORD))
    assert next(records) == b"a" * RECORD
    put(web, where, b"b" * size * RECORD)
    seen: list[bytes] = []
    with pytest.raises(DataLossError, match=rf"'{url}' has changed while it was read \(.*before, .* now\)"):
        seen.extend(iter(records))
    assert set(b"".join(seen)) <= {ord("a")}


@SERVED
@pytest.mark.parametrize("content", [b"1\n2\n3\n", b"1\n"])
def test_a_small_file_that_changes_its_size_before_it_is_fetched_is_told(
    web: Web, where: str, content: bytes
) -> None:
    url = put(web, where, b"1\n2\n")

    def change(method: str, path: str) -> None:
        if method == "GET" and path == "/bucket/a":
            web.files[path] = content

    web.before = change
    with pytest.raises(DataLossError, match="has changed while it was read"):
        list(TextLineDataset(url))


@SERVED
def test_a_file_that_stays_as_it_is_takes_one_look_more_per_range(web: Web, where: str) -> None:
    url = put(web, where, b"a" * COUNT * RECORD)
    web.requests.clear()
    assert len(list(FixedLengthRecordDataset(url, RECORD))) == COUNT
    methods = [method for method, path in web.requests if path.startswith("/bucket/a")]
    assert methods.count("GET") == 3
    assert methods.count("HEAD") <= 4


@EVERYWHERE
def test_a_snapshot_of_a_file_that_has_changed_is_written_anew(web: Web, where: str, tmp_path: Path) -> None:
    def lines() -> list[bytes]:
        return list(TextLineDataset(put_url).snapshot(tmp_path))

    put_url = put(web, where, b"1\n2\n")
    assert lines() == lines() == [b"1", b"2"]
    assert len(list(tmp_path.iterdir())) == 1
    put(web, where, b"3\n4\n")
    forget_files()
    assert lines() == [b"3", b"4"]
    named = TextLineDataset(put_url).snapshot(tmp_path, snapshot_name="mine")
    assert list(named) == [b"3", b"4"]
    web.files.clear()
    fsspec.filesystem("memory").store.clear()
    forget_files()
    again = TextLineDataset(put_url).snapshot(tmp_path, snapshot_name="mine")
    assert list(again) == [b"3", b"4"], "a snapshot with a name needs no server"


@EVERYWHERE
def test_a_position_in_a_file_that_has_changed_is_refused(web: Web, where: str, tmp_path: Path) -> None:
    def elements() -> Any:
        return iter(
            Dataset.from_tensor_slices([url]).flat_map(TextLineDataset).concatenate(TextLineDataset(url))
        )

    url = put(web, where, b"1\n2\n")
    iterator = elements()
    assert next(iterator) == b"1"
    iterator.save(tmp_path / "position")
    again = elements()
    again.restore(tmp_path / "position")
    assert next(again) == b"2"
    put(web, where, b"3\n4\n")
    forget_files()
    with pytest.raises(WorkbenchError):
        elements().restore(tmp_path / "position")
