"""Readers of folders, in which one file is damaged: images and Zarr."""

from __future__ import annotations

import io
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.fuzz.targets import Target, WrongData, elements, overwrite
from workbench.data import Dataset, ImageFolderDataset, ZarrDataset
from workbench.errors import DataLossError

_MOST_PIXELS = 10_000


class Images(Target):
    """Images in the folder of a class. Few formats have checksums, so what is compared is how images look."""

    name = "images"

    def good_inputs(self) -> list[bytes]:
        from PIL import Image

        (self.folder / "class").mkdir()
        self.path = self.folder / "class" / "image.png"  # the reader examines the content
        pixels = np.random.default_rng(7).integers(0, 256, (9, 14, 3), np.uint8)
        made = Image.fromarray(pixels)
        inputs = []
        for form, options in (
            ("PNG", {}), ("JPEG", {}), ("JPEG", {"progressive": True}), ("BMP", {}), ("GIF", {}), ("TIFF", {}),
            ("TIFF", {"compression": "tiff_lzw"}), ("TIFF", {"compression": "jpeg"}), ("WEBP", {}),
            ("WEBP", {"lossless": True}),
        ):  # fmt: skip
            exif = {"exif": _turned()} if form in ("JPEG", "PNG", "WEBP") else {}
            file = io.BytesIO()
            made.save(file, form, **options, **exif)
            inputs.append(file.getvalue())
        self.written(inputs[0])
        self.images = [self.read(data)[0] for data in inputs]
        return inputs

    def read(self, data: bytes) -> tuple[list[Any], bool]:
        """What is read, and whether that ended with an error."""
        self.written(data)
        return elements(ImageFolderDataset(self.folder, most_pixels=_MOST_PIXELS))

    def check(self, data: bytes) -> None:
        found, failed = self.read(data)
        if len(found) + failed != 1:
            raise WrongData(f"{len(found)} images of one file")
        if failed:
            raise DataLossError("refused")
        image, label = found[0]
        size = image.shape[0] * image.shape[1]
        if image.dtype != np.uint8 or image.shape[2:] != (3,) or not 0 < size <= _MOST_PIXELS or label != 0:
            raise WrongData(f"an image {image.dtype} {image.shape} with label {label}")
        for valid, ((known, _),) in zip(self.inputs, self.images, strict=True):
            if data == valid and not np.array_equal(image, known):
                raise WrongData("the same file gives another image")


def _turned() -> Any:
    """The orientation tag of a camera that was held upright."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


class _Store(Target):
    """A folder with many files. The first byte of an input selects the damaged one."""

    def good_inputs(self) -> list[bytes]:
        self.make(self.folder / "store")
        files = [path for path in sorted((self.folder / "store").rglob("*")) if path.is_file()]
        self.files = [(path, path.read_bytes()) for path in files]
        self.known = self.read()
        return [bytes([number]) + content for number, (_, content) in enumerate(self.files)]

    @abstractmethod
    def make(self, path: Path) -> None:
        """Writes the folder."""

    @abstractmethod
    def dataset(self, path: Path) -> Dataset:
        """The dataset of the folder."""

    def read(self) -> tuple[list[Any], bool]:
        """What was read, and whether that ended with an error."""
        return elements(self.dataset(self.folder / "store"))

    def check(self, data: bytes) -> None:
        path, good = self.files[data[0] % len(self.files) if data else 0]
        overwrite(path, data[1:])
        try:
            found, failed = self.read()
        finally:
            overwrite(path, good)
        if data[1:] == good and (failed or repr(found) != repr(self.known[0])):
            raise WrongData(f"{path.name}: what is undamaged is read in another way")
        for element in found:
            self.check_element(element)
        if failed:
            raise DataLossError("refused")

    @abstractmethod
    def check_element(self, element: Any) -> None:
        """Raises WrongData if the element is not valid."""


class Zarr(_Store):
    """Zarr 3: numbers with the usual codec, in shards, and text."""

    name = "zarr"
    zarr_format: ClassVar[int] = 3
    columns = ("x", "y", "t")

    def make(self, path: Path) -> None:
        import zarr

        group = zarr.open_group(path, mode="w", zarr_format=self.zarr_format)
        x = np.arange(48.0).reshape(16, 3)
        group.create_array("x", shape=x.shape, chunks=(8, 3), dtype=x.dtype, **self.options())[:] = x
        shards = {"shards": (16,)} if self.zarr_format == 3 else {}
        group.create_array("y", shape=(16,), chunks=(8,), dtype=np.int64, **shards)[:] = np.arange(16)
        text = group.create_array("t", shape=(16,), chunks=(16,), dtype=str)
        text[:] = np.array([f"text {n}" for n in range(16)], object)

    def options(self) -> dict[str, Any]:
        """How chunks of `x` are packed."""
        return {}

    def dataset(self, path: Path) -> Dataset:
        return ZarrDataset(str(path), columns=list(self.columns))

    def check_element(self, element: Any) -> None:
        """Any kind will do: what describes an array has no checksum, and may describe another one when damaged."""
        for name in self.columns:
            if not isinstance(element[name], np.ndarray | np.generic | bytes):
                raise WrongData(f"{name!r} is {type(element[name]).__name__}")


class OldZarr(Zarr):
    """Zarr 2, packed by Blosc."""

    name = "zarr-2"
    zarr_format = 2

    def options(self) -> dict[str, Any]:
        from numcodecs import Blosc

        return {"compressors": Blosc()}
