"""Zarr stores and folders of images behind URLs: over memory, HTTP and S3."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import workbench as wb
from tests.data.sources.web_server import Web, forget_files
from workbench.data import ImageFolderDataset, ZarrDataset
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError, UnavailableError

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install -e '.[remote]'")
pytest.importorskip("s3fs", reason="s3fs is not installed: pip install -e '.[remote]'")
zarr = pytest.importorskip("zarr", reason="Zarr is not installed: pip install -e '.[zarr]'")
PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")
pytestmark = pytest.mark.usefixtures("fresh")
EVERYWHERE = pytest.mark.parametrize("where", ["memory", "http", "s3"])


@pytest.fixture(scope="module", autouse=True)
def zarr_ends(web: Web) -> Iterator[None]:
    """Its threads would talk to the server for longer."""
    yield
    zarr.core.sync.cleanup_resources()


def url_of(web: Web, where: str, name: str) -> str:
    root = {"memory": "memory://bucket/", "http": f"{web.url}/bucket/", "s3": "s3://bucket/"}[where]
    return root + name


def put(web: Web, where: str, folder: Path) -> str:
    """Puts a folder where a URL finds it, and gives the URL."""
    for path in folder.rglob("*"):
        if path.is_file():
            name = path.relative_to(folder.parent).as_posix()
            web.files[f"/bucket/{name}"] = path.read_bytes()
            if where == "memory":
                fsspec.filesystem("memory").pipe_file(f"/bucket/{name}", path.read_bytes())
    return url_of(web, where, folder.name)


def store(folder: Path, zarr_format: int = 3, *, consolidated: bool = False) -> Path:
    """A group of an array in chunks, one in shards where the format has them, and one in a group of its own."""
    group = zarr.open_group(folder, mode="w", zarr_format=zarr_format)
    for name, options in (("x", {}), ("y", {"shards": (4,)} if zarr_format == 3 else {}), ("in/z", {})):
        array = group.create_array(name, shape=(10,), chunks=(2,), dtype="i8", **options)
        array[:] = np.arange(10) + 100 * len(name)
    if consolidated:
        zarr.consolidate_metadata(folder, zarr_format=zarr_format)
    return folder


@EVERYWHERE
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_zarr_behind_urls_is_read_and_dealt_to_hosts(
    web: Web, tmp_path: Path, where: str, zarr_format: int
) -> None:
    url = put(web, where, store(tmp_path / "g", zarr_format))
    rows = list(ZarrDataset(url, columns=["y", "in/z"]))
    assert [(int(row["y"]), int(row["in/z"])) for row in rows] == [(100 + n, 400 + n) for n in range(10)]
    parts = [list(wb.data.auto_shard(ZarrDataset(f"{url}/y"), 2, host).dataset) for host in (0, 1)]
    assert sorted(int(x) for part in parts for x in part) == list(range(100, 110))
    assert all(parts)


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_groups_of_zarr_are_listed_where_servers_list(web: Web, tmp_path: Path, where: str) -> None:
    url = put(web, where, store(tmp_path / "g"))
    assert [(int(row["x"]), int(row["y"])) for row in ZarrDataset(url)][-1] == (109, 109)
    with pytest.raises(InvalidArgumentError, match=r"no array 'nothing'; its arrays are"):
        list(ZarrDataset(url, columns=["nothing"]))


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_groups_of_zarr_over_http_say_what_helps_and_consolidated_ones_are_read(
    web: Web, tmp_path: Path
) -> None:
    url = put(web, "http", store(tmp_path / "g"))
    with pytest.raises(InvalidArgumentError, match=r"lists no folders; name its arrays with columns="):
        list(ZarrDataset(url))
    with pytest.raises(InvalidArgumentError, match=r"no array 'nothing'$"):
        list(ZarrDataset(url, columns=["nothing"]))
    url = put(web, "http", store(tmp_path / "all", consolidated=True))
    assert [int(row["x"]) for row in ZarrDataset(url)] == list(range(100, 110))


@EVERYWHERE
def test_what_is_wrong_with_zarr_behind_urls_is_told_with_its_name(
    web: Web, tmp_path: Path, where: str
) -> None:
    url = put(web, where, store(tmp_path / "g"))
    with pytest.raises(NotFoundError, match=f"'{url}/none' holds no array or group of Zarr"):
        list(ZarrDataset(f"{url}/none"))
    place, content = next((n, c) for n, c in web.files.items() if n.startswith("/bucket/g/y/c/"))
    web.files[place] = content[:-5]
    fsspec.filesystem("memory").pipe_file(place, content[:-5])
    forget_files()
    with pytest.raises(DataLossError, match=f"'{url}"):
        list(ZarrDataset(url, columns=["y"]))


@pytest.mark.parametrize("where", ["http", "s3"])
def test_servers_that_refuse_or_fail_do_not_look_like_empty_zarr(
    web: Web, tmp_path: Path, where: str
) -> None:
    url = put(web, where, store(tmp_path / "g"))
    place = next(name for name in web.files if name.startswith("/bucket/g/x/c/"))
    for status, error in ((403, NotFoundError), (500, UnavailableError)):
        web.trouble[place] = status
        with pytest.raises(error, match=place.removeprefix("/bucket/g")):
            list(ZarrDataset(url, columns=["x"]))


def picture(value: int) -> bytes:
    content = io.BytesIO()
    PIL.new("L", (2, 2), value).save(content, "png")
    return content.getvalue()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    for value, name in enumerate(["dog/a.png", "cat/b.PNG", "cat/a.png", "cat/deep/c.png", "cat/.x/d.png"]):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(value))
    (tmp_path / "pets" / "cat" / "notes.txt").write_text("no image")
    return tmp_path / "pets"


def seen(dataset: Any) -> list[tuple[int, int]]:
    return [(int(image[0, 0, 0]), int(label)) for image, label in dataset]


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_images_behind_urls_are_read_as_those_of_a_folder(web: Web, pets: Path, where: str) -> None:
    url = put(web, where, pets)
    dataset = ImageFolderDataset(url, mode="L")
    assert (dataset.class_names, dataset.cardinality()) == (["cat", "dog"], 4)
    assert seen(dataset) == seen(ImageFolderDataset(pets, mode="L")) == [(2, 0), (1, 0), (3, 0), (0, 1)]
    assert seen(ImageFolderDataset(url, mode="L", class_names=["dog", "cat"]))[0] == (0, 0)
    assert sorted(seen(ImageFolderDataset(url, mode="L", shuffle=True, seed=1))) == sorted(seen(dataset))
    parts = [seen(wb.data.auto_shard(dataset, 2, host).dataset) for host in (0, 1)]
    assert [len(part) for part in parts] == [2, 2]
    assert wb.explain_sharding(dataset.batch(2), wb.data.Shape(hosts=2)).elements == 4


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_what_is_wrong_with_images_behind_urls_is_told(web: Web, pets: Path, where: str) -> None:
    (pets / "cat" / "a.png").write_bytes(picture(1)[:40])
    url = put(web, where, pets)
    with pytest.raises(NotFoundError, match=r"no images for class 'bird' behind"):
        ImageFolderDataset(url, class_names=["bird"])
    with pytest.raises(NotFoundError, match=f"no files behind '{url}/none'"):
        ImageFolderDataset(f"{url}/none")
    with pytest.raises(DataLossError, match=f"'{url}/cat/a.png'"):
        list(ImageFolderDataset(url))


def test_images_over_http_say_that_the_server_lists_nothing(web: Web, pets: Path) -> None:
    with pytest.raises(NotFoundError, match="lists no folders, as those of plain HTTP"):
        ImageFolderDataset(put(web, "http", pets))
