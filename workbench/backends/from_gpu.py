"""Converts values and errors between the notebook and a GPU."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from workbench.backends import cupy as gpu
from workbench.errors import OutOfDeviceMemory


def fetched(value: Any) -> Any:
    """`value` in a form that can be sent: arrays on a GPU become NumPy arrays or CPU tensors of PyTorch."""
    if type(value) is np.ndarray or not gpu.is_gpu_array(value):
        return value
    if type(value).__module__.partition(".")[0] == "torch":
        return value.detach().cpu()
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        jax: Any = sys.modules["jax"]
        return jax.device_get(value)
    return gpu.to_host(value)


def sent(value: Any) -> Any:
    """`value` for a replica on a GPU: arrays with CuPy's dtypes on the current GPU, everything else unchanged."""
    if type(value) is np.ndarray and value.dtype.name in gpu.DTYPES:
        return gpu.namespace().asarray(value.astype(value.dtype.newbyteorder("="), copy=False))
    return value


def described_error(error: BaseException, replica: int) -> BaseException:
    """`error`, or a clearer one with the same traceback: which replica ran out of which memory."""
    # Raised in a collective, which does not know the replica.
    if isinstance(error, OutOfDeviceMemory) and error.replica < 0:
        clearer: BaseException = OutOfDeviceMemory(f"replica {replica}: {error}", replica=replica)
    else:
        clearer = gpu.out_of_memory(error, replica) or error
    return clearer.with_traceback(error.__traceback__)
