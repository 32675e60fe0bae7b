"""Finds the image files of each class, in folders of this machine or behind URLs."""

from __future__ import annotations

import os
from typing import Final

from workbench.data.sources.remote import file_system, request
from workbench.data.sources.urls import Url, below, file_name
from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.io.storage import absolute

ENDINGS: Final = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def images_by_class(
    folder: str | os.PathLike[str], class_names: list[str] | None
) -> tuple[str, dict[str, list[str]]]:
    """The folder's full name, and the sorted images of each class, in the order of the labels.

    Args:
      folder: A folder that holds one for each class.
      class_names: Folders to read; None for all, sorted.

    Raises:
      NotFoundError: if the folder, or that of a class, does not exist or cannot be listed, or access is denied.
      InvalidArgumentError: if a link leads out of the folder, or a name is not that of a folder in it.
      UnavailableError: if a URL's server cannot be reached.
    """
    root = file_name(folder)
    if isinstance(root, Url):
        return root, _remote_images(root, class_names)
    root = absolute(root)
    names = _class_names(root) if class_names is None else class_names
    return root, {name: _images(root, name) for name in names}


def check_inside(root: str, path: str) -> None:
    """Rejects a link that leads out of a folder; behind URLs, there are none.

    Raises:
      InvalidArgumentError: if `path` is such a link.
    """
    if isinstance(root, Url):
        return
    real = os.path.realpath(path)
    if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
        raise InvalidArgumentError(
            f"{path!r} is a link out of {root!r}, to {real!r}; copy what it points to, or name the folder where that is"
        )


def _remote_images(root: Url, class_names: list[str] | None) -> dict[str, list[str]]:
    files, path = file_system(root)
    start = path.rstrip("/") + "/"
    try:
        names = request(root, files, "find", path)
    except NotFoundError:
        names = []
    if not names:
        raise NotFoundError(
            f"there are no files behind {root!r}, or its server lists no folders, as those of plain HTTP: check the "
            "URL, use a storage that lists them, such as s3://, or fetch the folder first"
        )
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        class_name, *inner = name.removeprefix(start).split("/")
        shown = inner and all(part and part[0] != "." for part in (class_name, *inner))
        if name.startswith(start) and shown and name.lower().endswith(ENDINGS):
            found.setdefault(class_name, []).append(below(root, name.removeprefix(start)))
    if class_names is None:
        return found
    for class_name in class_names:
        if class_name not in found:
            raise NotFoundError(f"there are no images for class {class_name!r} behind {root!r}")
    return {class_name: found[class_name] for class_name in class_names}


def _class_names(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
    except OSError as error:
        raise NotFoundError(f"cannot list the folder {root!r}: {error.strerror}") from None


def _images(root: str, class_name: str) -> list[str]:
    """The images of a class, sorted. Checks links."""
    folder = os.path.normpath(os.path.join(root, class_name))
    if os.path.dirname(folder) != root:
        raise InvalidArgumentError(
            f"class_names has {class_name!r}, which is not a name of a folder in {root!r}"
        )
    if not os.path.isdir(folder):
        raise NotFoundError(f"there is no folder {folder!r} for class {class_name!r}")
    check_inside(root, folder)
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        for name in folders:
            check_inside(root, os.path.join(place, name))
        paths = [
            os.path.join(place, name) for name in files if name[0] != "." and name.lower().endswith(ENDINGS)
        ]
        for path in paths:
            check_inside(root, path)
        found += [path for path in paths if os.path.isfile(path)]
    return sorted(found)
