"""NVIDIA GPUs of this machine: their number, without touching them, and how workers get theirs."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import NoReturn

from workbench.arguments import count
from workbench.backends.accelerator import Accelerator
from workbench.backends.users_line import warn
from workbench.communicators.bootstrap import Gpus
from workbench.errors import BackendUnavailable, InvalidArgumentError
from workbench.extras import install_command

STUCK_EXIT_CODE = 70
"""The exit code of a worker that ends itself because a thread is stuck in NCCL or in a traced program."""
WORKER_ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""For all worker processes, including those with CPU devices, unless the user's environment overrides it. JAX uses any
GPU that it finds, and each process would take three quarters of its memory.
"""
_HIDDEN = ("", "-1", "none", "NoDevFiles")


def named() -> tuple[str, ...] | None:
    """The GPUs in CUDA_VISIBLE_DEVICES, even without a driver; None without the variable."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return None
    if variable.strip() in _HIDDEN:
        return ()
    return tuple(part.strip() for part in variable.split(",") if part.strip())


def visible() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them. Does not initialise them."""
    found = named()
    if found is None:
        return tuple(str(index) for index in range(_driver_count()))
    return found if found and _driver_count() else ()


@lru_cache(maxsize=1)
def _driver_count() -> int:
    """How many GPUs the driver's management library sees.

    It creates no CUDA context, and fails fast without a driver.
    """
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        count = ctypes.c_uint(0)
        if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return 0
    except (OSError, AttributeError):
        return 0
    return int(count.value)


def _has_cupy() -> bool:
    return importlib.util.find_spec("cupy") is not None


def default() -> tuple[str, ...]:
    """The GPUs that `connect()` uses without arguments: all that are visible, if CuPy is installed."""
    found = visible()
    if found and not _has_cupy():
        warn(
            f"{len(found)} NVIDIA GPUs are here and cannot be used without CuPy: {install_command('gpu13')} (for "
            f"drivers of CUDA 12: gpu12); replicas run on CPU devices",
            UserWarning,
        )
        return ()
    return found


def chosen(gpus: int | None, gpu_replicas: int | None) -> tuple[str, ...]:
    """The GPUs for `connect(gpus=…)` or `connect(gpu_replicas=…)`.

    Raises:
      BackendUnavailable: if there are not enough.
      InvalidArgumentError: if the numbers are invalid.
    """
    gpus = None if gpus is None else count(gpus, "gpus")
    gpu_replicas = None if gpu_replicas is None else count(gpu_replicas, "gpu_replicas")
    if gpus is not None and gpu_replicas is not None:
        raise InvalidArgumentError(
            "gpus (one replica on each) and gpu_replicas (all on one GPU) exclude each other"
        )
    wanted = 1 if gpus is None else gpus
    found = visible()
    if len(found) < wanted:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = "" if hidden is None else f" (CUDA_VISIBLE_DEVICES={hidden!r})"
        asked = "1 NVIDIA GPU was" if wanted == 1 else f"{wanted} NVIDIA GPUs were"
        raise BackendUnavailable(
            f"{asked} asked for, this process sees {len(found)}{seen}; `workbench doctor` says what is found; "
            f"wb.connect(replicas={gpu_replicas or wanted}) gives CPU devices"
        )
    return found[:wanted]


def assigned() -> bool:
    """Whether this worker was started for a GPU, as by dask-cuda; otherwise several workers may take the same one."""
    return "CUDA_VISIBLE_DEVICES" in os.environ and bool(visible()) and _has_cupy()


def ordinal(device_index: int, device_count: int, *, in_driver: bool = False) -> int:
    """The number of a device's GPU among the worker's visible ones; the first GPU for all if there are too few.

    dask-cuda gives each worker a rotated list of all GPUs, the first of which is its own. A worker in the driver's
    process sees all of the driver's GPUs, but puts all its replicas on one.

    Args:
      device_index: Number of the device in its worker.
      device_count: Number of devices of the worker.
      in_driver: Whether the worker is in the driver's process.
    """
    return device_index if not in_driver and 1 < device_count <= len(visible()) else 0


def of_group(local: Mapping[int, int], device_count: int, *, in_driver: bool) -> Gpus:
    """The GPUs of a worker's replicas.

    Args:
      local: rank -> device index on the worker.
      device_count: Number of devices of the worker.
      in_driver: Whether the worker is in the driver's process, which must not be ended.
    """
    ordinals = {rank: ordinal(index, device_count, in_driver=in_driver) for rank, index in local.items()}
    return Gpus(ordinals, accelerator(), on_stuck=None if in_driver else end_process)


def accelerator() -> Accelerator:
    """The library that drives GPUs."""
    from workbench.backends import cupy

    return cupy.accelerator


def use(ordinal: int) -> None:
    """Makes a GPU the current one of the calling thread.

    Raises:
      BackendUnavailable: if CuPy, the driver or the GPU is missing.
    """
    from workbench.backends import cupy

    cupy.use(ordinal)


def end_process(why: str) -> NoReturn:
    """Ends this worker at once, because a thread inside NCCL cannot be freed. Its nanny starts another one."""
    sys.stderr.write(f"workbench: {why}; the worker ends itself\n")
    sys.stderr.flush()
    os._exit(STUCK_EXIT_CODE)
