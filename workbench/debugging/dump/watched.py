"""NumPy arrays whose operations are recorded.

NumPy calls `__array_ufunc__` and `__array_function__` of an operand that has them, so operations on such arrays are
recorded, and their results are such arrays again: a function that receives them need not be changed. NumPy's warnings
name the line that called it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from workbench import tree
from workbench.backends.users_line import apply_at_users_line
from workbench.debugging.dump.recording import thread


class Watched(np.ndarray):
    """A view of an array, whose operations go to the recording of their thread."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(_plain(part) for part in out)
        result = apply_at_users_line()(getattr(ufunc, method), *map(_plain, inputs), **kwargs)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        watched = _recorded(name, result)
        return watched if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # Bound here, because `func` may itself have a parameter named `function`.
        call = functools.partial(func, *_plain(args), **_plain(kwargs))
        return _recorded(func.__name__, apply_at_users_line()(call))

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()


def watched(values: Any) -> Any:
    """The structure with watched NumPy arrays."""
    return tree.map(lambda leaf: leaf.view(Watched) if type(leaf) is np.ndarray else leaf, values)


def unwatched(values: Any) -> Any:
    """The structure with ordinary arrays."""
    return tree.map(lambda leaf: leaf.view(np.ndarray) if type(leaf) is Watched else leaf, values)


def _recorded(op: str, result: Any) -> Any:
    recording = thread.recording
    if recording is None:  # the user kept it after the function ended
        return result
    outputs = result if type(result) is tuple else (result,)
    recording.add(op, outputs)
    wrapped = tuple(part.view(Watched) if type(part) is np.ndarray else part for part in outputs)
    return wrapped if type(result) is tuple else wrapped[0]


def _plain(value: Any) -> Any:
    """The value with ordinary arrays, including those in lists, tuples and dictionaries."""
    if isinstance(value, Watched):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(item) for key, item in value.items()} if type(value) is dict else value
