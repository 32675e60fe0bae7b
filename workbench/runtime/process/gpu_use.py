"""Measures the use of a worker's GPUs by NVIDIA's management library (NVML) and its binding `pynvml`.

NVML needs no CUDA context and includes all processes. If it is missing or refuses, CUDA reports the memory, but only
after replicas have used the GPU: an earlier query would create a context, which itself takes memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from workbench.runtime.process import gpus

METRIC = "workbench-gpus"
"""The name of the use of GPUs in workers' heartbeats."""
_AGAIN_SECONDS = 0.9
"""How old an answer may be; small clusters send heartbeats twice a second."""
_PATIENCE_SECONDS = 1.0
"""How long a heartbeat waits for a GPU driver that does not answer."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Use of one GPU by all processes.

    Attributes:
      ordinal: Its number among the GPUs that the worker sees.
      name: Such as "NVIDIA H200"; "GPU" if unknown.
      percent: Share of time in which something ran on it, as sampled by NVML; None if unknown.
      memory_bytes: Used memory, or None.
      memory_limit_bytes: All memory, or None.
      source: "NVML", "CUDA" if only memory is known, "" if nothing is.
    """

    ordinal: int
    name: str = "GPU"
    percent: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    source: str = ""


def sample(ordinals: Sequence[int]) -> list[GpuUse]:
    """The current use of these GPUs, each queried once. Takes milliseconds, or as long as the GPU driver is stuck."""
    nvml = _nvml(os.getpid())
    found = {each: _by_nvml(nvml, each) or _by_cuda(each) or GpuUse(each) for each in set(ordinals)}
    return [found[each] for each in ordinals]


@lru_cache(maxsize=1)
def _nvml(pid: int) -> Any | None:
    """NVML's binding, initialised in this process (again after a fork); None without it, NVML or a driver."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _by_nvml(nvml: Any | None, ordinal: int) -> GpuUse | None:
    if nvml is None:
        return None
    try:
        handle = _handle(nvml, ordinal)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        name = nvml.nvmlDeviceGetName(handle)
    # From NVML, or from CUDA when querying the device: monitoring must not disturb anything.
    except Exception:
        return None
    return GpuUse(
        ordinal,
        name if isinstance(name, str) else name.decode(),
        _percent(nvml, handle),
        int(memory.used),
        int(memory.total),
        "NVML",
    )


def _handle(nvml: Any, ordinal: int) -> Any:
    """NVML's handle of a GPU.

    NVML counts in the order of PCI addresses, including GPUs that this process cannot see.
    """
    named = gpus.visible()[ordinal]
    if not named.isdigit():  # a UUID, the only name for a part of a GPU: MIG-…
        try:
            return nvml.nvmlDeviceGetHandleByUUID(named)
        except nvml.NVMLError:
            pass  # it may be a prefix, which CUDA accepts
    if (cuda := _cuda()) is not None:
        return nvml.nvmlDeviceGetHandleByPciBusId(cuda.accelerator.identity(ordinal).pci)
    return nvml.nvmlDeviceGetHandleByIndex(int(named) if named.isdigit() else ordinal)


def _percent(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except nvml.NVMLError:  # a part of a GPU has no utilisation
        return None


def _by_cuda(ordinal: int) -> GpuUse | None:
    cuda = _cuda()
    if cuda is None:
        return None
    try:
        memory, identity = cuda.memory(ordinal), cuda.accelerator.identity(ordinal)
    except Exception:  # CuPy has its own classes; after a device error, every call raises it
        return None
    return GpuUse(ordinal, identity.name, None, memory.total - memory.free, memory.total, "CUDA")


def _cuda() -> Any | None:
    """CuPy's backend, if replicas of this process have used it."""
    backend = sys.modules.get("workbench.backends.cupy")
    return backend if backend is not None and backend.in_use() else None


class GpuMeter:
    """Answers a worker's event loop without long waits: one thread at a time queries the GPU driver."""

    def __init__(self, ordinals: Sequence[int]) -> None:
        """Makes no query yet."""
        self._ordinals = tuple(ordinals)
        self._known: list[GpuUse] = []
        self._asked = 0.0
        self._asking: asyncio.Future[list[GpuUse]] | None = None

    async def now(self) -> list[GpuUse]:
        """The use at most a second ago, or the latest known if the GPU driver does not answer in time."""
        if self._asking is None:
            if time.monotonic() - self._asked < _AGAIN_SECONDS and self._known:
                return self._known
            self._asked = time.monotonic()
            self._asking = asyncio.ensure_future(asyncio.to_thread(sample, self._ordinals))
        asking = self._asking
        await asyncio.wait([asking], timeout=_PATIENCE_SECONDS)
        if asking.done() and self._asking is asking:  # otherwise another heartbeat has taken the answer
            self._asking = None
            with contextlib.suppress(Exception):  # a failed query must not disturb a heartbeat
                self._known = asking.result()
        return self._known

    async def told(self) -> list[dict[str, Any]]:
        """The result of `now`, as fields for a message."""
        return [asdict(use) for use in await self.now()]
