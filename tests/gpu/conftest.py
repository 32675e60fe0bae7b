"""Processes for the contract suite, as for the collectives that need no GPU; CUDA is open before any test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

import workbench as wb
from tests.communicators.conftest import pool as pool
from tests.gpu.nccl import SHARING
from workbench.backends import cupy as gpu
from workbench.errors import BackendUnavailable


@pytest.fixture(scope="session", autouse=True)
def nccl_shares_a_gpu() -> Iterator[None]:
    """Processes of the tests may share a GPU, if their NCCL can do that."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHARING.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session", autouse=True)
def cuda_is_open(own_registry: None) -> None:
    """CUDA and NVML keep a socket and some eventfds from their first use on: no test module leaves those behind."""
    with suppress(BackendUnavailable):
        gpu.array([1.0])
        with wb.connect(gpu_replicas=1):
            pass
