"""Processes for the contract suite, as for the collectives that need no GPU; CUDA is open before any test."""

from __future__ import annotations

from contextlib import suppress

import pytest

import workbench as wb
from tests.communicators.conftest import pool as pool
from tests.gpu.nccl import allow_sharing
from workbench.backends import cupy as gpu
from workbench.errors import BackendUnavailable


@pytest.fixture(scope="session", autouse=True)
def cuda_is_open(own_registry: None) -> None:
    """CUDA and NVML keep a socket and some eventfds from their first use on: no test module leaves those behind."""
    with suppress(BackendUnavailable):
        allow_sharing()
        gpu.array([1.0])
        with wb.connect(gpu_replicas=1):
            pass
