"""The array functions that expressions and programs of the vectors call, as plain NumPy.

They keep dtypes the way the recorded runs did: Python numbers become int32 and float32, and a sum has the
dtype of its input.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.reference.interpreter.codec import default_array, dtype
from tests.reference.outcomes import api

Array = Any


def _of(*values: Any) -> Any:
    """The array namespace of some values: `jax.numpy` if JAX traces any of them."""
    leaves = [leaf for value in values for leaf in (value if isinstance(value, (list, tuple)) else [value])]
    traced = any(type(leaf).__module__.startswith("jax") or hasattr(leaf, "__jax_array__") for leaf in leaves)
    return sys.modules["jax"].numpy if traced and "jax" in sys.modules else np


def const(value: Any, dtype: str | None = None) -> Array:
    return default_array(value, dtype)


def cast(x: Any, kind: str) -> Array:
    return _of(x).asarray(x).astype(dtype(kind))


def fill(shape: Any, value: Any) -> Array:
    value = default_array(value)
    return np.full([int(n) for n in shape], value, value.dtype)


def zeros(shape: Any, kind: str = "float32") -> Array:
    return np.zeros(shape, dtype(kind))


def ones(shape: Any, kind: str = "float32") -> Array:
    return np.ones(shape, dtype(kind))


def shape_of(x: Any) -> Array:
    return np.array(np.shape(x), np.int32)


def size(x: Any) -> Array:
    return np.int32(np.size(x))


def reduce_sum(x: Any, axis: int | None = None) -> Array:
    x = default_array(x)
    return _of(x).sum(x, axis=axis, dtype=x.dtype)


def reduce_mean(x: Any, axis: int | None = None) -> Array:
    x = default_array(x)
    return _of(x).mean(x, axis=axis).astype(x.dtype)


def reduce_max(x: Any, axis: int | None = None) -> Array:
    return _of(x).max(default_array(x), axis=axis)


def concat(values: Sequence[Any], axis: int) -> Array:
    return _of(values).concatenate([default_array(value) for value in values], axis=axis)


def stack(values: Sequence[Any], axis: int = 0) -> Array:
    return _of(values).stack([default_array(value) for value in values], axis=axis)


def reshape(x: Any, shape: Any) -> Array:
    return _of(x).reshape(x, shape)


def square(x: Any) -> Array:
    return _of(x).square(default_array(x))


def matmul(a: Any, b: Any) -> Array:
    return _of(a, b).matmul(default_array(a), default_array(b))


def identity(x: Any) -> Array:
    return _of(x).asarray(default_array(x))


def equal(a: Any, b: Any) -> Array:
    return _of(a, b).equal(a, b)


def cond(predicate: Any, a: Any, b: Any) -> Array:
    return _of(predicate, a, b).where(predicate, a, b)


def to_number(text: Any, kind: str = "float32") -> Array:
    # The recorded operation reports text that is not a number as an invalid argument; the vectors rely on that.
    try:
        return np.asarray(_text(text), str).astype(dtype(kind))[()]
    except ValueError as error:
        raise api("errors.InvalidArgumentError")(str(error)) from error


def strlen(text: Any) -> Array:
    return np.int32(len(_text(text).encode()))


def as_string(x: Any) -> Array:
    return np.array(str(np.asarray(x).item()).encode(), object)


def join(texts: Sequence[Any], separator: str = "") -> Array:
    return np.array(separator.join(_text(text) for text in texts).encode(), object)


def _text(value: Any) -> str:
    plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return plain.decode() if isinstance(plain, bytes) else str(plain)


EXPRESSIONS = {
    **{
        fn.__name__: fn
        for fn in (fill, cast, const, size, reduce_sum, reduce_max, concat, stack, equal, reshape, cond)
    },
    **{fn.__name__: fn for fn in (to_number, strlen, as_string, join)},
    "shape": shape_of,
}
"""The functions that `fn` expressions of pipelines may call."""

PROGRAMS = {
    fn.__name__: fn
    for fn in (
        reduce_sum,
        reduce_mean,
        reduce_max,
        concat,
        stack,
        cast,
        reshape,
        square,
        matmul,
        shape_of,
        identity,
        zeros,
        ones,
        fill,
        const,
    )
}
"""The functions that programs may call."""
