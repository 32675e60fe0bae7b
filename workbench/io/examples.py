"""Encodes and decodes tf.train.Example and SequenceExample, without the library of protocol buffers."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.io.wire import (
    DELIMITED,
    FIXED32,
    VARINT,
    Malformed,
    delimited,
    fields,
    floats,
    unpacked_varints,
    varint,
    varints,
)

Array = np.ndarray[Any, np.dtype[Any]]
Feature = tuple[int, list[bytes] | Array]
BYTES, FLOAT, INT64 = 1, 2, 3
KIND_NAMES = {BYTES: "string", FLOAT: "float32", INT64: "int64"}
_KINDS = {"bytes": BYTES, "float": FLOAT, "int64": INT64}


def encode_example(features: Mapping[str, Any]) -> bytes:
    """The bytes of a tf.train.Example, its features in the order of their names.

    Args:
      features: Values by name: an array, a number, a text or bytes, or a list of them. Whole numbers and bools are
        stored as int64, other numbers as float32, text as bytes; arrays lose their shape. `{"int64": values}`,
        `{"float": values}` and `{"bytes": values}` name the kind, which an empty list requires.

    Raises:
      TypeError: if values are of another kind.
    """
    return delimited(1, _encoded_features(features))


def encode_sequence_example(
    context: Mapping[str, Any], feature_lists: Mapping[str, Sequence[Any]] | None = None
) -> bytes:
    """The bytes of a tf.train.SequenceExample.

    Args:
      context: See `encode_example`.
      feature_lists: Steps by name, each as a feature of `encode_example`.

    Raises:
      TypeError: if values are of a kind that cannot be stored.
    """
    lists = b"".join(
        _entry(name, b"".join(delimited(1, _encoded(name, step)) for step in steps))
        for name, steps in sorted((feature_lists or {}).items())
    )
    return delimited(1, _encoded_features(context)) + delimited(2, lists)


def decode_example(serialized: Any) -> dict[str, Array]:
    """All features of a tf.train.Example: flat arrays of int64, float32 or bytes objects, shape `(n,)`.

    Raises:
      InvalidArgumentError: if the bytes are damaged.
    """
    return {name: _column(kind, values) for name, (kind, values) in _checked(serialized, read_features, 1)}


def decode_sequence_example(serialized: Any) -> tuple[dict[str, Array], dict[str, list[Array]]]:
    """Context and steps of a tf.train.SequenceExample; a step is an array `(n,)`, as in `decode_example`.

    Raises:
      InvalidArgumentError: if the bytes are damaged.
    """
    context = {name: _column(kind, values) for name, (kind, values) in _checked(serialized, read_features, 1)}
    lists = _checked(serialized, read_feature_lists, 2)
    return context, {name: [_column(kind, values) for kind, values in steps] for name, steps in lists}


def read_features(message: bytes, names: Container[str] | None = None) -> list[tuple[str, Feature]]:
    """Names and features of the message `Features`; features without a kind are left out.

    Args:
      message: The bytes.
      names: The features to decode; the others are not read. None for all.

    Raises:
      Malformed: if the bytes are damaged.
    """
    named = (
        (name, read_feature(value)) for name, value in _entries(message) if names is None or name in names
    )
    return [(name, feature) for name, feature in named if feature is not None]


def read_feature_lists(
    message: bytes, names: Container[str] | None = None
) -> list[tuple[str, list[Feature]]]:
    """Names and steps of the message `FeatureLists`.

    Args:
      message: The bytes.
      names: The features to decode; None for all.

    Raises:
      Malformed: if the bytes are damaged.
    """
    found = []
    for name, value in _entries(message):
        if names is not None and name not in names:
            continue
        steps = [read_feature(_message(step, kind)) for field, kind, step in fields(value) if field == 1]
        found.append((name, [step if step is not None else (INT64, np.empty(0, np.int64)) for step in steps]))
    return found


def read_feature(message: bytes) -> Feature | None:
    """Kind and values of the message `Feature`; None if it has no kind.

    If there are several lists, the last one determines the kind; earlier lists of the same kind are joined, as in
    protocol buffers.

    Raises:
      Malformed: if the bytes are damaged.
    """
    found, list_bytes = 0, b""
    for kind, wire_type, content in fields(message):
        if kind in KIND_NAMES:
            list_bytes = (list_bytes if kind == found else b"") + _message(content, wire_type)
            found = kind
    if not found:
        return None
    if found == BYTES:
        return found, [
            _message(value, wire_type) for field, wire_type, value in fields(list_bytes) if field == 1
        ]
    return found, _numbers(found, list_bytes)


def part(serialized: bytes, number: int) -> bytes:
    """Field `number` of an example, with its parts joined; empty if missing.

    Raises:
      Malformed: if the bytes are damaged.
    """
    return b"".join(_message(value, kind) for field, kind, value in fields(serialized) if field == number)


def _checked(serialized: Any, read: Any, number: int) -> Any:
    try:
        return read(part(bytes(serialized), number))
    except (Malformed, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{len(serialized):,} bytes are not an example: {error}") from error


def _numbers(kind: int, message: bytes) -> Array:
    read = floats if kind == FLOAT else unpacked_varints
    parts: list[Any] = []
    for field, wire_type, value in fields(message):
        if field != 1:
            continue
        if kind == INT64 and wire_type == VARINT:
            parts.append(unpacked_varints(varint(value)))
        elif wire_type == DELIMITED or (kind == FLOAT and wire_type == FIXED32):
            parts.append(read(value))
        else:
            raise Malformed(f"a list of {KIND_NAMES[kind]} has wire type {wire_type}")
    if len(parts) == 1:
        return parts[0]  # type: ignore[no-any-return]
    return np.concatenate([read(b""), *parts])


def _entries(message: bytes) -> list[tuple[str, bytes]]:
    found = {}
    for field, kind, entry in fields(message):
        if field == 1:
            name = value = b""
            for part_number, part_kind, content in fields(_message(entry, kind)):
                if part_number == 1:
                    name = _message(content, part_kind)
                elif part_number == 2:
                    value += _message(content, part_kind)
            found[name.decode()] = value  # of several entries with one name, the last counts
    return list(found.items())


def _message(value: Any, wire_type: int) -> bytes:
    if wire_type != DELIMITED:
        raise Malformed(f"a message has wire type {wire_type}")
    return value  # type: ignore[no-any-return]


def _column(kind: int, values: list[bytes] | Array) -> Array:
    if kind != BYTES:
        return values  # type: ignore[return-value]
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _encoded_features(features: Mapping[str, Any]) -> bytes:
    return b"".join(_entry(name, _encoded(name, values)) for name, values in sorted(features.items()))


def _entry(name: str, value: bytes) -> bytes:
    return delimited(1, delimited(1, name.encode()) + delimited(2, value))


def _encoded(name: str, values: Any) -> bytes:
    if isinstance(values, Mapping):
        ((word, values),) = values.items()
        if word not in _KINDS:
            raise TypeError(f"feature {name!r}: kind {word!r} is none of {', '.join(_KINDS)}")
        kind = _KINDS[word]
    else:
        kind = 0
    flat = _flat(values)
    kind = kind or _kind_of(name, flat)
    try:
        match kind:
            case 1:
                return delimited(BYTES, b"".join(delimited(1, _text(item)) for item in flat.tolist()))
            case 2:
                packed = flat.astype("<f4").tobytes()
            case _:
                packed = varints(flat.astype(np.int64).tolist())
    except (TypeError, ValueError) as error:
        raise TypeError(f"feature {name!r} cannot be stored as {KIND_NAMES[kind]}: {error}") from error
    return delimited(kind, delimited(1, packed) if packed else b"")


def _text(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    raise TypeError(f"{item!r:.40} is not text")


def _flat(values: Any) -> Array:
    if isinstance(values, str | bytes):
        values = [values]
    array = values if isinstance(values, np.ndarray) else None
    if array is None and isinstance(values, list | tuple) and any(isinstance(v, str | bytes) for v in values):
        array = np.empty(len(values), object)  # NumPy would drop trailing NULs of bytes
        array[:] = values
    return np.ravel(np.asarray(values) if array is None else array)


def _kind_of(name: str, flat: Array) -> int:
    if flat.dtype.kind in "biu":
        return INT64
    if flat.dtype.kind == "f" and len(flat):
        return FLOAT
    if flat.dtype.kind in "US" or (
        flat.dtype == object and all(isinstance(v, str | bytes) for v in flat.tolist())
    ):
        return BYTES
    if not len(flat):
        raise TypeError(f'feature {name!r} is empty: name its kind, such as {{"int64": []}}')
    raise TypeError(f"feature {name!r} of dtype {flat.dtype} is neither numbers nor text")
