"""What of the script can run without a GPU: its replicas over simulated ones, its training on CPUs, its table."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.gpu import finiteness, kernels, programs, sharing
from tests.gpu.replicas import threads_of
from tests.gpu.results import Row, held, table
from workbench.backends import cupy as gpu


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedGpus:
    gpus = SimulatedGpus()
    here = threading.local()
    monkeypatch.setattr(gpu, "accelerator", gpus)
    monkeypatch.setattr(gpu, "use", lambda ordinal: setattr(here, "ordinal", ordinal))
    monkeypatch.setattr(gpu, "array", lambda value: gpus.put(value, getattr(here, "ordinal", 0)))
    monkeypatch.setattr(gpu, "to_host", gpus.get)
    return gpus


def test_replicas_that_share_a_gpu(simulated: SimulatedGpus) -> None:
    assert [row.state for row in sharing.shared_gpu(True)] == ["ok"] * 3


def test_replicas_of_one_process_on_two_gpus(simulated: SimulatedGpus) -> None:
    assert threads_of(2, {0: 0, 1: 1}) == []


def test_a_wrong_result_is_found(simulated: SimulatedGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    combine = simulated.combine

    def broken(op: str, *args: Any, **options: Any) -> None:
        combine("sum" if op == "prod" else op, *args, **options)

    monkeypatch.setattr(simulated, "combine", broken)
    assert any("prod float32" in text for text in threads_of(2, {0: 0, 1: 0}))


def test_the_fused_kernel_check(simulated: SimulatedGpus) -> None:
    assert [row.state for row in kernels.fused_correctness(True)] == ["ok", "ok"]


def test_the_check_of_flags(simulated: SimulatedGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row.state for row in finiteness.flags_of_kernels(True)] == ["ok"]
    monkeypatch.setattr(simulated, "flag_not_finite", lambda array, flag: None)
    assert [row.state for row in finiteness.flags_of_kernels(True)] == ["FAILED"]


def test_a_nan_on_cpus() -> None:
    with wb.connect(replicas=2, processes=False):
        said = programs.spoilt_by_one(wb)

    assert said.startswith("The first NaN or infinity: replica 1 gave it to all_reduce #1 at programs.py:")


def test_training_on_cpus() -> None:
    with wb.connect(replicas=2, processes=False):
        losses = programs.train(wb, 5)

    assert np.all(np.diff(losses) < 0)


def test_the_table_counts_states() -> None:
    text = table([held("a", True, "fine"), held("b", False, "broken", "< 1"), Row("c", "skipped", "no GPU")])

    assert "FAILED   b" in text
    assert "'ok': 1, 'FAILED': 1, 'skipped': 1" in text
