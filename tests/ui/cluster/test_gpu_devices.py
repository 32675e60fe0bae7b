"""GPUs among the devices and in the topology, on machines without any: the driver and its NVML are simulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import workbench as wb
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.until import until
from workbench.runtime.process import gpu_use, gpus
from workbench.runtime.process.gpu_use import GpuUse
from workbench.ui.cluster.cluster_model import DeviceHistory

GIB = 1 << 30


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[GpuUse]:
    """What is known of each GPU."""
    found = [GpuUse(0, "NVIDIA H200", 37.0, 72 * GIB, 80 * GIB, "NVML")]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpus, "_driver_count", lambda: 1)
    monkeypatch.setattr(gpus, "_has_cupy", lambda: True)
    monkeypatch.setattr(gpus, "accelerator", lambda: SimulatedGpus(["gpu-0"]))
    monkeypatch.setattr(gpus, "use", lambda ordinal: None)
    monkeypatch.setattr(gpu_use, "sample", lambda ordinals: [found[ordinal] for ordinal in ordinals])
    return found


@pytest.fixture
def cluster(uses: list[GpuUse]) -> Iterator[wb.Cluster]:
    with wb.connect(gpu_replicas=2, processes=False, replace=True) as cluster:
        yield cluster


def rows(cluster: wb.Cluster) -> dict[str, list[str]]:
    """The columns of each GPU by its name, once a heartbeat has told of one."""
    until(
        lambda: any(device.kind == "GPU" for device in DeviceHistory(cluster).model().devices),
        "a heartbeat that tells of a GPU",
    )
    lines = [line.split("  ") for line in str(wb.devices(cluster)).splitlines()[2:]]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {line[1]: line[2:] for line in cells if line[2] == "GPU"}


def test_a_gpu_that_replicas_share_has_one_row(cluster: wb.Cluster) -> None:
    assert rows(cluster) == {
        "NVIDIA H200 of worker 0": ["GPU", "live", "37\N{NARROW NO-BREAK SPACE}%", "72 GiB", "80 GiB"]
    }


def test_without_nvml_its_row_says_so(uses: list[GpuUse], cluster: wb.Cluster) -> None:
    uses[0] = GpuUse(0, "NVIDIA H200", None, 72 * GIB, 80 * GIB, "CUDA")
    until(lambda: "without NVML" in str(rows(cluster)), "a heartbeat that tells of a GPU without NVML")

    assert rows(cluster) == {
        "NVIDIA H200 of worker 0, without NVML": ["GPU", "live", "–", "72 GiB", "80 GiB"]
    }


def test_the_topology_names_the_gpu_of_each_device(cluster: wb.Cluster) -> None:
    text = str(wb.topology(cluster))

    assert "gpu:0 NVIDIA H200, 80 GiB, shared" in text
    assert "gpu:1 NVIDIA H200, 80 GiB, shared" in text


def test_memory_of_a_gpu_that_is_nearly_full_is_told(uses: list[GpuUse], cluster: wb.Cluster) -> None:
    uses[0] = GpuUse(0, "NVIDIA H200", 37.0, 79 * GIB, 80 * GIB, "NVML")
    strategy = wb.MirroredStrategy()
    strategy.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.float32(1)))
    cluster.flush_telemetry(60)

    def said() -> str:
        return str(wb.overview(strategy))

    until(lambda: "nearly full" in said(), "a heartbeat that tells of a nearly full memory")

    assert "Memory of replica 0 is nearly full: 79 GiB of 80 GiB" in said()
