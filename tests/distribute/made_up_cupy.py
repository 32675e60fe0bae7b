"""A CuPy whose arrays are in the memory of the host, and which is as strict as the real one.

Its arrays are no NumPy arrays: they refuse to become one unasked, and refuse to be mixed with one. So code that
forgets where an array is fails here as it would on a GPU.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from workbench.backends import numpy as backend
from workbench.backends.accelerator import GpuIdentity
from workbench.backends.cupy import DTYPES
from workbench.backends.flags import FLAG, Flags
from workbench.communicators.core.finiteness import can_be_infinite


class Device:
    """The only one."""

    id = 0


class Stream:
    """The only one, on which everything is done at once."""

    ptr = 0

    def synchronize(self) -> None:
        pass


class ndarray(NDArrayOperatorsMixin):
    """An array "on the GPU"."""

    device = Device()
    host = np.empty(0)

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)
    size = property(lambda self: self.host.size)
    ndim = property(lambda self: self.host.ndim)
    nbytes = property(lambda self: self.host.nbytes)
    T = property(lambda self: ndarray(self.host.T))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _wrapped(getattr(ufunc, method)(*map(_unwrapped, inputs), **kwargs))

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(np.asarray(self.host[key]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[key] = _unwrapped(value)

    def __len__(self) -> int:
        return len(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __getattr__(self, name: str) -> Any:
        if name not in (
            "reshape",
            "astype",
            "view",
            "mean",
            "sum",
            "max",
            "min",
            "copy",
            "ravel",
            "tolist",
            "all",
        ):
            raise AttributeError(name)
        method = getattr(self.host, name)
        return lambda *args, **kwargs: _wrapped(method(*args, **kwargs))


ndarray.__module__ = "cupy"


def _unwrapped(value: Any) -> Any:
    if type(value) is np.ndarray:
        raise TypeError(f"Unsupported type {type(value)}")
    own = getattr(value, "__cupy_get_ndarray__", None)
    value = value if own is None else own()
    return value.host if isinstance(value, ndarray) else value


def _wrapped(value: Any) -> Any:
    return ndarray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


class Module(ModuleType):
    """`cupy`: NumPy's functions over such arrays."""

    ndarray = ndarray
    cuda = SimpleNamespace(Device=Device, get_current_stream=Stream)

    def __init__(self) -> None:
        super().__init__("cupy")

    def array(self, value: Any, dtype: Any = None) -> ndarray:
        made = np.array(value if type(value) is np.ndarray else _unwrapped(value), dtype)
        if made.dtype.name not in DTYPES or not made.dtype.isnative:
            raise ValueError(f"Unsupported dtype {made.dtype}")
        return ndarray(made)

    def asarray(self, value: Any, dtype: Any = None) -> ndarray:
        same = isinstance(value, ndarray) and dtype in (None, value.dtype)
        return value if same else self.array(value, dtype)

    def asnumpy(self, value: Any) -> np.ndarray:
        return np.array(value.host)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(np, name)
        return lambda *args, **kwargs: _wrapped(function(*map(_unwrapped, args), **kwargs))


class Accelerator:
    """`Accelerator` over such arrays; everything happens at once."""

    nccl = None

    def __init__(self) -> None:
        self.flags = Flags(np.zeros(256, FLAG))

    def owns(self, x: Any) -> bool:
        return isinstance(x, ndarray) or hasattr(x, "__cupy_get_ndarray__")

    def view(self, x: Any) -> ndarray:
        return x if isinstance(x, ndarray) else x.__cupy_get_ndarray__()

    def described(self, x: Any) -> Any:
        return self.view(x)

    def handed_over(self, described: Sequence[Any]) -> Sequence[Any]:
        return described

    def like(self, array: Any, original: Any) -> Any:
        return array

    def ordinal(self, array: Any) -> int:
        return 0

    def identity(self, ordinal: int) -> GpuIdentity:
        return GpuIdentity("made up", "0000:00:00.0")

    @contextmanager
    def on(self, ordinal: int, stream: Any = None) -> Iterator[None]:
        yield

    def stream(self) -> object:
        return object()

    def event(self, *, timed: bool = True) -> list[int]:
        return [0]

    def record(self, event: list[int]) -> None:
        event[0] = time.monotonic_ns()

    def wait(self, event: list[int]) -> None:
        pass

    def done(self, event: list[int]) -> bool:
        return True

    def elapsed_ns(self, first: list[int], second: list[int]) -> int:
        return second[0] - first[0]

    def empty(self, count: int, dtype: np.dtype) -> ndarray:
        return ndarray(np.empty(count, dtype))

    def flat(self, arrays: Sequence[ndarray], dtype: np.dtype) -> ndarray:
        return ndarray(np.concatenate([array.host.reshape(-1) for array in arrays]).astype(dtype))

    def concatenate(self, parts: Sequence[ndarray], axis: int) -> ndarray:
        return ndarray(np.concatenate([part.host for part in parts], axis))

    def copy(self, source: ndarray, target: ndarray) -> None:
        target.host[...] = source.host

    def bytes_per_ns(self, ordinal: int) -> float:
        return 1000.0

    def flag_not_finite(self, array: ndarray, flag: int) -> None:
        if can_be_infinite(array.dtype) and not np.isfinite(array.host).all():
            ctypes.c_uint32.from_address(flag).value = 1

    def combine(
        self,
        op: str,
        sources: Sequence[ndarray],
        targets: Sequence[ndarray],
        *,
        mean_over: int = 0,
        flags: int = 0,
    ) -> None:
        for k, source in enumerate(sources if flags else ()):
            self.flag_not_finite(source, flags + k * FLAG.itemsize)
        wide = backend.accumulator(sources[0].dtype, op)
        total = backend.ufunc(op).reduce([source.host.astype(wide) for source in sources])
        for target in targets:
            target.host[...] = total / wide.type(mean_over) if mean_over else total
