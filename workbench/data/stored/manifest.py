"""The manifest of a stored dataset: which files belong to it, and what they must contain."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from workbench.data.stored.layout import spec_json, spec_of_json
from workbench.errors import DataLossError, NotFoundError
from workbench.io.checksums import crc32c

NAME = "dataset.json"
_FORMAT = "workbench dataset"
_VERSION = 2
_PLAIN = re.compile(r"[0-9a-z][0-9a-z.-]*")


@dataclass(frozen=True)
class Shard:
    """One file of elements.

    Attributes:
      file: The file's name.
      blocks: How many blocks it has.
      elements: How many elements they hold.
      checksum: CRC-32C of all its blocks, so that one file cannot be taken for another.
    """

    file: str
    blocks: int
    elements: int
    checksum: int


@dataclass(frozen=True)
class Manifest:
    """What is stored.

    Attributes:
      folder: Name of the folder with the files.
      compression: The compression of their blocks.
      element_spec: The nested spec of an element.
      shards: The files, in order.
    """

    folder: str
    compression: str
    element_spec: Any
    shards: tuple[Shard, ...]

    def to_bytes(self) -> bytes:
        """The file: a line of JSON, and a line with its checksum."""
        body = json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "folder": self.folder,
                "compression": self.compression,
                "element_spec": spec_json(self.element_spec),
                "shards": [asdict(shard) for shard in self.shards],
            }
        ).encode()
        return body + b"\n%08x\n" % crc32c(body)


def read_manifest(path: str) -> Manifest:
    """The manifest in the folder `path`.

    Raises:
      NotFoundError: if there is none.
      DataLossError: if it is damaged, or of a later version.
    """
    file = os.path.join(path, NAME)
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(
            f"there is no stored dataset in {path!r}: {NAME} is missing; Dataset.save writes one, and only once it "
            "is complete"
        ) from error
    body, _, checksum = data.partition(b"\n")
    if checksum != b"%08x\n" % crc32c(body):
        raise DataLossError(
            f"{file!r}: the checksum at byte {len(body) + 1:,} is wrong or cut off; the file is damaged: save the "
            "dataset again",
            file=file,
            offset=len(body) + 1,
        )
    try:
        return _parsed(json.loads(body))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataLossError(f"{file!r} is not a manifest of a stored dataset: {error}", file=file) from error


def _parsed(value: Any) -> Manifest:
    if (value["format"], value["version"]) != (_FORMAT, _VERSION):
        raise ValueError(
            f"it is {value['format']!r} version {value['version']!r}, not {_FORMAT!r} {_VERSION}"
        )
    shards = tuple(
        Shard(_name(s["file"]), int(s["blocks"]), int(s["elements"]), int(s["checksum"]))
        for s in value["shards"]
    )
    return Manifest(_name(value["folder"]), value["compression"], spec_of_json(value["element_spec"]), shards)


def _name(text: str) -> str:
    if not _PLAIN.fullmatch(text):  # a manifest must not name files outside its folder
        raise ValueError(f"{text!r} is not a name of a file in the folder")
    return text
