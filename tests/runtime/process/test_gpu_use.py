"""The use of GPUs, as a simulated NVML or CUDA tells it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from workbench.backends import cupy as backend
from workbench.backends.accelerator import GpuIdentity
from workbench.runtime.process import gpu_use, gpus
from workbench.runtime.process.gpu_use import GpuMeter, GpuUse, sample

GIB = 1 << 30
DEADLINE_SECONDS = 30.0


class NVMLError(Exception):
    """As pynvml's."""


class Nvml(ModuleType):
    """The binding on a machine with GPUs 0 to 3, of which the second is divided; GPU n has n GiB in use."""

    NVMLError = NVMLError

    def __init__(self, *, driver: bool = True) -> None:
        super().__init__("pynvml")
        self.driver = driver
        self.asked: list[str] = []

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self.asked.append(f"index {index}")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        self.asked.append(uuid)
        if uuid == "GPU-7f":  # CUDA takes a prefix
            raise NVMLError("Not Found")
        return 1

    def nvmlDeviceGetHandleByPciBusId(self, pci: str) -> int:
        self.asked.append(pci)
        return 2

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA H{handle}00"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=handle * GIB, total=80 * GIB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if handle == 1:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=handle * 10)


@pytest.fixture(autouse=True)
def another_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backend, "in_use", lambda: False)
    gpu_use._nvml.cache_clear()
    yield
    gpu_use._nvml.cache_clear()


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    module = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(gpus, "_driver_count", lambda: 4)
    return module


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas of this process compute on GPUs."""
    identity = GpuIdentity("00ff", "0000:3B:00.0", "NVIDIA H200")
    monkeypatch.setattr(backend, "in_use", lambda: True)
    monkeypatch.setattr(backend, "accelerator", SimpleNamespace(identity=lambda ordinal: identity))
    monkeypatch.setattr(backend, "memory", lambda ordinal: backend.Memory(80 * GIB, 60 * GIB, 5, 5))


def test_nvml_tells_use_memory_and_name(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    assert sample([3, 0, 3]) == [
        GpuUse(3, "NVIDIA H300", 30.0, 3 * GIB, 80 * GIB, "NVML"),
        GpuUse(0, "NVIDIA H000", 0.0, 0, 80 * GIB, "NVML"),
        GpuUse(3, "NVIDIA H300", 30.0, 3 * GIB, 80 * GIB, "NVML"),
    ]
    assert sorted(nvml.asked) == ["index 0", "index 3"]


@pytest.mark.parametrize(
    ("visible", "asked"),
    [("3", ["index 3"]), ("MIG-1f", ["MIG-1f"]), ("GPU-7f", ["GPU-7f", "index 0"])],
)
def test_the_gpu_is_the_one_that_the_worker_sees(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, visible: str, asked: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    (use,) = sample([0])

    assert nvml.asked == asked
    assert use.percent == (None if visible == "MIG-1f" else 10.0 * use.memory_bytes / GIB)  # type: ignore[operator]


def test_once_cuda_knows_the_gpu_its_address_counts(
    nvml: Nvml, cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    assert sample([0]) == [GpuUse(0, "NVIDIA H200", 20.0, 2 * GIB, 80 * GIB, "NVML")]
    assert nvml.asked == ["0000:3B:00.0"]


@pytest.mark.parametrize("module", [None, Nvml(driver=False)], ids=["no binding", "no driver"])
def test_without_nvml_nothing_is_known_before_replicas_have_used_the_gpu(
    monkeypatch: pytest.MonkeyPatch, module: Nvml | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)

    assert sample([0]) == [GpuUse(0, "GPU", None, None, None, "")]


@pytest.mark.parametrize("module", [None, Nvml(driver=False)], ids=["no binding", "no driver"])
def test_without_nvml_cuda_tells_the_memory(
    cuda: None, monkeypatch: pytest.MonkeyPatch, module: Nvml | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)

    assert sample([0]) == [GpuUse(0, "NVIDIA H200", None, 20 * GIB, 80 * GIB, "CUDA")]


def test_a_driver_that_does_not_answer_delays_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = threading.Event(), []

    def slow(ordinals: Any) -> list[GpuUse]:
        asked.append(ordinals)
        assert answers.wait(DEADLINE_SECONDS)
        return [GpuUse(0, "NVIDIA H200")]

    monkeypatch.setattr(gpu_use, "sample", slow)
    monkeypatch.setattr(gpu_use, "_PATIENCE_SECONDS", 0.01)

    async def heartbeats() -> list[list[GpuUse]]:
        meter = GpuMeter([0])
        found = [await meter.now() for _ in range(3)]
        answers.set()
        while not found[-1]:
            found.append(await meter.now())
        return found

    found = asyncio.run(heartbeats())
    assert found[:3] == [[], [], []]
    assert found[-1] == [GpuUse(0, "NVIDIA H200")]
    assert asked == [(0,)]


def test_a_failure_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [[GpuUse(0, "NVIDIA H200", 5.0)], RuntimeError("the GPU has fallen off the bus")]

    def next_answer(ordinals: Any) -> list[GpuUse]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: list[GpuUse] = answer
        return found

    monkeypatch.setattr(gpu_use, "sample", next_answer)
    monkeypatch.setattr(gpu_use, "_AGAIN_SECONDS", 0.0)

    async def heartbeats() -> list[list[GpuUse]]:
        meter = GpuMeter([0])
        return [await meter.now() for _ in range(2)]

    assert asyncio.run(heartbeats()) == [[GpuUse(0, "NVIDIA H200", 5.0)]] * 2
    assert answers == []
