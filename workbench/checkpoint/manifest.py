"""The manifest of a checkpoint: which files belong to it, which arrays are in them, and all that is not an array."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from workbench.checkpoint.folder import Folder
from workbench.checkpoint.tensor_file import StoredArray
from workbench.data.stored.position import Position
from workbench.errors import CheckpointInvalid
from workbench.io.checksums import crc32c

NAME: Final = "checkpoint.json"
_FORMAT: Final = "workbench checkpoint"
_VERSION: Final = 1
SHARD: Final = re.compile(r"[0-9a-f]{16}-[0-9]{1,6}\.safetensors")
OURS: Final = re.compile(rf"{SHARD.pattern}|lock|preserved|{re.escape(NAME)}(\.[0-9a-f]{{16}})?")
"""The files that a checkpoint may leave in its folder; others belong to somebody else."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file with arrays.

    Attributes:
      name: Its name in the folder.
      bytes: Its length.
      header_bytes: The length of what comes before the arrays.
      header_checksum: CRC-32C of that.
    """

    name: str
    bytes: int
    header_bytes: int
    header_checksum: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an array, which one file has; mostly all of it.

    Attributes:
      shard: Number of the file.
      start: Where it begins in the array, by dimension.
      shape: Its shape.
      stored: Where it is in the file.
    """

    shard: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    stored: StoredArray


@dataclass(frozen=True, slots=True)
class SavedArray:
    """An array of the checkpoint.

    Attributes:
      kind: "variable" or "array", or "components" of a variable whose replicas have no common value.
      dtype: Name of its dtype.
      shape: Its shape; of components with the replicas as the first dimension.
      parts: What it is put together of.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A checkpoint.

    Attributes:
      id: Tells it from every other one; its files begin with it.
      saved_ns: When, in nanoseconds since 1970; later than any that was there before.
      save_counter: How often the program had saved, this time included.
      shards: The files.
      arrays: By path in the state.
      values: What JSON can hold, by path.
      positions: The positions of iterators over datasets, by path.
      period_began_ns: From when its manager counted the hours until a checkpoint stays; 0 where no manager counts.
    """

    id: str
    saved_ns: int
    save_counter: int
    shards: tuple[Shard, ...]
    arrays: dict[str, SavedArray]
    values: dict[str, Any]
    positions: dict[str, Position]
    period_began_ns: int = 0

    def to_bytes(self) -> bytes:
        """The file: a line of JSON, and a line with its checksum."""
        body = json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(self)}).encode()
        return body + b"\n%08x\n" % crc32c(body)


def read_manifest(folder: Folder) -> Manifest:
    """The manifest in a folder.

    Raises:
      NotFoundError: if there is none.
      CheckpointInvalid: if it is damaged, or of a later version.
    """
    with folder.open(NAME) as file:
        data = _all_of(file)
    body, _, checksum = data.partition(b"\n")
    where = f"the manifest {NAME} of the checkpoint {folder.name!r}"
    if checksum != b"%08x\n" % crc32c(body):
        raise CheckpointInvalid(f"{where} is damaged: its checksum is wrong or cut off", file=NAME)
    try:
        return _parsed(json.loads(body))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CheckpointInvalid(f"{where} cannot be used: {error}", file=NAME) from error


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype with this name.

    Raises:
      TypeError: if there is none, also because ml_dtypes is missing.
    """
    try:
        return np.dtype(name)
    except TypeError:
        import importlib

        try:  # NumPy knows bfloat16 and the like only through another library
            extended: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        except (ImportError, AttributeError):
            raise TypeError(f"no dtype {name!r}; pip install ml_dtypes may bring it") from None
        return extended


def _all_of(file: Any) -> bytes:
    parts = []
    while part := file.read(1 << 20):
        parts.append(part)
    return b"".join(parts)


def _parsed(value: Any) -> Manifest:
    if (value["format"], value["version"]) != (_FORMAT, _VERSION):
        raise ValueError(
            f"it is {value['format']!r} version {value['version']!r}, not {_FORMAT!r} {_VERSION}"
        )
    shards = tuple(Shard(_shard_name(s["name"]), *_sizes(s)) for s in value["shards"])
    arrays = {str(path): _array(saved, shards) for path, saved in value["arrays"].items()}
    return Manifest(
        str(value["id"]),
        int(value["saved_ns"]),
        int(value["save_counter"]),
        shards,
        arrays,
        dict(value["values"]),
        {str(path): _position(place) for path, place in value["positions"].items()},
        int(value.get("period_began_ns", 0)),
    )


def _sizes(shard: Any) -> tuple[int, int, int]:
    return int(shard["bytes"]), int(shard["header_bytes"]), int(shard["header_checksum"])


def _array(saved: Any, shards: tuple[Shard, ...]) -> SavedArray:
    dtype, shape = dtype_of(saved["dtype"]), _extent(saved["shape"])
    if dtype.hasobject:
        raise ValueError("it has an array of objects")
    parts = []
    for p in saved["parts"]:
        s = p["stored"]
        stored = StoredArray(str(s["tensor"]), int(s["offset"]), int(s["bytes"]), int(s["checksum"]))
        part = Part(int(p["shard"]), _extent(p["start"]), _extent(p["shape"]), stored)
        # A manifest must not make workbench allocate more memory than its files hold.
        if stored.offset < 0 or stored.offset + stored.bytes > shards[part.shard].bytes or part.shard < 0:
            raise ValueError(f"{stored.tensor!r} is outside of its file")
        if math.prod(part.shape) * dtype.itemsize != stored.bytes or len(part.shape) != len(shape):
            raise ValueError(f"the parts of {stored.tensor!r} do not fit together")
        ends = [start + size for start, size in zip(part.start, part.shape, strict=True)]
        if any(end > size for end, size in zip(ends, shape, strict=True)):
            raise ValueError(f"{stored.tensor!r} is outside of its array")
        parts.append(part)
    if sum(math.prod(part.shape) for part in parts) != math.prod(shape):
        raise ValueError("the parts of an array do not make it up")
    return SavedArray(str(saved["kind"]), dtype.name, shape, tuple(parts))


def _position(saved: Any) -> Position:
    return Position(str(saved["pipeline"]), int(saved["epoch"]), int(saved["given"]), int(saved["failed"]))


def _extent(value: Any) -> tuple[int, ...]:
    extent = tuple(int(size) for size in value)
    if any(size < 0 for size in extent):
        raise ValueError(f"{extent} is not a shape")
    return extent


def _shard_name(text: str) -> str:
    if not SHARD.fullmatch(text):  # a manifest must not name files outside of its folder
        raise ValueError(f"{text!r} is not a name of a file in the folder")
    return text
