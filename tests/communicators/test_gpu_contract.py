"""The contract of communicators on simulated GPUs: it checks our use of CuPy and NCCL, not these."""

from __future__ import annotations

import pytest

from tests.contracts.communicator import AcrossProcesses, AloneContract, CommunicatorContract
from tests.contracts.processes import Layout


class OnGpus(CommunicatorContract):
    """What the simulation itself leaves behind is no leak: `test_gpu` looks at what our own code does."""

    test_nothing_is_left_after_close = None  # type: ignore[assignment]


class TestAloneOnAGpu(AloneContract):
    layout = Layout((("a", 1),), gpus="own")
    test_nothing_is_left_after_close = None  # type: ignore[assignment]


class TestThreeReplicasOnOneGpu(OnGpus):
    layout = Layout((("a", 3),), gpus="shared")


class TestTwoGpusInOneProcess(OnGpus):
    layout = Layout((("a", 2),), gpus="own")


@pytest.mark.thorough
class TestAProcessPerGpu(OnGpus, AcrossProcesses):
    layout = Layout((("a", 1), ("a", 1)), gpus="own")


class TestTwoHostsOfTwoGpus(OnGpus, AcrossProcesses):
    layout = Layout((("a", 2), ("b", 2)), gpus="own")
