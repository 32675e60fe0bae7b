"""Replicas on simulated GPUs, and an NCCL that works unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.communicators import simulated_nccl
from tests.communicators.gpu.replicas import Replicas


@pytest.fixture(autouse=True)
def working_nccl() -> Iterator[None]:
    simulated_nccl.faults.clear()
    yield
    simulated_nccl.faults.clear()
    simulated_nccl.give_up_waiting()


@pytest.fixture
def two() -> Iterator[Replicas]:
    replicas = Replicas(2)
    yield replicas
    replicas.close()


@pytest.fixture
def shared() -> Iterator[Replicas]:
    replicas = Replicas(3, shared=True)
    yield replicas
    replicas.close()
