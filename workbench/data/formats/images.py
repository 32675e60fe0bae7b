"""Images in folders, one folder for each class: pairs of an array and a label."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from workbench.arguments import flag
from workbench.data.dataset import Dataset
from workbench.data.formats.damage import any_damage_told
from workbench.data.formats.image_folders import ENDINGS, check_inside, images_by_class
from workbench.data.readers.files import read_files
from workbench.data.seeds import draw
from workbench.data.sources.files import FileReader
from workbench.data.sources.opening import opened
from workbench.data.spec import TensorSpec
from workbench.data.stages.ordering.shuffle import Shuffle
from workbench.data.structure import Array, Structure, flatten
from workbench.data.tables import ListTable, Run
from workbench.errors import DataLossError, InvalidArgumentError, LibraryMissing
from workbench.extras import install_command

_FORMATS: Final = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
_CHANNELS: Final = {"L": 1, "RGB": 3, "RGBA": 4}
_MOST_PIXELS: Final = 89_478_485
"""Pillow's own limit for warnings: 256 MiB of RGB."""


class ImageFolderDataset(Dataset):
    """Images below a folder that has one folder for each class, as pairs `(image, label)`.

    An image is uint8 of shape `(height, width, channels)`, rotated according to its EXIF orientation; a label is an
    int64 scalar, the number of the class in `class_names`. Images are BMP, GIF, JPEG, PNG, TIFF and WebP, recognized by
    their file extensions; other files are skipped, and so are names that begin with a dot. Animations yield their first
    image. An image that cannot be read raises once, and the next ones follow. `AutoShardPolicy.FILE` distributes images
    among hosts.

    Args:
      folder: A folder that holds one for each class; images may also lie deeper inside these. A path, or a URL of a
        storage that lists folders.
      size: Height and width to resize images to (bilinear); None keeps each image's size.
      mode: "RGB", "RGBA" or "L" (grey).
      class_names: Folders to read, in the order of their labels; None for all, sorted.
      shuffle: Whether each iteration has its own order; if not, images are sorted by class and name. Only names are
        shuffled, so this takes no memory.
      seed: Seed of that order.
      most_pixels: Images with more are rejected before they are decoded. Pillow's own limit,
        `PIL.Image.MAX_IMAGE_PIXELS`, also applies.
      num_parallel_reads: How many images threads decode at a time, in the same order; None for one.

    Attributes:
      class_names: Names of the classes, by label.

    Raises:
      LibraryMissing: if Pillow is missing.
      NotFoundError: if the folder, or that of a class, does not exist.
      InvalidArgumentError: if there are no images, a link leads out of the folder, or arguments are invalid. Reading
        raises `DataLossError` for files that are not images, damaged, truncated or too large.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        size: tuple[int, int] | None = None,
        mode: str = "RGB",
        *,
        class_names: Sequence[str] | None = None,
        shuffle: bool = False,
        seed: int | None = None,
        most_pixels: int = _MOST_PIXELS,
        num_parallel_reads: int | None = None,
    ) -> None:
        if mode not in _CHANNELS:
            raise InvalidArgumentError(f"ImageFolderDataset: mode is {mode!r}; use {', '.join(_CHANNELS)}")
        if size is not None and (len(size) != 2 or min(size) < 1):
            raise InvalidArgumentError(f"ImageFolderDataset: size is {size}; give height and width in pixels")
        shuffle = flag(shuffle, "ImageFolderDataset: shuffle")
        _pillow()
        root, found = images_by_class(folder, None if class_names is None else list(class_names))
        names = list(found)
        labels = {path: label for label, paths in enumerate(found.values()) for path in paths}
        if not labels:
            raise InvalidArgumentError(
                f"{root!r} has no images in the folders of its classes ({', '.join(names) or 'there are none'}); "
                f"images end in {', '.join(ENDINGS)}"
            )
        paths = Dataset.from_tensor_slices(list(labels))
        if shuffle:
            paths = paths.with_stage(Shuffle.of(len(labels), draw(seed), True))
        exact = None if size is None else (int(size[0]), int(size[1]))
        reader = Images(
            paths if shuffle else tuple(labels),
            labels=labels,
            decoding=Decoding(root, exact, mode, int(most_pixels)),
        )
        read_files(self, reader, num_parallel_reads)
        self.class_names = names


@dataclass(frozen=True, slots=True)
class Decoding:
    """How files become arrays.

    Attributes:
      root: The folder that no link may lead out of.
      size: Height and width to resize images to.
      mode: "RGB", "RGBA" or "L".
      most_pixels: Images with more are rejected.
    """

    root: str
    size: tuple[int, int] | None
    mode: str
    most_pixels: int

    @property
    def spec(self) -> TensorSpec:
        """The spec of an image."""
        return TensorSpec((*(self.size or (None, None)), _CHANNELS[self.mode]), np.uint8)

    def read(self, path: str) -> Array:
        """The image in a file, `(height, width, channels)`.

        Raises:
          DataLossError: if it is not an image, damaged, truncated or too large.
          InvalidArgumentError: if the file is a link out of the folder, or does not have 8 bits per channel.
          NotFoundError: if there is no such file.
        """
        check_inside(self.root, path)
        damage = any_damage_told(path, "it is not an image, damaged or cut off")
        with opened(path) as file, damage, _pillow().open(file, formats=_FORMATS) as image:
            width, height = image.size
            if width * height > self.most_pixels:
                raise DataLossError(
                    f"{path!r} has {width:,} x {height:,} pixels, more than most_pixels={self.most_pixels:,}: it may "
                    "be made to fill the memory",
                    file=path,
                )
            if image.mode.startswith(("I", "F")):
                raise InvalidArgumentError(
                    f"{path!r} has values of {image.mode}, which 8 bits do not hold; scale and save it with 8 bits"
                )
            return self._array(image)

    def _array(self, image: Any) -> Array:
        from PIL import ImageOps

        turned = ImageOps.exif_transpose(image).convert(self.mode)
        if self.size is not None:
            height, width = self.size
            turned = turned.resize((width, height), _pillow().Resampling.BILINEAR)
        return np.asarray(turned, np.uint8).reshape(turned.height, turned.width, _CHANNELS[self.mode])


@dataclass(frozen=True, eq=False, kw_only=True)
class Images(FileReader):
    """Images from files, with their labels.

    Attributes:
      labels: Labels by path.
      decoding: How files become arrays.
    """

    name: ClassVar[str] = "images"
    labels: Mapping[str, int]
    decoding: Decoding

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.decoding.spec, TensorSpec((), np.int64)

    def cardinality(self) -> int:
        """Number of images."""
        return len(self.files) if isinstance(self.files, tuple) else self.files.cardinality()

    def read(self, path: str) -> Iterator[Run]:
        """The image in a file, and its label."""
        leaves = [self.decoding.read(path), np.int64(self.labels[path])]
        yield Run(ListTable([leaves], _PAIR, [np.zeros(1, np.int64)]), range(1))


_PAIR: Final[Structure] = flatten((np.int64(0), np.int64(0)))[1]


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise LibraryMissing(f"images need Pillow: {install_command('images')}") from error
    return Image
