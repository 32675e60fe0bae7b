"""What results belong to."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from workbench.backends import cupy as gpu


def count_gpus() -> int:
    """How many GPUs this process sees.

    Raises:
      BackendUnavailable: If none can be used; says what is missing.
    """
    return int(gpu.namespace().cuda.runtime.getDeviceCount())


def hardware() -> dict[str, Any]:
    """What the results belong to."""
    cupy = gpu.namespace()
    memory = gpu.memory(0)
    try:
        nccl = gpu.accelerator.nccl.get_version()
    except Exception as error:
        nccl = f"none ({error})"
    return {
        "gpus": [gpu.accelerator.identity(i).name for i in range(count_gpus())],
        "memory_bytes": memory.total,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "nccl": nccl,
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
    }
