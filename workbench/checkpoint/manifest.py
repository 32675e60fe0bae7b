"""The manifest of a checkpoint: its files, the arrays in them, and all other values."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from workbench.checkpoint.folder import Folder
from workbench.checkpoint.tensor_file import StoredArray
from workbench.data.stored.position import Position, position_of
from workbench.errors import CheckpointInvalid
from workbench.io.checksums import crc32c

NAME: Final = "checkpoint.json"
_FORMAT: Final = "workbench checkpoint"
_VERSION: Final = 1
SHARD: Final = re.compile(r"[0-9a-f]{16}-[0-9]{1,6}\.safetensors")
OURS: Final = re.compile(rf"{SHARD.pattern}|lock|preserved|{re.escape(NAME)}(\.[0-9a-f]{{16}})?")
"""Matches the names of files that a checkpoint may leave in its folder; all other files are foreign."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file with arrays.

    Attributes:
      name: Its name in the folder.
      bytes: Its length.
      header_bytes: The length of the header before the arrays.
      header_checksum: CRC-32C of the header.
    """

    name: str
    bytes: int
    header_bytes: int
    header_checksum: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an array in one file; mostly the whole array.

    Attributes:
      shard: Number of the file.
      start: Its first index in the array, by dimension.
      shape: Its shape.
      stored: Its position in the file.
    """

    shard: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    stored: StoredArray


@dataclass(frozen=True, slots=True)
class SavedArray:
    """An array of the checkpoint.

    Attributes:
      kind: "variable", "array", or "components" for a variable without a common value on its replicas.
      dtype: Name of its dtype.
      shape: Its shape; components have the replicas as their first dimension.
      parts: The parts that make it up.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a checkpoint.

    Attributes:
      id: Its unique id; the names of its files begin with it.
      saved_ns: When it was saved, in nanoseconds since 1970; later than any earlier checkpoint there.
      save_counter: How often the program has saved, including this time.
      shards: The files.
      arrays: The arrays, by path in the state.
      values: The values that JSON can represent, by path.
      positions: The positions of iterators over datasets, by path.
      period_began_ns: Start of its manager's period of hours for preserving a checkpoint; 0 without such a manager.
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
        """The content of the file: a line of JSON, and a line with its checksum."""
        body = json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(self)}).encode()
        return body + b"\n%08x\n" % crc32c(body)


def read_manifest(folder: Folder) -> Manifest:
    """The manifest in a folder.

    Raises:
      NotFoundError: if there is none.
      CheckpointInvalid: if it is damaged, or has a later version.
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
      TypeError: if there is none, for example because ml_dtypes is missing.
    """
    try:
        return np.dtype(name)
    except TypeError:
        import importlib

        try:  # NumPy knows bfloat16 and similar dtypes only through another library
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
        {str(path): position_of(place) for path, place in value["positions"].items()},
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


def _extent(value: Any) -> tuple[int, ...]:
    extent = tuple(int(size) for size in value)
    if any(size < 0 for size in extent):
        raise ValueError(f"{extent} is not a shape")
    return extent


def _shard_name(text: str) -> str:
    if not SHARD.fullmatch(text):  # a manifest must not name files outside its folder
        raise ValueError(f"{text!r} is not a name of a file in the folder")
    return text
