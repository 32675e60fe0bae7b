"""Arrays as safetensors files: the length of a header in 8 bytes, the header in JSON, then array after array.

This does not use the library of that name, which takes whole files as bytes: here, arrays go without a copy to the disk
or to any file of fsspec, with checksums computed on the way. Any reader of safetensors can open the files.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from workbench.distribute.arrays.as_array import Array
from workbench.io.checksums import crc32c

PIECE_BYTES: Final = 8 << 20
"""How much to write at a time, and to read at a time from a URL."""
_CACHED_BYTES: Final = 256 << 10
"""How much of a local file to read at a time, so that it is still in the processor's cache for its checksum."""
_NAMES: Final = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
_PAIRS: Final = {"complex64": "F32", "complex128": "F64"}


class Readable(Protocol):
    """An open file."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Moves to a position."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fills a buffer or a part of it."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """The position of an array in its file.

    Attributes:
      tensor: Its name in the file.
      offset: Its first byte.
      bytes: Number of its bytes.
      checksum: Their CRC-32C.
    """

    tensor: str
    offset: int
    bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class TensorFile:
    """What was written to a file.

    Attributes:
      bytes: Its length.
      header_bytes: The length of the header before the arrays.
      header_checksum: CRC-32C of the header.
      arrays: The arrays, in order.
    """

    bytes: int
    header_bytes: int
    header_checksum: int
    arrays: tuple[StoredArray, ...]


def stored_form(dtype: np.dtype[Any], shape: Sequence[int]) -> tuple[str, list[int]] | None:
    """A dtype's name and the shape in safetensors; None for text, objects and records.

    Complex numbers become pairs of numbers along an additional dimension; times and durations become int64.
    """
    if dtype.kind in "mM":
        return "I64", list(shape)
    if dtype.name in _PAIRS:
        return _PAIRS[dtype.name], [*shape, 2]
    name = _NAMES.get(dtype.name)
    return None if name is None else (name, list(shape))


def write_tensors(
    write: Callable[[Any], Any], arrays: Sequence[tuple[str, Array]], about: Mapping[str, str]
) -> TensorFile:
    """Writes a file.

    Args:
      write: Called with the bytes, buffer by buffer.
      arrays: Pairs of name and array, of dtypes that `stored_form` supports.
      about: Metadata that readers of safetensors show.
    """
    header: dict[str, Any] = {"__metadata__": dict(about)}
    end = 0
    for name, array in arrays:
        form = stored_form(array.dtype, array.shape)
        assert form is not None
        header[name] = {"dtype": form[0], "shape": form[1], "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    write(head)
    stored = []
    place = len(head)
    for name, array in arrays:
        checksum = 0
        data = _bytes_of(np.ascontiguousarray(array))
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            checksum = crc32c(piece, checksum)
            write(piece)
        stored.append(StoredArray(name, place, len(data), checksum))
        place += len(data)
    return TensorFile(place, len(head), crc32c(head), tuple(stored))


def read_array(
    file: Readable,
    stored: StoredArray,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    count_bytes: Callable[[int], object] = int,
) -> Array:
    """Reads an array from an open file.

    Args:
      file: The file.
      stored: The array's position in it.
      dtype: Its dtype.
      shape: Its shape.
      count_bytes: Called with the number of bytes of each piece read.

    Raises:
      ValueError: if its checksum is wrong or the file is too short; the message says which.
    """
    if math.prod(shape) * dtype.itemsize != stored.bytes:
        raise ValueError(f"{stored.bytes:,} bytes are not {dtype.name} of shape {tuple(shape)}")
    array = np.empty(tuple(shape), dtype)
    data = _bytes_of(array)
    file.seek(stored.offset)
    checksum = place = 0
    piece = _CACHED_BYTES if isinstance(file, io.FileIO) else PIECE_BYTES
    while place < len(data):
        count = file.readinto(data[place : place + piece])
        if not count:
            raise ValueError(f"it ends at byte {stored.offset + place:,}, inside of {stored.tensor!r}")
        checksum = crc32c(data[place : place + count], checksum)
        place += count
        count_bytes(count)
    if checksum != stored.checksum:
        raise ValueError(f"the checksum of {stored.tensor!r}, at byte {stored.offset:,}, is wrong")
    return array


def _bytes_of(array: Array) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    data: Any = array.reshape(-1).view(np.uint8)
    return memoryview(data)
