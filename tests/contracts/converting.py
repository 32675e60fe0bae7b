"""The contract suite over arrays of other libraries: tests think in NumPy, the communicator sees something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators import Reduction

Convert = Callable[[Any], Any]


class Converting:
    """A communicator for tests that think in NumPy.

    Args:
      communicator: What is tested.
      put: Makes an array of the other kind from what goes in.
      get: Makes a NumPy array from what comes out.
    """

    def __init__(self, communicator: Any, put: Convert, get: Convert) -> None:
        self._communicator = communicator
        self._put = put
        self._get = get

    def __getattr__(self, name: str) -> Any:
        return getattr(self._communicator, name)

    def _fetched(self, result: Any) -> Any:
        return None if result is None else self._get(result)

    def all_reduce(self, arrays: Sequence[Any], request: Reduction) -> list[Any]:
        mine = [self._put(array) for array in arrays]
        found = self._communicator.all_reduce(mine, request)
        results = [self._get(result) for result in found]
        for result in results if request.shared else ():
            result.flags.writeable = False  # the test owns the result of `get`
        return results

    def reduce(self, arrays: Sequence[Any], op: str, root: int, **options: Any) -> list[Any]:
        results = self._communicator.reduce([self._put(array) for array in arrays], op, root, **options)
        return [self._fetched(result) for result in results]

    def reduce_scatter(self, array: Any, op: str, **options: Any) -> Any:
        return self._get(self._communicator.reduce_scatter(self._put(array), op, **options))

    def all_gather(self, array: Any, axis: int, **options: Any) -> Any:
        return self._get(self._communicator.all_gather(self._put(array), axis, **options))

    def broadcast(self, array: Any, root: int, **options: Any) -> Any:
        if array is not None:
            return self._get(self._communicator.broadcast(self._put(array), root, **options))
        found = self._communicator.broadcast(None, root, **options)
        # A replica that contributes nothing has no library: it gets a NumPy array, or one of its accelerator.
        return found if type(found) is np.ndarray else self._get(found)


def of_gpu(accelerator: Any, ordinal: int) -> tuple[Convert, Convert]:
    """`put` and `get` of arrays on a GPU, simulated or real."""
    if hasattr(accelerator, "put"):
        return partial(accelerator.put, ordinal=ordinal), accelerator.get
    from workbench.backends import cupy

    def put(array: Any) -> Any:
        native = np.asarray(backend.view(array))
        with accelerator.on(ordinal):
            return cupy.array(native.astype(native.dtype.newbyteorder("="), copy=False))

    return put, cupy.to_host


def of_library(name: str) -> tuple[Convert, Convert]:
    """`put` and `get` of an array library; what comes out must be of that library again."""
    return _of_torch() if name == "torch" else _of_jax()


def _of_torch() -> tuple[Convert, Convert]:
    import torch

    def put(array: Any) -> Any:
        native = np.asarray(backend.view(array))
        native = native.astype(native.dtype.newbyteorder("="), copy=False)
        if any(stride < 0 for stride in native.strides) or not native.flags.writeable:
            native = native.copy()  # a tensor supports no negative strides and cannot be read-only
        if native.dtype.kind == "V":
            return torch.from_numpy(native.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(native)

    def get(result: Any) -> Any:
        assert type(result) is torch.Tensor, type(result)
        if result.dtype == torch.bfloat16:
            return result.view(torch.int16).numpy().view(backend.dtype_named("bfloat16"))
        return result.numpy()

    return put, get


def _of_jax() -> tuple[Convert, Convert]:
    import jax

    jax.config.update("jax_enable_x64", True)

    def put(array: Any) -> Any:
        native = np.array(backend.view(array))
        return jax.numpy.asarray(native.astype(native.dtype.newbyteorder("="), copy=False))

    def get(result: Any) -> Any:
        assert isinstance(result, jax.Array), type(result)
        return np.array(result)  # it is writable

    return put, get
