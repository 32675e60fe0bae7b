"""Batches of serialized examples as arrays, under the names of tf.io."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.io.columns import Block, columns
from workbench.io.examples import BYTES, KIND_NAMES
from workbench.io.features import Array, FixedLenFeature, PaddedValues, VarLenFeature, dtype_of, kind_of
from workbench.io.wire import Malformed

Wanted = FixedLenFeature | VarLenFeature
Values = Array | PaddedValues


def parse_example(serialized: Any, features: Mapping[str, Wanted]) -> dict[str, Values]:
    """The wanted features of a batch of examples.

    Args:
      serialized: The bytes of each, such as a batch of a `TFRecordDataset`, shape `(batch,)`.
      features: Name to what is wanted.

    Returns:
      A `FixedLenFeature` as an array `(batch, *shape)`; a `VarLenFeature` as `PaddedValues`, where tf.io gives a sparse
      tensor.

    Raises:
      InvalidArgumentError: if an example is damaged, lacks a feature without a default, or has one of another dtype
        or number of values.
      ValueError: if `features` is empty.
    """
    if not features:
        raise ValueError("parse_example: features is empty; name what you want of the examples")
    batch = np.asarray(serialized, object).ravel().tolist()
    for row, data in enumerate(batch):
        if not isinstance(data, bytes):
            raise InvalidArgumentError(f"parse_example: example {row} is {type(data).__name__}, not bytes")
    try:
        found = columns(batch, features.keys())
    except Malformed as error:
        raise InvalidArgumentError(f"parse_example: {error}") from error
    return {name: _parsed(name, wanted, found[name], len(batch)) for name, wanted in features.items()}


def parse_single_example(serialized: Any, features: Mapping[str, Wanted]) -> dict[str, Array]:
    """The wanted features of one example: a `FixedLenFeature` of its shape, a `VarLenFeature` of shape `(n,)`.

    Raises:
      InvalidArgumentError: as `parse_example`.
    """
    data = serialized.item() if isinstance(serialized, np.ndarray) else serialized
    parsed = parse_example([data], features)
    return {
        name: value.values[0] if isinstance(value, PaddedValues) else value[0]
        for name, value in parsed.items()
    }


def _parsed(name: str, wanted: Wanted, blocks: list[Block], count: int) -> Values:
    kind = kind_of(wanted.dtype)
    for block in blocks:
        if block.kind != kind:
            raise InvalidArgumentError(
                f"feature {name!r} of example {block.rows[0]} holds {KIND_NAMES[block.kind]}, not {KIND_NAMES[kind]}"
            )
    if isinstance(wanted, VarLenFeature):
        return _padded(kind, dtype_of(wanted.dtype), blocks, count)
    shape, size = tuple(wanted.shape), math.prod(wanted.shape)
    for block in blocks:
        if block.values.shape[1] != size:
            raise InvalidArgumentError(
                f"feature {name!r} of example {block.rows[0]} has {block.values.shape[1]} values, shape {shape} "
                f"takes {size}; use VarLenFeature if their number varies"
            )
    if len(blocks) == 1 and len(blocks[0].rows) == count:
        return blocks[0].values.reshape(count, *shape)
    result = np.empty((count, size), dtype_of(wanted.dtype))
    missing = np.ones(count, bool)
    for block in blocks:
        result[block.rows] = block.values
        missing[block.rows] = False
    if missing.any():
        if wanted.default_value is None:
            raise InvalidArgumentError(
                f"example {int(missing.argmax())} has no feature {name!r}; give a default_value if it may be missing"
            )
        result[missing] = _default(name, wanted.default_value, kind, shape)
    return result.reshape(count, *shape)


def _default(name: str, value: Any, kind: int, shape: tuple[int, ...]) -> Array:
    given = np.asarray(value, object if kind == BYTES else None)
    if kind == BYTES:
        given = np.vectorize(lambda item: item.encode() if isinstance(item, str) else item, otypes=[object])(
            given
        )
    try:
        return np.broadcast_to(given, shape).ravel()
    except ValueError as error:
        raise InvalidArgumentError(
            f"feature {name!r}: default_value has shape {given.shape}, the feature {shape}"
        ) from error


def _padded(kind: int, dtype: np.dtype[Any], blocks: list[Block], count: int) -> PaddedValues:
    lengths = np.zeros(count, np.int64)
    for block in blocks:
        lengths[block.rows] = block.values.shape[1]
    values = np.full((count, int(lengths.max(initial=0))), b"" if kind == BYTES else 0, dtype)
    for block in blocks:
        values[block.rows, : block.values.shape[1]] = block.values
    return PaddedValues(values, lengths)
