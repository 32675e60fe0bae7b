"""Encodes arrays as bytes, like tf.io.serialize_tensor (a `TensorProto`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.backends.numpy import STRING, as_dtype
from workbench.errors import InvalidArgumentError
from workbench.io.wire import (
    FIXED32,
    FIXED64,
    VARINT,
    Malformed,
    delimited,
    fields,
    read_varint,
    signed,
    unpacked_varints,
    varint,
)

Array = np.ndarray[Any, np.dtype[Any]]
_TEXT = 7
_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
_NAMES = {number: name for name, number in _NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
_LISTS = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
_WHOLE = {7, 10, 11, 16, 17}
_HALVES = 13


def serialize_tensor(tensor: Any) -> bytes:
    """An array, number, text or list as bytes; `parse_tensor` reads them, and so does tf.io.parse_tensor.

    Args:
      tensor: A value of any shape. Python numbers become int32 and float32, text becomes bytes.

    Raises:
      TypeError: if the dtype has no encoding.
    """
    array = _as_array(tensor)
    shape = b"".join(delimited(2, b"\x08" + varint(size) if size else b"") for size in array.shape)
    if array.dtype == object:
        number = _TEXT
        content = b"".join(delimited(_STRINGS, _text(item)) for item in array.ravel().tolist())
    else:
        number = _NUMBERS.get(array.dtype.name, 0)
        if not number:
            raise TypeError(
                f"serialize_tensor: {array.dtype} has no encoding; use numbers, bool, text or bfloat16"
            )
        raw = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        content = delimited(_CONTENT, raw) if raw else b""
    head = b"\x08" + varint(number) + delimited(_SHAPE, shape)
    return head + content


def parse_tensor(serialized: Any, out_type: Any) -> Any:
    """The array that `serialize_tensor` encoded; an array without dimensions for a scalar, bytes for a text.

    Args:
      serialized: The bytes.
      out_type: Its dtype, "string" for text.

    Raises:
      InvalidArgumentError: if the bytes are damaged, or hold another dtype.
    """
    data = bytes(serialized)
    dtype = as_dtype(out_type)
    name = "string" if dtype == STRING else dtype.name
    try:
        number, shape, content = _read(data)
        found = "string" if number == _TEXT else _NAMES.get(number, f"number {number}")
        if found != name:
            raise Malformed(f"it holds {found}, not {name}")
        return _array(name, shape, content)
    except (Malformed, ValueError) as error:
        raise InvalidArgumentError(
            f"parse_tensor: {len(data):,} bytes are not a tensor of {name}: {error}; give the bytes of "
            f"serialize_tensor and the dtype that it had"
        ) from error


def _as_array(tensor: Any) -> Array:
    if isinstance(tensor, str | bytes):
        text = np.empty((), object)
        text[()] = tensor
        return text
    array = np.asarray(tensor)
    if array.dtype.kind in "US":
        return np.asarray(tensor, object)
    if not hasattr(tensor, "dtype") and array.dtype.kind in "if":
        narrow = np.int32 if array.dtype.kind == "i" else np.float32
        if array.dtype.kind == "f" or (array == array.astype(np.int32)).all():
            return array.astype(narrow)
    return array


def _text(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    raise TypeError(f"serialize_tensor: an array of objects holds {type(item).__name__}, not text or bytes")


def _read(data: bytes) -> tuple[int, tuple[int, ...], list[tuple[int, int, Any]]]:
    number = 0
    shape: tuple[int, ...] = ()
    content: list[tuple[int, int, Any]] = []
    for field, kind, value in fields(data):
        if field == _DTYPE and kind == VARINT:
            number = value
        elif field == _SHAPE and isinstance(value, bytes):
            shape = tuple(_size(dim) for part, _, dim in fields(value) if part == 2)
        else:
            content.append((field, kind, value))
    return number, shape, content


def _size(dim: Any) -> int:
    size = next((value for field, _, value in fields(dim) if field == 1), 0) if isinstance(dim, bytes) else -1
    if not isinstance(size, int):
        raise Malformed("a dimension has a size that is not a number")
    if not 0 <= size < 1 << 62:
        raise Malformed(f"a dimension has size {signed(size)}")
    return int(size)


def _array(name: str, shape: tuple[int, ...], content: list[tuple[int, int, Any]]) -> Any:
    count = math.prod(shape)
    raw = b"".join(value for field, _, value in content if field == _CONTENT and isinstance(value, bytes))
    if name == "string":
        texts = [value for field, _, value in content if field == _STRINGS]
        items = _texts(raw, count) if raw else texts
        if not all(isinstance(item, bytes) for item in items):
            raise Malformed("a text is stored as a number")
        if not items and count:
            raise Malformed(f"it has shape {shape} and no elements")
        column = np.empty(len(items), object)
        column[:] = items
        return items[0] if shape == () and len(items) == 1 else _filled(column, shape)
    dtype = np.dtype(name) if name != "bfloat16" else _bfloat16()
    if raw:
        if len(raw) != count * dtype.itemsize:
            raise Malformed(f"shape {shape} takes {count * dtype.itemsize:,} bytes, it has {len(raw):,}")
        return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    return _filled(_listed(content, dtype), shape)


def _listed(content: list[tuple[int, int, Any]], dtype: np.dtype[Any]) -> Array:
    """The elements of a tensor that make_tensor_proto wrote as a list of numbers."""
    parts: list[Array] = [np.empty(0, dtype)]
    for field, kind, value in content:
        if field in _LISTS and kind in (FIXED32, FIXED64, 2):
            parts.append(np.frombuffer(value, _LISTS[field]))
        elif field in _WHOLE | {_HALVES}:
            numbers = unpacked_varints(value if isinstance(value, bytes) else varint(value))
            parts.append(numbers.astype(np.uint16).view(dtype) if field == _HALVES else numbers)
    return np.concatenate([part.astype(dtype) for part in parts])


def _filled(elements: Array, shape: tuple[int, ...]) -> Array:
    """The elements in `shape`.

    As in the reference, the last one is repeated to fill the shape; without elements, it is filled with zeros.
    """
    count = math.prod(shape)
    if len(elements) > count:
        raise Malformed(f"shape {shape} has {count} elements, {len(elements)} are there")
    if len(elements) < count:
        if count > 1 << 27:  # a few bytes must not claim gigabytes
            raise Malformed(f"shape {shape} claims {count:,} elements, {len(elements)} are there")
        last = elements[-1:] if len(elements) else np.zeros(1, elements.dtype)
        elements = np.concatenate([elements, np.repeat(last, count - len(elements))])
    return elements.reshape(shape)


def _texts(raw: bytes, count: int) -> list[bytes]:
    if count > len(raw):
        raise Malformed(f"{count:,} texts cannot be in {len(raw):,} bytes")
    position, sizes = 0, []
    for _ in range(count):
        size, position = read_varint(raw, position)
        sizes.append(size)
    if position + sum(sizes) != len(raw):
        raise Malformed(f"texts take {position + sum(sizes):,} bytes, it has {len(raw):,}")
    items = []
    for size in sizes:
        items.append(raw[position : position + size])
        position += size
    return items


def _bfloat16() -> Any:
    import ml_dtypes  # a caller that requests bfloat16 has imported the library that registers the name

    return np.dtype(ml_dtypes.bfloat16)
