"""ArrayLike: an object that holds an array and behaves like it in computations."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from workbench.backends.from_gpu import fetched
from workbench.backends.users_line import apply_at_users_line
from workbench.distribute.arrays.as_array import namespace_of

_IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()


class ArrayLike(NDArrayOperatorsMixin):
    """Operators, indexing and conversions of the array that `_array()` returns.

    Operators return plain arrays. Views of the array itself are read-only, because replicas keep it between steps and
    restore it when a step fails.
    """

    __slots__ = ()
    __hash__ = object.__hash__  # == compares elements, as for arrays; hashing is by identity

    def _array(self) -> Any:
        """The current array; callers must not write to it."""
        raise NotImplementedError

    def read_value(self) -> Any:
        """The current value, read-only; `numpy()` returns a writable copy."""
        array = self._array()
        if namespace_of(array) is not np:
            return array  # a JAX array, which is read-only, or an array on a device
        lent = array.view()
        lent.flags.writeable = False
        return lent

    value = read_value

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of the current value."""
        return np.array(fetched(self._array()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.read_value()
        if _is_cupy(array):
            raise TypeError(
                "NumPy cannot read a value on a GPU: ctx.xp.asarray(value) and value.read_value() leave "
                "it there, value.numpy() copies it to the host"
            )
        array = np.asarray(array)
        if copy:
            return np.array(array, dtype=dtype)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(item, ArrayLike) for item in kwargs.get("out", ())):
            raise TypeError(_no_writing("out="))
        arrays = [item._array() if isinstance(item, ArrayLike) else item for item in inputs]
        for array in arrays:
            namespace = namespace_of(array)
            if namespace is not np and method == "__call__":
                return getattr(namespace, ufunc.__name__)(*arrays, **kwargs)
        return apply_at_users_line()(getattr(ufunc, method), *arrays, **kwargs)

    def __jax_array__(self) -> Any:
        return sys.modules["jax"].numpy.asarray(self.read_value())

    @property
    def __cupy_get_ndarray__(self) -> Any:
        """Lets CuPy's functions take a variable with a component on a GPU."""
        array = self._array()
        if not _is_cupy(array):
            raise AttributeError("__cupy_get_ndarray__")
        return lambda: array

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._array().__dlpack_device__()
        return device

    def __getitem__(self, key: Any) -> Any:
        return self.read_value()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(_no_writing("item assignment"))

    def __len__(self) -> int:
        return len(self._array())

    def __iter__(self) -> Any:
        return iter(self.read_value())

    def __float__(self) -> float:
        return float(self._array())

    def __int__(self) -> int:
        return int(self._array())

    def __bool__(self) -> bool:
        return bool(self._array())

    def __index__(self) -> int:
        index: int = self._array().__index__()
        return index


def _is_cupy(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "cupy"


def _no_writing(what: str) -> str:
    return (
        f"{what} cannot write to a variable; use variable.assign(...), assign_add(...) or assign_sub(...), which keep "
        f"the replicas together"
    )


def _refuse(name: str) -> Any:
    def refused(self: ArrayLike, other: Any) -> Any:
        raise TypeError(_no_writing(name))

    return refused


for _name in _IN_PLACE:
    setattr(ArrayLike, f"__{_name}__", _refuse(f"__{_name}__"))
