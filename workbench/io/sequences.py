"""Batches of serialized sequence examples as arrays, under the names of tf.io."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError
from workbench.io.examples import BYTES, KIND_NAMES, Feature, part, read_feature_lists
from workbench.io.features import (
    Array,
    FixedLenFeature,
    FixedLenSequenceFeature,
    PaddedValues,
    VarLenFeature,
    as_wanted,
    dtype_of,
    kind_of,
)
from workbench.io.parsing import Values, batch_of, check_padding, is_one, parse_example
from workbench.io.wire import Malformed, delimited

Context = Mapping[str, FixedLenFeature | VarLenFeature]
Sequences = Mapping[str, FixedLenSequenceFeature | VarLenFeature]
_FUNCTION = "parse_sequence_example"


def parse_sequence_example(
    serialized: Any, context_features: Context | None = None, sequence_features: Sequences | None = None
) -> tuple[dict[str, Values], dict[str, Values], dict[str, Array]]:
    """The requested features of a batch of sequence examples.

    Args:
      serialized: The bytes of each, shape `(batch,)`; for one example, the arrays have no batch dimension.
      context_features: Descriptions of the context's features by name, as for `parse_example`.
      sequence_features: Descriptions of the steps' features by name.

    Returns:
      Three dicts by name. The context, as from `parse_example`. The sequences: a `FixedLenSequenceFeature` as an array
      `(batch, most steps, *shape)`, with 0 or b"" in steps that an example does not have; a `VarLenFeature` as
      `PaddedValues`, values of shape `(batch, most steps, longest)` and lengths `(batch, most steps)`, where tf.io
      returns a sparse tensor. The number of steps of each example, `(batch,)`, for each `FixedLenSequenceFeature`.

    Raises:
      InvalidArgumentError: if an example is damaged, lacks a feature that must not be missing, or has one with another
        dtype or number of values.
      ValueError: if no features are requested, or a description is of another kind.
    """
    if is_one(serialized):
        return _of_one(serialized, context_features, sequence_features or {})
    context_features, sequence_features = context_features or {}, sequence_features or {}
    _check(context_features, sequence_features)
    wanted_context, wanted_steps = context_features, sequence_features
    batch = batch_of(serialized, _FUNCTION, lambda text: text.sequence_example(wanted_context, wanted_steps))
    contexts, rows = [], []
    for row, data in enumerate(batch):
        try:
            contexts.append(delimited(1, part(data, 1)))
            rows.append(dict(read_feature_lists(part(data, 2), sequence_features)))
        except (Malformed, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                f"{_FUNCTION}: example {row} of the batch is damaged: {error}"
            ) from error
    context = parse_example(contexts, context_features) if context_features else {}
    sequences: dict[str, Values] = {}
    lengths: dict[str, Array] = {}
    for name, wanted in sequence_features.items():
        steps = [_steps_of(name, wanted, row, lists.get(name)) for row, lists in enumerate(rows)]
        if isinstance(wanted, VarLenFeature):
            sequences[name] = _varying(name, wanted, steps)
        else:
            sequences[name] = _fixed(name, wanted, steps)
            lengths[name] = np.array([len(each) for each in steps], np.int64)
    return context, sequences, lengths


def parse_single_sequence_example(
    serialized: Any, context_features: Context | None = None, sequence_features: Sequences | None = None
) -> tuple[dict[str, Values], dict[str, Values]]:
    """The requested features of one sequence example: its context, and its sequences, without a batch dimension.

    Args:
      serialized: One serialized `tf.train.SequenceExample`: bytes, or an array of shape ().
      context_features: Features of the context by name, see `parse_sequence_example`.
      sequence_features: Features of the sequences by name.

    Raises:
      InvalidArgumentError: as `parse_sequence_example`.
      ValueError: as `parse_sequence_example`.
    """
    data = serialized.item() if isinstance(serialized, np.ndarray) else serialized
    context, sequences, _ = parse_sequence_example([data], context_features, sequence_features)
    single: dict[str, Values] = {
        name: value.values[0] if isinstance(value, PaddedValues) else value[0]
        for name, value in context.items()
    }
    return single, {
        name: PaddedValues(value.values[0], value.lengths[0]) if isinstance(value, PaddedValues) else value[0]
        for name, value in sequences.items()
    }


def _of_one(
    serialized: Any, context_features: Context | None, sequence_features: Sequences
) -> tuple[dict[str, Values], dict[str, Values], dict[str, Array]]:
    context, sequences = parse_single_sequence_example(serialized, context_features, sequence_features)
    fixed = [
        name for name, wanted in sequence_features.items() if isinstance(wanted, FixedLenSequenceFeature)
    ]
    return context, sequences, {name: np.array(len(sequences[name]), np.int64) for name in fixed}


def _check(context: Context, sequences: Sequences) -> None:
    if not context and not sequences:
        raise ValueError(
            f"{_FUNCTION}: context_features and sequence_features are empty; name what you want of the examples"
        )
    for name, wanted in context.items():
        if not isinstance(wanted, FixedLenFeature | VarLenFeature):
            raise ValueError(
                f"{_FUNCTION}: context feature {name!r} is {wanted!r:.80}; use FixedLenFeature or VarLenFeature"
            )
    for name, wanted_steps in sequences.items():
        if not isinstance(wanted_steps, FixedLenSequenceFeature | VarLenFeature):
            raise ValueError(
                f"{_FUNCTION}: sequence feature {name!r} is {wanted_steps!r:.80}; use FixedLenSequenceFeature or "
                "VarLenFeature"
            )
        if getattr(wanted_steps, "default_value", None) is not None:
            raise ValueError(
                f"{_FUNCTION}: sequence feature {name!r} has a default_value, and missing steps are filled with "
                '0 or b""; leave it out'
            )


def _steps_of(
    name: str, wanted: FixedLenSequenceFeature | VarLenFeature, row: int, steps: list[Feature] | None
) -> list[Any]:
    """The values of each step of an example."""
    if steps is None:
        if isinstance(wanted, FixedLenSequenceFeature) and not wanted.allow_missing:
            raise InvalidArgumentError(
                f"example {row} has no sequence {name!r}; set allow_missing=True if it may be missing"
            )
        return []
    kind = kind_of(wanted.dtype)
    for step, (found, values) in enumerate(steps):
        if found != kind and len(values):
            raise InvalidArgumentError(
                f"sequence {name!r} of example {row} holds {KIND_NAMES[found]} in step {step}, not {KIND_NAMES[kind]}"
            )
    return [values for _, values in steps]


def _fixed(name: str, wanted: FixedLenSequenceFeature, rows: list[list[Any]]) -> Array:
    shape, size, dtype = tuple(wanted.shape), math.prod(wanted.shape), dtype_of(wanted.dtype)
    longest = max(map(len, rows), default=0)
    shape_of_all = len(rows), longest, size
    check_padding(name, shape_of_all, dtype, sum(len(steps) for steps in rows) * size)
    result = np.full(shape_of_all, b"" if kind_of(wanted.dtype) == BYTES else 0, dtype)
    for row, steps in enumerate(rows):
        for step, values in enumerate(steps):
            if len(values) != size:
                raise InvalidArgumentError(
                    f"sequence {name!r} of example {row} has {len(values)} values in step {step}, shape {shape} takes "
                    f"{size}; use VarLenFeature if their number varies"
                )
            result[row, step] = values
    return as_wanted(result, wanted.dtype).reshape(len(rows), longest, *shape)


def _varying(name: str, wanted: VarLenFeature, rows: list[list[Any]]) -> PaddedValues:
    dtype = dtype_of(wanted.dtype)
    lengths = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
    for row, steps in enumerate(rows):
        lengths[row, : len(steps)] = [len(values) for values in steps]
    filler = b"" if kind_of(wanted.dtype) == BYTES else 0
    shape = *lengths.shape, int(lengths.max(initial=0))
    check_padding(name, shape, dtype, int(lengths.sum()))
    result = np.full(shape, filler, dtype)
    for row, steps in enumerate(rows):
        for step, values in enumerate(steps):
            result[row, step, : len(values)] = values
    return PaddedValues(as_wanted(result, wanted.dtype), lengths)
