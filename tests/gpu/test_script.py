"""What of the script can run without a GPU: its replicas over simulated ones, its training on CPUs, its table."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.benchmarks.readme import between
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.gpu import finiteness, kernels, numerics, page, programs, sharing, strategies
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


def test_nan_in_lines_and_dumps_on_cpus() -> None:
    with wb.connect(replicas=2, processes=False):
        rows = [*numerics.lines_on(wb), *numerics.dumps_on(wb)]

    assert [row.found for row in rows if row.state not in ("ok", "noted")] == []


def test_training_on_cpus() -> None:
    with wb.connect(replicas=2, processes=False):
        losses = programs.train(wb, 5)

    assert np.all(np.diff(losses) < 0)


def test_the_parts_of_a_step_on_cpus() -> None:
    with wb.connect(replicas=1):
        said = strategies.parts_of_a_step(wb, 2)

    assert [part.strip("0123456789, ") for part in said.split(" µs") if part] == [
        "empty",
        "with its arguments",
        "with gradients",
        "with all_reduce",
    ]


def test_a_killed_worker_on_cpus() -> None:
    with wb.connect(replicas=2):
        assert programs.lose_one(wb) == ""


def test_the_table_counts_states() -> None:
    text = table([held("a", True, "fine"), held("b", False, "broken", "< 1"), Row("c", "skipped", "no GPU")])

    assert "FAILED   b" in text
    assert "'ok': 1, 'FAILED': 1, 'skipped': 1" in text


def test_the_guide_says_what_the_results_say() -> None:
    text = between(page.PAGE.read_text(encoding="utf-8"))

    assert text == page.section(page.runs()), "python -m tests.gpu.page"


def test_a_check_has_the_newest_run_that_did_not_skip_it() -> None:
    hardware = {
        "gpus": ["NVIDIA H200"], "memory_bytes": 139 << 30, "driver": 13000, "nccl": 22809, "cupy": "14.2.0",
        "numpy": "2.5.2", "python": "3.12.3",
    }  # fmt: skip

    def run(day: int, **states: str) -> dict[str, Any]:
        rows = [
            {"name": name, "state": state, "found": f"day {day}", "bar": ""} for name, state in states.items()
        ]
        return {"date": f"2026-11-{day}T00:00", "hardware": hardware | {"nccl": 22800 + day}, "rows": rows}

    text = page.section(
        [
            run(10, a="ok", b="FAILED", c="skipped", gone="ok"),
            run(11, a="skipped", c="skipped", d="ok"),
            run(12, b="noted"),
        ]
    )

    assert text.splitlines()[0].startswith(
        "1. 2026-11-10: 1 × NVIDIA H200 of 139 GiB, CUDA 13.0, CuPy 14.2.0, NCCL 2.28.10,"
    )
    assert text.splitlines()[6:] == [
        "| 1 | a | day 10 |  | yes |",
        "| 3 | b | day 12 |  |  |",
        "| 1 | c | day 10 |  | skipped |",
        "| 2 | d | day 11 |  | yes |",
    ]
