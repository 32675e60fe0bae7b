"""Files behind URLs: every reader, over memory, HTTP and S3; servers that fail; secrets that stay out of texts."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cloudpickle
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import workbench as wb
from tests.data.sources.web_server import SECRET, Web
from workbench.data import (
    ArrowDataset,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    NumpyDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
)
from workbench.data.sources import remote
from workbench.data.sources.urls import Url, file_name, shown, without_secrets
from workbench.errors import (
    BackendUnavailable,
    DataLossError,
    FileSizeMismatch,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from workbench.io import TFRecordWriter

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install -e '.[remote]'")
pytest.importorskip("s3fs", reason="s3fs is not installed: pip install -e '.[remote]'")

pytestmark = pytest.mark.usefixtures("fresh")
ROWS = 5000


def content_of(kind: str, folder: Path) -> bytes:
    path = folder / kind
    table = pa.table({"x": np.arange(ROWS)})
    match kind:
        case "text":
            path.write_bytes(b"".join(b"%d\n" % row for row in range(ROWS)))
        case "records":
            with TFRecordWriter(str(path)) as writer:
                for row in range(ROWS):
                    writer.write(b"%d" % row)
        case "fixed":
            path.write_bytes(np.arange(ROWS).tobytes())
        case "csv":
            path.write_bytes(b"x\n" + b"".join(b"%d\n" % row for row in range(ROWS)))
        case "parquet":
            pa.parquet.write_table(table, path, row_group_size=700)
        case "arrow":
            pyarrow.feather.write_feather(table, path, chunksize=700)
        case "npy":
            with path.open("wb") as file:
                np.save(file, np.arange(ROWS))
        case "npz":
            np.savez(path.with_suffix(".npz"), x=np.arange(ROWS))
            return path.with_suffix(".npz").read_bytes()
    return path.read_bytes()


READERS: dict[str, Callable[[Any], Dataset]] = {
    "text": lambda names: TextLineDataset(names).map(int),
    "records": lambda names: TFRecordDataset(names).map(int),
    "fixed": lambda names: FixedLengthRecordDataset(names, 8).map(lambda x: np.frombuffer(x, np.int64)[0]),
    "csv": lambda names: CsvDataset(names).map(lambda row: row["x"]),
    "parquet": lambda names: ParquetDataset(names).map(lambda row: row["x"]),
    "arrow": lambda names: ArrowDataset(names).map(lambda row: row["x"]),
    "npy": NumpyDataset,
    "npz": lambda names: NumpyDataset(names).map(lambda row: row["x"]),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "REQUEST_SECONDS", 5.0)


def put(web: Web, where: str, name: str, content: bytes) -> str:
    """Puts a file where a URL finds it, and gives the URL."""
    if where == "memory":
        with fsspec.open(f"memory://bucket/{name}", "wb") as file:
            file.write(content)
    web.files[f"/bucket/{name}"] = content
    return {"memory": "memory://bucket/", "http": f"{web.url}/bucket/", "s3": "s3://bucket/"}[where] + name


def numbers(dataset: Dataset) -> list[int]:
    return [int(x) for x in dataset]


@pytest.mark.parametrize("where", ["memory", "http", "s3"])
@pytest.mark.parametrize("kind", READERS)
def test_every_reader_reads_urls_and_deals_them_to_hosts(
    web: Web, tmp_path: Path, where: str, kind: str
) -> None:
    content = content_of(kind, tmp_path)
    urls = [put(web, where, f"{name}.{kind}", content) for name in "ab"]
    dataset = READERS[kind](urls)
    assert numbers(dataset) == [*range(ROWS), *range(ROWS)]
    parts = [numbers(wb.data.auto_shard(dataset, 2, host).dataset) for host in (0, 1)]
    assert sorted(parts[0] + parts[1]) == sorted([*range(ROWS), *range(ROWS)])
    assert numbers(
        pickle.loads(cloudpickle.dumps(READERS[kind](Dataset.from_tensor_slices(urls)))).take(3)
    ) == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_files_behind_urls_are_listed(web: Web, where: str) -> None:
    for name in ("b.txt", "a.txt", "c.csv", "deep/d.txt"):
        url = put(web, where, name, name.encode())
    root = url.removesuffix("deep/d.txt").replace("memory://", "memory:///")
    assert [name.decode() for name in Dataset.list_files(root + "*.txt", shuffle=False)] == [
        root + "a.txt",
        root + "b.txt",
    ]
    assert list(TextLineDataset(Dataset.list_files(root + "**/*.txt", shuffle=False)))[-1] == b"deep/d.txt"
    with pytest.raises(InvalidArgumentError, match="no file matches"):
        Dataset.list_files(root + "*.none")


def test_a_large_file_is_fetched_in_few_requests_and_compressed_files_are_read(web: Web) -> None:
    import gzip

    lines = b"".join(b"%d\n" % row for row in range(700_000))
    url = put(web, "http", "large", lines)
    assert sum(len(batch) for batch in TextLineDataset(url).batch(1024)) == 700_000
    assert sum(method == "GET" for method, _ in web.requests) == 2
    assert numbers(TextLineDataset(put(web, "http", "z", gzip.compress(b"1\n2\n")), "GZIP").map(int)) == [
        1,
        2,
    ]


def test_only_what_is_needed_of_a_parquet_file_is_fetched(web: Web) -> None:
    content = io.BytesIO()
    noise = np.random.default_rng(0).random((2, 2_000_000))
    pa.parquet.write_table(pa.table({"x": noise[0], "y": noise[1]}), content, row_group_size=500_000)
    url = put(web, "http", "a.parquet", content.getvalue())
    batches = [batch["x"] for batch in ParquetDataset(url, ["x"]).batch(100_000)]
    np.testing.assert_array_equal(np.concatenate(batches), noise[0])
    assert web.sent_bytes < 0.8 * len(content.getvalue())


def test_shards_explain_themselves_by_names_without_secrets(web: Web) -> None:
    urls = [put(web, "http", name, b"1\n2\n") + f"?X-Signature={SECRET}" for name in "ab"]
    model = wb.explain_sharding(TextLineDataset(urls).batch(2), wb.data.Shape(hosts=2))
    assert (model.policy, model.elements, model.duplicates) == ("AUTO→FILE", 4, 0)
    assert model.labels[(1 << 32) + 1] == "b:1"
    assert (
        SECRET not in repr(model) + str(model) + model.to_json() if hasattr(model, "to_json") else repr(model)
    )
    asked = [urlsplit(path) for _, path in web.requests]
    assert {part.query for part in asked if part.path in ("/bucket/a", "/bucket/b")} == {
        f"X-Signature={SECRET}"
    }


@pytest.mark.parametrize("where", ["memory", "http", "s3"])
@pytest.mark.parametrize("kind", READERS)
def test_a_url_that_has_vanished_is_told_with_its_name(web: Web, where: str, kind: str) -> None:
    url = put(web, where, "here", b"")[: -len("here")] + "gone"
    with pytest.raises(NotFoundError, match=f"no file '{url}'"):
        list(READERS[kind](url))


@pytest.mark.parametrize("status", [401, 403, 404, 410])
@pytest.mark.parametrize("where", ["http", "s3"])
def test_what_a_server_refuses_is_told_at_once(web: Web, where: str, status: int) -> None:
    url = put(web, where, "a", b"1\n")
    web.trouble["/bucket/a"] = status
    with pytest.raises(NotFoundError, match=rf"'{url}'") as caught:
        list(TextLineDataset(url))
    assert SECRET not in str(caught.value)
    assert len(web.requests) <= 4


@pytest.mark.parametrize("trouble", [500, 503, "cut"])
@pytest.mark.parametrize("where", ["http", "s3"])
def test_what_may_pass_is_tried_again(web: Web, where: str, trouble: Any) -> None:
    url = put(web, where, "a", b"1\n2\n" * 1000)
    web.trouble["/bucket/a"] = trouble
    web.healthy_after = 3 if trouble == "cut" else 2
    assert len(list(TextLineDataset(url))) == 2000


def test_a_server_that_always_stops_in_the_midst_is_told(web: Web) -> None:
    url = put(web, "http", "a", b"1\n2\n" * 1000)
    web.trouble["/bucket/a"] = "cut"
    with pytest.raises(UnavailableError, match=rf"'{url}' cannot be read, tried 3 times"):
        list(TextLineDataset(url))


def test_a_server_that_does_not_answer_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "REQUEST_SECONDS", 0.2)
    url = put(web, "http", "a", b"1\n")
    web.trouble["/bucket/a"] = "hang"
    with pytest.raises(
        UnavailableError, match=rf"'{url}' cannot be read, tried 3 times: no answer within 0.2 s"
    ):
        list(TextLineDataset(url))
    with pytest.raises(UnavailableError, match="no answer"):
        list(ParquetDataset(url))


def test_a_server_that_nobody_runs_is_told(web: Web) -> None:
    with pytest.raises(UnavailableError, match=r"'http://127.0.0.1:1/a' cannot be read, tried 3 times"):
        list(TextLineDataset("http://127.0.0.1:1/a"))


def test_servers_without_ranges_are_read_and_those_without_length_are_refused(web: Web) -> None:
    content = np.arange(1 << 20).tobytes()  # more than is fetched at a time
    url = put(web, "http", "a", content)
    web.trouble["/bucket/a"] = "no ranges"
    assert b"".join(FixedLengthRecordDataset(url, 1 << 16)) == content
    assert web.sent_bytes == len(content)
    web.trouble["/bucket/a"] = "no length"
    with pytest.raises(InvalidArgumentError, match="does not tell how long the file is"):
        list(FixedLengthRecordDataset(url, 16))


def test_damage_behind_urls_is_told_as_in_files(web: Web, tmp_path: Path) -> None:
    for kind in ("records", "parquet", "arrow", "npy", "npz", "fixed"):
        url = put(web, "memory", kind, content_of(kind, tmp_path)[:-3])
        error = FileSizeMismatch if kind == "fixed" else DataLossError
        with pytest.raises(error, match=url):
            list(READERS[kind](url))


def test_credentials_in_urls_are_refused_when_the_dataset_is_made(web: Web) -> None:
    for make in (TextLineDataset, CsvDataset, ParquetDataset, NumpyDataset, Dataset.list_files):
        with pytest.raises(
            InvalidArgumentError, match=r"'s3://bucket/a'.*put it where fsspec finds it"
        ) as caught:
            make(f"s3://key:{SECRET}@bucket/a")
        assert SECRET not in str(caught.value)
    names = Dataset.from_tensor_slices([f"s3://key:{SECRET}@bucket/a"])
    with pytest.raises(InvalidArgumentError, match="put it where fsspec finds it"):
        list(TextLineDataset(names))


def test_signatures_in_queries_are_used_and_never_shown(web: Web) -> None:
    url = put(web, "http", "a", b"1\n") + f"?X-Signature={SECRET}"
    assert list(TextLineDataset(url)) == [b"1"]
    web.trouble["/bucket/a"] = 403
    with pytest.raises(NotFoundError) as caught:
        list(TextLineDataset(url))
    chain, error = [], caught.value
    while error is not None:
        chain.append(repr(error) + str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert SECRET not in "".join(chain)
    name = file_name(url)
    assert SECRET not in f"{name} {name!r} {name!s}" + "".join([str(name)]) + repr(TextLineDataset(url))
    assert isinstance(name, Url)
    assert name.target == url
    assert pickle.loads(pickle.dumps(name)).target == url


def test_what_may_be_shown_of_a_url() -> None:
    assert shown(f"https://u:{SECRET}@h:1/p/a?q={SECRET}#f") == "https://h:1/p/a"
    assert shown("/a?b") == "/a?b"
    said = without_secrets(f"403 https://h/a?q={SECRET}, q={SECRET}", f"https://h/a?q={SECRET}")
    assert said == "403 https://h/a, ..."


def test_protocols_that_nobody_knows_and_missing_libraries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match="Protocol not known"):
        list(TextLineDataset("nothing://a"))
    monkeypatch.setattr(
        fsspec.core, "url_to_fs", lambda url: (_ for _ in ()).throw(ImportError("Please install gcsfs"))
    )
    with pytest.raises(BackendUnavailable, match=r"gs://b/a.*Please install gcsfs.*pip install .*remote"):
        list(TextLineDataset("gs://b/a"))


def test_folders_are_told(web: Web) -> None:
    put(web, "memory", "deep/a", b"1")
    with pytest.raises(NotFoundError, match=r"is a folder; name its files"):
        list(TextLineDataset("memory://bucket/deep"))
