"""Encodes elements as bytes: a block at a time, column by column.

A block is the length of its header (4 bytes), the header (JSON) and the columns one after the other, compressed
together. A column of numbers consists of their bytes; one of texts, of the lengths (int64) and then the bytes. If
elements of a column differ in shape, the header has all shapes.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.stored.layout import dtype_of_text, dtype_text
from workbench.data.structure import Array, Structure
from workbench.data.tables import ArrayTable, Leaves, ListTable, Run
from workbench.errors import DataLossError, InvalidArgumentError

_HEAD = struct.Struct("<I")
_LENGTHS = np.dtype("<i8")
# A header or body that `encoded` did not write; checksums cannot detect this.
_DAMAGES = (ValueError, TypeError, LookupError, AttributeError, OSError, struct.error, zlib.error)
# The most that a compressed byte expands to: 1,032 bytes with zlib, 22 with Snappy.
_MOST_BYTES_OF_ONE = {"": 1, "GZIP": 1100, "SNAPPY": 64}
_MOST_EMPTY = 1 << 24
Column = Array | Sequence[Any]


def check_stored_compression(compression: str | None) -> str:
    """The compression with a given name: "", "GZIP" or "SNAPPY"; AUTO is SNAPPY.

    Raises:
      InvalidArgumentError: if it is none of them.
    """
    match compression:
        case None | "" | "NONE":
            return ""
        case "AUTO" | "SNAPPY":
            return "SNAPPY"
        case "GZIP":
            return "GZIP"
    raise InvalidArgumentError(f"compression is {compression!r}; it must be None, 'GZIP', 'SNAPPY' or 'AUTO'")


def kinds(leaves: Leaves) -> list[Any]:
    """The dtypes of an element's components; all elements of a block have the same dtypes."""
    return [STRING if isinstance(leaf, bytes) else leaf.dtype for leaf in leaves]


def encoded(columns: Sequence[Column], count: int, compression: str) -> bytes:
    """The block of `count` elements, given as one array `(count, ...)` or list of values per component.

    Args:
      columns: The components.
      count: Number of elements.
      compression: "GZIP", "SNAPPY" or "".
    """
    heads, parts = [], []
    for column in columns:
        head, part = _encoded_column(column)
        heads.append(head)
        parts.append(part)
    body = b"".join(parts)
    header = json.dumps(
        {"count": count, "bytes": len(body), "compression": compression, "columns": heads},
        separators=(",", ":"),
    ).encode()
    return _HEAD.pack(len(header)) + header + _compressed(body, compression)


def decoded(block: bytes, structure: Structure, place: str, **about: Any) -> Run:
    """The elements of a block.

    Args:
      block: The result of `encoded`.
      structure: The structure of an element.
      place: Where the block is, for errors.
      about: The place as arguments of `DataLossError`: the file and the record, if it is in one.

    Raises:
      DataLossError: if `encoded` cannot have returned it.
    """
    try:
        (size,) = _HEAD.unpack_from(block)
        header = json.loads(block[_HEAD.size : _HEAD.size + size])
        count = int(header["count"])
        body = _Body(_decompressed(block[_HEAD.size + size :], header["compression"], header["bytes"]))
        columns = [_decoded_column(head, count, body) for head in header["columns"]]
        if len(columns) != structure.spec.num_leaves:
            raise ValueError(f"{len(columns)} columns stand for {structure.spec.num_leaves} components")
        if not columns and not 0 <= count <= _MOST_EMPTY:  # only this number says how many there are
            raise ValueError(f"it claims {count} elements without components")
    except _DAMAGES as error:
        raise DataLossError(
            f"{place} is not a block of elements: {error}; write the files again", **about
        ) from error
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if arrays and len(arrays) == len(columns):
        return Run(ArrayTable(arrays, structure), range(count))
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(count)]
    return Run(ListTable(rows, structure), range(count))


class _Body:
    """Bytes that are consumed from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, dtype: np.dtype[Any], count: int) -> Array:
        """The next `count` numbers."""
        size = count * dtype.itemsize
        if count < 0 or size > len(self._data) - self._position:
            raise ValueError(f"{size} bytes are wanted, {len(self._data) - self._position} are left")
        start, self._position = self._position, self._position + size
        # Registered dtypes such as bfloat16 have no buffer format, so they are written as bytes.
        return np.frombuffer(self._data, np.uint8, size, start).view(dtype)

    def texts(self, count: int) -> Array:
        """The next `count` texts."""
        lengths = self.take(_LENGTHS, count).tolist()
        if any(length < 0 for length in lengths):
            raise ValueError("a text has a negative length")
        data = self.take(np.dtype(np.uint8), sum(lengths)).tobytes()
        values = np.empty(count, STRING)
        start = 0
        for index, length in enumerate(lengths):
            values[index] = data[start : start + length]
            start += length
        return values


def _encoded_column(column: Column) -> tuple[dict[str, Any], bytes]:
    if isinstance(column, np.ndarray):
        flat = column.reshape(-1)
        head = {"dtype": dtype_text(column.dtype), "shape": list(column.shape[1:])}
        return head, _texts(flat.tolist()) if column.dtype == STRING else column.tobytes()
    shapes = [np.shape(value) for value in column]
    first = column[0]
    text = isinstance(first, bytes) or first.dtype == STRING
    head = {"dtype": "string" if text else dtype_text(first.dtype)}
    if all(shape == shapes[0] for shape in shapes):
        head["shape"] = list(shapes[0])
    else:
        head["shapes"] = [list(shape) for shape in shapes]
    if not text:
        return head, b"".join(value.tobytes() for value in column)
    values: list[bytes] = []
    for value in column:
        values.extend([value] if isinstance(value, bytes) else value.reshape(-1).tolist())
    return head, _texts(values)


def _texts(values: list[bytes]) -> bytes:
    return np.array([len(value) for value in values], _LENGTHS).tobytes() + b"".join(values)


def _decoded_column(head: dict[str, Any], count: int, body: _Body) -> Column:
    dtype = dtype_of_text(head["dtype"])
    uniform = "shape" in head
    shapes = [tuple(head["shape"])] if uniform else [tuple(shape) for shape in head["shapes"]]
    if any(type(size) is not int or size < 0 for shape in shapes for size in shape):
        raise ValueError(f"shapes are {shapes}")
    sizes = [math.prod(shape) for shape in shapes]
    total = count * sizes[0] if uniform else sum(sizes)
    flat = body.texts(total) if dtype == STRING else body.take(dtype, total)
    if uniform:
        return flat.reshape(count, *shapes[0])
    if len(shapes) != count:
        raise ValueError(f"{len(shapes)} shapes stand for {count} elements")
    ends = np.cumsum([0, *sizes]).tolist()
    pieces = [
        flat[start:stop].reshape(shape) for start, stop, shape in zip(ends, ends[1:], shapes, strict=False)
    ]
    return [piece if piece.shape else piece[()] for piece in pieces]


def _compressed(body: bytes, compression: str) -> bytes:
    match compression:
        case "GZIP":
            return zlib.compress(body, 6)
        case "SNAPPY":
            import pyarrow as pa  # takes long, and few datasets are stored

            return pa.compress(body, codec="snappy", asbytes=True)  # type: ignore[no-any-return]
    return body


def _decompressed(data: bytes, compression: str, size: int) -> bytes:
    if compression not in _MOST_BYTES_OF_ONE:
        raise ValueError(f"its compression {compression!r} is unknown")
    most = _MOST_BYTES_OF_ONE[compression] * (len(data) + 1)
    if type(size) is not int or not 0 <= size <= most:  # this much memory will be allocated
        raise ValueError(f"{len(data)} bytes cannot hold the {size!r:.40} that it claims")
    match compression:
        case "GZIP":
            body = zlib.decompressobj().decompress(data, size + 1)
        case "SNAPPY":
            import pyarrow as pa

            body = pa.decompress(data, size, codec="snappy", asbytes=True)
        case _:
            body = data
    if len(body) != size:
        raise ValueError(f"it has {len(body)} bytes instead of {size}")
    return body
