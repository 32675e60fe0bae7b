"""The contract of communicators on real GPUs: CuPy's arrays, our kernel where replicas share one, NCCL elsewhere."""

from __future__ import annotations

import pytest

from tests.contracts.communicator import AcrossProcesses, AloneContract, CommunicatorContract
from tests.contracts.processes import Layout
from tests.gpu.hardware import count_gpus
from tests.gpu.nccl import no_sharing
from workbench.errors import BackendUnavailable

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def skip_without(count: int) -> None:
    try:
        found = count_gpus()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    if found < count:
        pytest.skip(f"needs {count} GPUs, this machine has {found}")


class OnGpu(AloneContract):
    """What CUDA itself keeps open is no leak of ours."""

    test_nothing_is_left_after_close = None  # type: ignore[assignment]

    @pytest.fixture(autouse=True)
    def needs_a_gpu(self) -> None:
        skip_without(1)


class TestAProcessPerReplicaOnOneGpu(OnGpu, AcrossProcesses):
    """With real NCCL between processes where there is one GPU only; `cuda_is_open` asks NCCL for that."""

    layout = Layout((("a", 1), ("a", 1)), gpus="shared, real")

    @pytest.fixture(autouse=True)
    def needs_nccl_that_shares(self, needs_a_gpu: None) -> None:
        if reason := no_sharing():
            pytest.skip(reason)


class OnTwoGpus(OnGpu):
    """With a GPU per replica."""

    @pytest.fixture(autouse=True)
    def needs_two_gpus(self, needs_a_gpu: None) -> None:
        skip_without(2)


class TestAlone(OnGpu):
    layout = Layout((("a", 1),), gpus="own, real")


class TestThreeReplicasOnOneGpu(OnGpu, CommunicatorContract):
    layout = Layout((("a", 3),), gpus="shared, real")


class TestTwoGpusInOneProcess(OnTwoGpus, CommunicatorContract):
    layout = Layout((("a", 2),), gpus="own, real")


class TestAProcessPerGpu(OnTwoGpus, AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1)), gpus="own, real")
