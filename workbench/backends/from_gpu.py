"""What comes from a GPU to the notebook: values as they can travel, errors in words."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from workbench.backends import cupy as gpu


def fetched(value: Any) -> Any:
    """`value` as it can travel: arrays on a GPU come to the host, as NumPy arrays or CPU tensors of PyTorch."""
    if type(value) is np.ndarray or not gpu.is_gpu_array(value):
        return value
    if type(value).__module__.partition(".")[0] == "torch":
        return value.detach().cpu()
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        jax: Any = sys.modules["jax"]
        return jax.device_get(value)
    return gpu.to_host(value)


def described_error(error: BaseException, replica: int) -> BaseException:
    """`error`, or what says the same more clearly: who ran out of which memory."""
    return gpu.out_of_memory(error, replica) or error
