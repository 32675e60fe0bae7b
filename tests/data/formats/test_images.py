"""Images in folders: arrays and labels, sizes, what is no image, links, images that fill the memory."""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import ImageFolderDataset, TensorSpec
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import (
    BackendUnavailable,
    DataCorruption,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
)

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")


def painted(path: Path, value: int, size: tuple[int, int] = (4, 3), mode: str = "RGB", **options: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.new(mode, size, (value, 0, 255) if mode == "RGB" else value).save(path, **options)
    return str(path)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    root = tmp_path / "pets"
    for value, name in enumerate(["dog/a.png", "cat/b.PNG", "cat/a.png", "cat/deep/c.png"]):
        painted(root / name, value)
    return root


def values(dataset: Any) -> list[tuple[int, int]]:
    return [(int(image[0, 0, 0]), int(label)) for image, label in dataset]


def test_images_are_arrays_with_the_number_of_their_folder(pets: Path) -> None:
    dataset = ImageFolderDataset(pets)
    assert dataset.class_names == ["cat", "dog"]
    assert dataset.element_spec == (TensorSpec((None, None, 3), np.uint8), TensorSpec((), np.int64))
    assert (dataset.cardinality(), values(dataset)) == (4, [(2, 0), (1, 0), (3, 0), (0, 1)])
    image, label = next(iter(dataset))
    assert (image.shape, image.dtype, label.dtype) == ((3, 4, 3), np.uint8, np.int64)
    assert image[0, 0].tolist() == [2, 0, 255]
    images, labels = next(iter(dataset.batch(4)))
    assert (images.shape, labels.tolist()) == ((4, 3, 4, 3), [0, 0, 0, 1])


def test_sizes_modes_and_classes_are_as_asked(pets: Path) -> None:
    painted(pets / "dog" / "wide.png", 9, (40, 20))
    for mode, channels in (("RGB", 3), ("RGBA", 4), ("L", 1)):
        dataset = ImageFolderDataset(pets, (6, 5), mode)
        assert dataset.element_spec[0] == TensorSpec((6, 5, channels), np.uint8)
        (batch, _) = next(iter(dataset.batch(5)))
        assert batch.shape == (5, 6, 5, channels)
    only = ImageFolderDataset(pets, class_names=["dog", "cat"])
    assert [label for _, label in values(only)] == [0, 0, 1, 1, 1]


def test_images_that_are_decoded_in_parallel_come_in_the_same_order(pets: Path) -> None:
    (pets / "cat" / "a.png").write_text("damaged")
    for parallel in (1, 3, wb.data.AUTOTUNE):
        dataset = ImageFolderDataset(pets, num_parallel_reads=parallel)
        assert dataset.class_names == ["cat", "dog"]
        with pytest.raises(DataLossError, match=r"a\.png'"):
            list(dataset)
        assert values(dataset.ignore_errors()) == [(1, 0), (3, 0), (0, 1)]
        parts = [values(auto_shard(dataset.ignore_errors(), 2, host).dataset) for host in (0, 1)]
        assert sorted(parts[0] + parts[1]) == [(0, 1), (1, 0), (3, 0)]


def test_names_are_shuffled_without_decoding(pets: Path) -> None:
    def orders(seed: int) -> list[list[tuple[int, int]]]:
        dataset = ImageFolderDataset(pets, shuffle=True, seed=seed)
        assert dataset.cardinality() == 4
        return [values(dataset) for _ in range(6)]

    first = orders(3)
    assert orders(3) == first
    assert len({tuple(order) for order in first}) > 1
    assert {tuple(sorted(order)) for order in first} == {((0, 1), (1, 0), (2, 0), (3, 0))}


@pytest.mark.parametrize("ending", ["bmp", "gif", "jpg", "png", "tiff", "webp"])
def test_every_format_is_read(tmp_path: Path, ending: str) -> None:
    painted(tmp_path / "c" / f"a.{ending}", 200)
    ((image, _),) = ImageFolderDataset(tmp_path)
    assert abs(int(image[1, 1, 0]) - 200) < 8


def test_a_photo_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    exif = PIL.Exif()
    exif[0x0112] = 6  # a quarter turn
    painted(tmp_path / "c" / "a.jpg", 100, (8, 4), exif=exif)
    ((image, _),) = ImageFolderDataset(tmp_path)
    assert image.shape == (8, 4, 3)


def test_what_is_no_image_costs_one_element_and_names_the_file(pets: Path) -> None:
    good = (pets / "cat" / "a.png").read_bytes()
    (pets / "cat" / "d.jpg").write_text("no image at all")
    (pets / "cat" / "e.png").write_bytes(good[: len(good) // 2])
    (pets / "cat" / "f.png").touch()
    (pets / "cat" / "notes.txt").write_text("passed over")
    (pets / "cat" / ".hidden.png").write_text("passed over")
    (pets / "cat" / "g.png").mkdir()
    iterator = iter(ImageFolderDataset(pets))
    found: list[Any] = []
    while True:
        try:
            found.append(int(next(iterator)[0][0, 0, 0]))
        except StopIteration:
            break
        except DataCorruption as error:
            found.append(str(error))
    names = [item if isinstance(item, int) else Path(item.split("'")[1]).name for item in found]
    assert names == [2, 1, "d.jpg", 3, "e.png", "f.png", 0]
    assert len(values(ImageFolderDataset(pets).ignore_errors())) == 4


def huge_png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [9_000, 10_000, 60_000])
def test_an_image_that_would_fill_the_memory_is_refused_before_it_is_decoded(
    tmp_path: Path, side: int
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "bomb.png").write_bytes(huge_png(side, side))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataLossError, match=r"bomb\.png'"):
            list(ImageFolderDataset(tmp_path, most_pixels=80_000_000))
    painted(tmp_path / "c" / "bomb.png", 1)
    with pytest.raises(DataLossError, match=r"has 4 x 3 pixels, more than most_pixels=11"):
        list(ImageFolderDataset(tmp_path, most_pixels=11))


def test_values_of_16_bits_are_refused_instead_of_cut(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    PIL.fromarray(np.full((2, 2), 4000, np.uint16)).save(tmp_path / "c" / "a.png")
    with pytest.raises(InvalidArgumentError, match="scale and save it with 8 bits"):
        list(ImageFolderDataset(tmp_path))


def test_links_out_of_the_folder_are_refused(pets: Path, tmp_path: Path) -> None:
    secret = painted(tmp_path / "secret.png", 7)
    (tmp_path / "pets-too").mkdir()
    for link, target in [
        (pets / "dog" / "link.png", secret),
        (pets / "bird", str(tmp_path / "pets-too")),
        (pets / "dog" / "more", str(tmp_path)),
    ]:
        os.symlink(target, link)
        with pytest.raises(InvalidArgumentError, match="is a link out of"):
            ImageFolderDataset(pets)
        link.unlink()
    (pets / "dog" / "same.png").symlink_to(pets / "cat" / "a.png")
    dataset = ImageFolderDataset(pets)
    assert values(dataset)[-1] == (2, 1)
    (pets / "dog" / "same.png").unlink()
    (pets / "dog" / "same.png").symlink_to(secret)  # after the folder was listed
    with pytest.raises(InvalidArgumentError, match="is a link out of"):
        list(dataset)
    for name in ("..", "../pets-too", "/etc", "cat/deep", ".", ""):
        with pytest.raises(InvalidArgumentError, match="which is not a name of a folder"):
            ImageFolderDataset(pets, class_names=[name])


def test_what_cannot_be_is_refused_when_the_dataset_is_made(pets: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="mode is 'CMYK'"):
        ImageFolderDataset(pets, mode="CMYK")
    with pytest.raises(InvalidArgumentError, match="give height and width"):
        ImageFolderDataset(pets, size=(0, 3))
    with pytest.raises(NotFoundError, match="cannot list the folder"):
        ImageFolderDataset(tmp_path / "missing")
    with pytest.raises(NotFoundError, match=r"no folder .*bird"):
        ImageFolderDataset(pets, class_names=["bird"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match="has no images"):
        ImageFolderDataset(tmp_path / "empty")


def test_without_pillow_the_error_says_what_to_install(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(BackendUnavailable, match=r"images need Pillow: pip install .*images"):
        ImageFolderDataset(pets)


def test_images_are_dealt_to_hosts_and_explained(pets: Path) -> None:
    for shuffle in (False, True):
        dataset = ImageFolderDataset(pets, shuffle=shuffle, seed=1)
        parts = [values(auto_shard(dataset, 2, host).dataset) for host in (0, 1)]
        assert [len(part) for part in parts] == [2, 2]
        assert sorted(parts[0] + parts[1]) == [(0, 1), (1, 0), (2, 0), (3, 0)]
        model = wb.explain_sharding(dataset.batch(2), wb.data.Shape(hosts=2))
        assert (model.policy, model.elements, model.duplicates) == ("AUTO→FILE", 4, 0)


def test_flipped_bytes_are_told_or_change_pixels_only(tmp_path: Path) -> None:
    for ending in ("png", "jpg", "gif", "webp"):
        path = Path(painted(tmp_path / ending / "c" / f"a.{ending}", 50))
        good = path.read_bytes()
        dataset = ImageFolderDataset(tmp_path / ending, most_pixels=1 << 20)
        for place in range(0, len(good), 3):
            path.write_bytes(good[:place] + bytes([good[place] ^ 0x29]) + good[place + 1 :])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    ((image, _),) = dataset
                except (DataLossError, InvalidArgumentError) as error:
                    told = str(error)
                else:
                    told, _ = f"a.{ending}", image.shape
            assert f"a.{ending}" in told
