"""Assertions about dtypes and kinds of values, which hold for traced values, too (as those of tf.debugging)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.arguments import several
from workbench.backends.numpy import as_dtype
from workbench.debugging.operands import dtype_of, each_replica, named, prefix
from workbench.errors import InvalidArgumentError


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Checks that `x` has an integer dtype, which bool is not (as tf.debugging.assert_integer).

    Args:
      x: An array, a number, or a value with a component per replica.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      TypeError: if it has another dtype.
    """

    def check(x: Any) -> None:
        dtype = dtype_of(x)
        if dtype.kind not in "iu":
            raise TypeError(f"{prefix(message)}assert_integer: expected an integer dtype, got {named(dtype)}")

    each_replica(check, x)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Checks the dtype of `tensor` (as tf.debugging.assert_type).

    Args:
      tensor: An array, a value with a component per replica, or a Python number: integers count as int32, floats as
        float32.
      tf_type: A NumPy dtype, its name, or "string".
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      TypeError: if it has another dtype.
    """
    wanted = as_dtype(tf_type)

    def check(tensor: Any) -> None:
        dtype = dtype_of(tensor)
        if dtype != wanted:
            raise TypeError(
                f"{prefix(message)}assert_type: expected dtype {named(wanted)}, got {named(dtype)}"
            )

    each_replica(check, tensor)


def assert_same_float_dtype(tensors: Iterable[Any] | None = None, dtype: Any = None) -> np.dtype[Any]:
    """Returns the floating dtype that all `tensors` have (as tf.debugging.assert_same_float_dtype).

    Args:
      tensors: Arrays and numbers; None among them is ignored.
      dtype: The dtype that they must have. Without arrays, it is the result, or float32 if it is None, too.

    Raises:
      InvalidArgumentError: if they have several dtypes, or one that is not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for index, tensor in enumerate(
        () if tensors is None else several(tensors, "assert_same_float_dtype: tensors", "[x, y]")
    ):
        if tensor is None:
            continue
        found = dtype_of(tensor)
        wanted = wanted or found
        if found != wanted:
            raise InvalidArgumentError(
                f"assert_same_float_dtype: array {index} has dtype {named(found)}, expected {named(wanted)}"
            )
    wanted = wanted or np.dtype(np.float32)
    if wanted.kind != "f" and not wanted.name.startswith(("bfloat", "float")):
        raise InvalidArgumentError(f"assert_same_float_dtype: expected a floating dtype, got {named(wanted)}")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Checks that `values` is iterable, and not an array or text, which are iterable, too.

    As tf.debugging.assert_proper_iterable: lists, tuples, dicts and generators pass.

    Raises:
      TypeError: if it is an array, a text, or not iterable.
    """
    if isinstance(values, str | bytes) or hasattr(values, "dtype") or not isinstance(values, Iterable):
        raise TypeError(
            f"assert_proper_iterable: expected values in a list, tuple or dict, got {type(values).__name__}; write "
            "[value]"
        )


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether `tensor` is an array of numbers (as tf.debugging.is_numeric_tensor).

    Python numbers, lists, and arrays of bools or strings are not. NumPy arrays count: they replace the reference's
    tensors.
    """
    dtype = getattr(tensor, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufc" or (dtype.kind == "V" and dtype.names is None and dtype.subdtype is None)
    return dtype is not None and str(dtype).removeprefix("torch.").startswith(
        ("float", "bfloat", "int", "uint", "complex")
    )
