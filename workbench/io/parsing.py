"""Batches of serialized examples as arrays, under the names of tf.io."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.io.columns import columns
from workbench.io.examples import BYTES, KIND_NAMES
from workbench.io.features import (
    Array,
    FixedLenFeature,
    FixedLenSequenceFeature,
    PaddedValues,
    VarLenFeature,
    as_wanted,
    default_of,
    dtype_of,
    kind_of,
)
from workbench.io.made_up import MadeUpText
from workbench.io.values import Column
from workbench.io.wire import Malformed

Wanted = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature
_WANTED = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature)
Values = Array | PaddedValues
_MOST_PADDED_BYTES = 1 << 30
_MOST_PADDING = 64


def parse_example(serialized: Any, features: Mapping[str, Wanted]) -> dict[str, Values]:
    """Parses the given features of a batch of examples; it ignores all other features.

    Args:
      serialized: The bytes of each example, such as a batch of a `TFRecordDataset`, shape `(batch,)`. For the bytes of
        one example, the result is that of `parse_single_example`.
      features: A description of each requested feature, by name.

    Returns:
      A `FixedLenFeature` as an array `(batch, *shape)`; a `FixedLenSequenceFeature` as an array `(batch, most steps,
      *shape)`; a `VarLenFeature` as `PaddedValues`, where tf.io returns a sparse tensor.

    Raises:
      InvalidArgumentError: if an example is damaged, lacks a feature without a default, or has one with another dtype
        or number of values.
      ValueError: if `features` is empty, or contains another kind of description, or a sequence that must not be
        missing.

    >>> batch = [wb.io.encode_example({"label": label}) for label in range(3)]
    >>> wb.io.parse_example(batch, {"label": wb.io.FixedLenFeature((), np.int64)})
    {'label': array([0, 1, 2])}
    """
    if is_one(serialized):
        return dict(parse_single_example(serialized, features))
    if not features:
        raise ValueError("parse_example: features is empty; name what you want of the examples")
    views = False
    for name, wanted in features.items():
        if type(wanted) is FixedLenFeature:
            views = views or wanted.dtype is memoryview
            continue
        if not isinstance(wanted, _WANTED):
            raise ValueError(
                f"parse_example: feature {name!r} is {wanted!r:.80}; use FixedLenFeature, VarLenFeature or "
                "FixedLenSequenceFeature"
            )
        if isinstance(wanted, FixedLenSequenceFeature) and not wanted.allow_missing:
            raise ValueError(
                f"parse_example: feature {name!r} may be missing in an example, which is then as one without steps; "
                "set allow_missing=True"
            )
        views = views or wanted.dtype is memoryview
    batch = batch_of(serialized, "parse_example", lambda text: text.example(features))
    try:
        found = columns(batch, features.keys(), views=views)
    except Malformed as error:
        raise InvalidArgumentError(f"parse_example: {error}") from error
    parsed = {name: _parsed(name, wanted, found[name], len(batch)) for name, wanted in features.items()}
    if not views:
        return parsed
    return {name: _as_wanted(values, features[name].dtype) for name, values in parsed.items()}


def _as_wanted(found: Values, dtype: Any) -> Values:
    if isinstance(found, PaddedValues):
        return PaddedValues(as_wanted(found.values, dtype), found.lengths)
    return as_wanted(found, dtype)


def is_one(serialized: Any) -> bool:
    """Whether this is one serialized example, and not a batch."""
    return isinstance(serialized, bytes) or (isinstance(serialized, np.ndarray) and not serialized.shape)


def batch_of(serialized: Any, function: str, fitting: Callable[[MadeUpText], bytes]) -> list[bytes]:
    """The examples in a function's argument.

    Args:
      serialized: One example, or an array or list of them.
      function: The function, for errors.
      fitting: Returns an example to replace made-up text.

    Raises:
      InvalidArgumentError: if one is not bytes.
    """
    batch: list[bytes] = np.asarray(serialized, object).ravel().tolist()
    kinds = set(map(type, batch))
    if any(issubclass(kind, MadeUpText) for kind in kinds):
        return [fitting(text) if isinstance(text, MadeUpText) else text for text in batch]
    if kinds - {bytes}:
        row = next(row for row, data in enumerate(batch) if type(data) is not bytes)
        raise InvalidArgumentError(f"{function}: example {row} is {type(batch[row]).__name__}, not bytes")
    return batch


def parse_single_example(serialized: Any, features: Mapping[str, Wanted]) -> dict[str, Array]:
    """The requested features of one example.

    A `FixedLenFeature` has its own shape, a `VarLenFeature` `(n,)`, a `FixedLenSequenceFeature` `(steps, *shape)`.

    Raises:
      InvalidArgumentError: as `parse_example`.
    """
    data = serialized.item() if isinstance(serialized, np.ndarray) else serialized
    parsed = parse_example([data], features)
    return {
        name: value.values[0] if isinstance(value, PaddedValues) else value[0]
        for name, value in parsed.items()
    }


def _parsed(name: str, wanted: Wanted, found: list[Column], count: int) -> Values:
    kind = kind_of(wanted.dtype)
    if len(found) == 1 and type(wanted) is FixedLenFeature:
        rows, has, values, _, each = found[0]
        # All examples are in it, so they are in order.
        if has == kind and len(rows) == count:
            if each == 1 and not wanted.shape:
                return values
            if each == math.prod(wanted.shape):
                return values.reshape(count, *wanted.shape)
    for column in found:
        if column.kind != kind:
            raise InvalidArgumentError(
                f"feature {name!r} of example {column.rows[0]} holds {KIND_NAMES[column.kind]}, not {KIND_NAMES[kind]}"
            )
    if isinstance(wanted, VarLenFeature):
        return _padded(name, wanted, found, count)
    if isinstance(wanted, FixedLenSequenceFeature):
        return _steps(name, wanted, found, count)
    shape, size = tuple(wanted.shape), math.prod(wanted.shape)
    for column in found:
        if column.each != size:
            others = np.flatnonzero(column.counts != size)
            raise InvalidArgumentError(
                f"feature {name!r} of example {column.rows[others[0]]} has {column.counts[others[0]]} values, shape "
                f"{shape} takes {size}; use VarLenFeature if their number varies"
            )
    result = np.empty((count, size), dtype_of(wanted.dtype))
    missing = np.ones(count, bool)
    for column in found:
        result[column.rows] = column.values.reshape(-1, size)
        missing[column.rows] = False
    if missing.any():
        if wanted.default_value is None:
            raise InvalidArgumentError(
                f"example {int(missing.argmax())} has no feature {name!r}; give a default_value if it may be missing"
            )
        result[missing] = default_of(wanted)
    return result.reshape(count, *shape)


def _steps(name: str, wanted: FixedLenSequenceFeature, found: list[Column], count: int) -> Array:
    shape, size = tuple(wanted.shape), max(1, math.prod(wanted.shape))
    for column in found:
        uneven = np.flatnonzero(column.counts % size)
        if len(uneven):
            raise InvalidArgumentError(
                f"feature {name!r} of example {column.rows[uneven[0]]} has {column.counts[uneven[0]]} values, which "
                f"are not a whole number of steps of shape {shape}"
            )
    filler = None if wanted.default_value is None else default_of(wanted).item()
    values, _ = _padded(name, wanted, found, count, filler=filler)
    return values.reshape(count, -1 if count else 0, *shape)


def _padded(
    name: str,
    wanted: VarLenFeature | FixedLenSequenceFeature,
    found: list[Column],
    count: int,
    *,
    filler: Any = None,
) -> PaddedValues:
    lengths = np.zeros(count, np.int64)
    for column in found:
        lengths[column.rows] = column.counts
    if filler is None:
        filler = b"" if kind_of(wanted.dtype) == BYTES else 0
    shape, dtype = (count, int(lengths.max(initial=0))), dtype_of(wanted.dtype)
    check_padding(name, shape, dtype, int(lengths.sum()))
    values = np.full(shape, filler, dtype)
    for column in found:
        rows = np.repeat(column.rows, column.counts)
        firsts = np.cumsum(column.counts) - column.counts
        values[rows, np.arange(len(rows)) - np.repeat(firsts, column.counts)] = column.values
    return PaddedValues(values, lengths)


def check_padding(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], held: int) -> None:
    """Refuses to pad a few values to gigabytes, as a damaged or hostile example may request.

    Args:
      name: The name of the feature.
      shape: The shape of the padded values.
      dtype: The dtype of the padded values.
      held: How many values there are.

    Raises:
      InvalidArgumentError: if the result takes more than 1 GiB and more than 64 times the memory of the values.
    """
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes > max(_MOST_PADDED_BYTES, _MOST_PADDING * held * dtype.itemsize):
        raise InvalidArgumentError(
            f"feature {name!r}: {held:,} values padded to shape {shape} take {size_bytes:,} bytes, since one example "
            "has many more than the others; parse fewer examples at a time, or sort them by length first"
        )
