"""Descriptions of an example's features, of fixed or varying length, under the names of tf.io."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.arguments import flag
from workbench.errors import InvalidArgumentError
from workbench.io.examples import BYTES, FLOAT, INT64, KIND_NAMES

Array = np.ndarray[Any, np.dtype[Any]]
_KINDS = {"float32": FLOAT, "int64": INT64, "object": BYTES}


class PaddedValues(NamedTuple):
    """Values of a feature whose number varies between examples.

    Both arrays have a row per example, so batches are split among replicas like any others.

    Attributes:
      values: Shape `(batch, longest)`; 0 or b"" after an example's own values.
      lengths: How many values each example has, int64, shape `(batch,)`.
    """

    values: Array
    lengths: Array


@dataclass(frozen=True, slots=True)
class FixedLenFeature:
    """A feature with the same shape in every example.

    Attributes:
      shape: Shape of one example.
      dtype: float32, int64 or "string"; `memoryview` gives texts, such as pictures, as views instead of copies. A view
        keeps the examples that were parsed together with its own in memory: up to about 1 MiB, or a sixteenth of the
        batch.
      default_value: The value for examples without the feature: one value, or as many as `shape` takes. None rejects
        such examples.

    Raises:
      InvalidArgumentError: if examples cannot hold the dtype, the shape is unknown, or the default does not fit them.
    """

    shape: Sequence[int]
    dtype: Any
    default_value: Any = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class VarLenFeature:
    """A feature whose number of values varies between examples, 0 if it is missing: `PaddedValues`.

    Attributes:
      dtype: As for a `FixedLenFeature`.

    Raises:
      InvalidArgumentError: if examples cannot hold the dtype.
    """

    dtype: Any

    def __post_init__(self) -> None:
        kind_of(self.dtype)


@dataclass(frozen=True, slots=True)
class FixedLenSequenceFeature:
    """A feature whose number of steps varies between examples; each step has the same shape.

    Missing steps are padded.

    Attributes:
      shape: Shape of one step.
      dtype: As for a `FixedLenFeature`.
      allow_missing: Whether an example without the feature has no steps, instead of being an error.
      default_value: The padding of missing steps in `parse_example`: one value; None for 0 or b"".

    Raises:
      InvalidArgumentError: if examples cannot hold the dtype, the shape is unknown, or the default does not fit them.
    """

    shape: Sequence[int]
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None

    def __post_init__(self) -> None:
        missing = flag(self.allow_missing, "FixedLenSequenceFeature: allow_missing")
        object.__setattr__(self, "allow_missing", missing)
        _check(self)


def default_of(wanted: FixedLenFeature | FixedLenSequenceFeature) -> Array:
    """The replacement for missing values, in the feature's dtype: in its shape, or one value for all steps.

    Raises:
      InvalidArgumentError: if the default holds other values, or another number of them.
    """
    value, kind = wanted.default_value, kind_of(wanted.dtype)
    given = np.asarray(value, object if kind == BYTES else None)
    if not given.size:
        fits = True
    elif kind == BYTES:
        fits = all(isinstance(item, str | bytes) for item in given.flat)
    else:
        fits = given.dtype.kind in ("iu" if kind == INT64 else "iuf")
    if not fits:
        raise InvalidArgumentError(f"default_value {value!r:.60} holds no values of {KIND_NAMES[kind]}")
    items = [item.encode() if isinstance(item, str) else item for item in given.flat]
    result = np.empty(given.size, dtype_of(wanted.dtype))
    result[:] = items
    if isinstance(wanted, FixedLenSequenceFeature):
        if given.size != 1:
            raise InvalidArgumentError(
                f"default_value must be one value, not {given.size}, which fills all missing steps"
            )
        return result.reshape(())
    size = math.prod(wanted.shape)
    if given.size not in (1, size):
        raise InvalidArgumentError(
            f"default_value has shape {given.shape}, the feature {tuple(wanted.shape)}"
        )
    return result if given.size == size else result.repeat(size)


def _check(wanted: FixedLenFeature | FixedLenSequenceFeature) -> None:
    kind_of(wanted.dtype)
    if any(not isinstance(size, int | np.integer) or size < 0 for size in wanted.shape):
        raise InvalidArgumentError(
            f"shape {wanted.shape!r:.60} of a feature must hold sizes; use VarLenFeature or FixedLenSequenceFeature if "
            "the number of values varies"
        )
    if wanted.default_value is not None:
        default_of(wanted)


@lru_cache
def dtype_of(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype; object, for bytes or views of them, for text."""
    return np.dtype(object) if dtype in ("string", str, bytes, memoryview) else np.dtype(dtype)


def as_wanted(texts: Array, dtype: Any) -> Array:
    """Texts as views or bytes, as the feature requests; other values unchanged."""
    if texts.dtype != object:
        return texts
    kind = memoryview if dtype is memoryview else bytes
    if set(map(type, texts.flat)) <= {kind}:
        return texts
    result = np.empty(texts.size, object)
    result[:] = list(map(kind, texts.flat))
    return result.reshape(texts.shape)


@lru_cache
def kind_of(dtype: Any) -> int:
    """The kind of feature that holds a dtype.

    Raises:
      InvalidArgumentError: if none does.
    """
    kind = _KINDS.get(dtype_of(dtype).name)
    if kind is None:
        raise InvalidArgumentError(f"an example holds float32, int64 and 'string', not {dtype_of(dtype)}")
    return kind
