"""Finds functions whose result sizes depend only on the sizes of their arguments.

For `(x.astype(np.float32) - mean) / std`, two calls show all sizes. This holds for code without branches that computes
with its arguments and NumPy's functions, as long as no number in an array becomes a size, an index or a mask. The code
shows the first (`straight_code.py`), and a call with `Sized` arrays the second.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workbench import tree
from workbench.data.blocks.straight_code import Unprovable, require_names
from workbench.data.spec import TensorSpec

_OF_ARRAYS: Final = frozenset(
    "clip column_stack concatenate cross dot dstack einsum hstack inner isclose matmul nan_to_num outer stack "
    "tensordot vdot vstack where".split()
)
"""Functions all of whose arguments may be arrays."""
_OF_ONE: Final = frozenset(
    "all amax amin any argmax argmin argsort around average broadcast_to cumprod cumsum diff expand_dims flip fliplr "
    "flipud full_like max mean median min moveaxis ones_like pad percentile prod ptp quantile ravel repeat reshape "
    "roll rollaxis rot90 round sort squeeze std sum swapaxes take tile transpose var zeros_like".split()
)
"""Functions whose first argument may be an array; the others may hold sizes, axes and indices."""
_METHODS: Final = (
    "all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min "
    "prod ravel repeat reshape round squeeze std sum swapaxes trace transpose var".split()
)
_DTYPES: Final = frozenset("complex64 complex128 dtype float16 imag ndim newaxis real shape size T".split())
_UFUNCS: Final = frozenset(name for name, value in vars(np).items() if isinstance(value, np.ufunc))
_NAMES: Final = _OF_ARRAYS | _OF_ONE | frozenset(_METHODS) | _DTYPES | _UFUNCS
_PLAIN: Final = int, float, complex, str, type, np.dtype, type(None), type(...)


def depends_on_sizes(fn: Callable[..., Any], element_spec: Any) -> bool:
    """Whether, after a check of a function's code and its arguments' spec, a call with `Sized` arrays decides."""
    for spec in tree.flatten(element_spec)[0]:
        if not isinstance(spec, TensorSpec) or spec.dtype.kind not in "biufc":
            return False
        if spec.shape is None or None in spec.shape:
            return False
    try:
        require_names(fn, _NAMES)
    except Unprovable:
        return False
    return True


def sized(element: Any) -> Any:
    """A made-up element of numbers whose arrays raise `Unprovable` if a value may become a size."""
    return tree.map(_sized, element)


def _sized(value: Any) -> Any:
    """A NumPy result with its arrays and numbers as `Sized`."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).view(Sized)
    return type(value)(map(_sized, value)) if type(value) in (tuple, list) else value


def _unsized(value: Any) -> Any:
    if isinstance(value, Sized):
        return value.view(np.ndarray)
    return type(value)(map(_unsized, value)) if type(value) in (tuple, list) else value


def _require_plain(value: Any) -> None:
    """Rejects an argument that may contain a number of an array."""
    if type(value) in (tuple, list):
        for part in value:
            _require_plain(part)
    elif type(value) is slice:
        _require_plain((value.start, value.stop, value.step))
    elif isinstance(value, np.ndarray | np.generic) or not isinstance(value, _PLAIN):
        raise Unprovable(f"{type(value).__name__} may be a size or an index")


class Sized(np.ndarray[Any, np.dtype[Any]]):
    """An array, or a number as a 0-d array, that is rejected where its values may determine sizes."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise Unprovable(f"numpy.{ufunc.__name__}.{method}")
        named = {name: _unsized(value) for name, value in kwargs.items()}
        return _sized(ufunc(*map(_unsized, inputs), **named))

    def __array_function__(self, function: Any, types: Any, args: Any, more: Any) -> Any:
        name = function.__name__
        if name in _OF_ONE:
            _require_plain((list(args[1:]), list(more.values())))
        elif name not in _OF_ARRAYS or (name == "where" and len(args) + len(more) < 3):
            raise Unprovable(f"numpy.{name}")
        named = {key: _unsized(value) for key, value in more.items()}
        return _sized(function(*map(_unsized, args), **named))

    def __getitem__(self, key: Any) -> Any:
        _require_plain(key)
        return _sized(self.view(np.ndarray)[key])

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise Unprovable("it takes a value of an array as a number")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __contains__ = _refused
    __hash__ = _refused  # type: ignore[assignment]  # scalars have one
    item = tolist = tobytes = _refused


def _of_arguments(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def checked(self: Sized, *args: Any, **more: Any) -> Any:
        if name not in _OF_ARRAYS:
            _require_plain((list(args), list(more.values())))
        named = {key: _unsized(value) for key, value in more.items()}
        return _sized(method(self.view(np.ndarray), *map(_unsized, args), **named))

    return checked


for _name in _METHODS:
    setattr(Sized, _name, _of_arguments(_name))
