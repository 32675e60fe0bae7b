"""GPU devices of the runtime, on machines without any: the driver is told of some, arrays are simulated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.communicators.simulated_gpu import SimulatedGpus
from workbench import runtime
from workbench.communicators import Reduction
from workbench.errors import BackendUnavailable, InvalidArgumentError
from workbench.runtime.process import gpus
from workbench.runtime.replica.env import ReplicaEnv


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpus, "_driver_count", lambda: 2)
    monkeypatch.setattr(gpus, "_has_cupy", lambda: True)


@pytest.fixture
def simulated(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> SimulatedGpus:
    accelerator = SimulatedGpus(["gpu-0"])
    monkeypatch.setattr(gpus, "accelerator", lambda: accelerator)
    monkeypatch.setattr(gpus, "use", lambda ordinal: None)
    return accelerator


@pytest.fixture
def shared_gpu(simulated: SimulatedGpus) -> Iterator[runtime.Cluster]:
    with runtime.connect(gpu_replicas=3, processes=False) as cluster:
        yield cluster


def run(cluster: runtime.Cluster, program: Any, *args: Any) -> list[Any]:
    group = cluster.group(cluster.devices, label="test")
    try:
        values: list[Any] = group.run(group.prepare(program), args).values()
        return values
    finally:
        group.close()


def test_without_a_driver_no_gpu_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_driver_count", lambda: 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")

    assert gpus.visible() == ()
    assert gpus.default() == ()


@pytest.mark.parametrize(("named", "seen"), [("3,GPU-7f", ("3", "GPU-7f")), ("", ()), ("-1", ())])
def test_visible_devices_limit_what_is_used(
    two_gpus: None, monkeypatch: pytest.MonkeyPatch, named: str, seen: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)

    assert gpus.visible() == seen


def test_gpus_without_cupy_are_left_alone_with_a_hint(
    two_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "_has_cupy", lambda: False)

    with pytest.warns(UserWarning, match=r"pip install -e \S+\[gpu13\]"):
        assert gpus.default() == ()


def test_asking_for_more_gpus_than_there_are(two_gpus: None) -> None:
    with pytest.raises(BackendUnavailable, match=r"3 NVIDIA GPUs were asked for, this process sees 2"):
        runtime.connect(gpus=3)


@pytest.mark.parametrize("options", [{"gpus": 1, "gpu_replicas": 2}, {"gpus": -1}, {"gpu_replicas": 0}])
def test_numbers_of_gpus_that_make_no_sense(two_gpus: None, options: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError):
        runtime.connect(**options)


@pytest.mark.parametrize("other", [{"replicas": 2}, {"hosts": 2}, {"replicas_per_worker": 2}, {"tpu": 2}])
def test_gpus_with_another_layout_are_refused(two_gpus: None, other: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError):
        runtime.connect(gpus=2, **other)


def test_a_worker_was_started_for_a_gpu(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not gpus.assigned()  # of all existing ones: which GPU it means is unknown
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")  # as dask-cuda does: its own first
    assert gpus.assigned()
    assert gpus.ordinal(0, 1) == 0


def test_devices_of_one_worker_have_gpus_of_their_own_if_there_are_enough(two_gpus: None) -> None:
    assert [gpus.ordinal(index, 2) for index in range(2)] == [0, 1]
    assert [gpus.ordinal(index, 3) for index in range(3)] == [0, 0, 0]
    assert [gpus.ordinal(index, 2, in_driver=True) for index in range(2)] == [0, 0]


def test_replicas_that_share_a_gpu_are_gpu_devices(shared_gpu: runtime.Cluster) -> None:
    assert [device.short for device in shared_gpu.devices] == ["GPU:0", "GPU:1", "GPU:2"]


def test_gpu_arrays_are_combined_on_the_gpu(shared_gpu: runtime.Cluster, simulated: SimulatedGpus) -> None:
    def program(env: ReplicaEnv) -> str:
        mine = simulated.put(np.full(5, env.rank + 1.0), 0)
        (total,) = env.communicator.all_reduce([mine], Reduction("sum", site="train.py:3"))
        (on_host,) = env.communicator.all_reduce([np.ones(2)], Reduction("sum"))
        return f"{simulated.get(total).tolist()} {on_host.tolist()} {env.communicator.transport[:3]}"

    assert run(shared_gpu, program) == ["[6.0, 6.0, 6.0, 6.0, 6.0] [3.0, 3.0] gpu"] * 3


def test_collectives_on_the_gpu_are_in_the_telemetry(
    shared_gpu: runtime.Cluster, simulated: SimulatedGpus
) -> None:
    def program(env: ReplicaEnv) -> float:
        env.communicator.all_reduce([simulated.put(np.ones(50), 0)], Reduction("sum", site="train.py:3"))
        return 0.0

    run(shared_gpu, program)
    shared_gpu.flush_telemetry(60)
    rows = [row for row in shared_gpu.feed.to_arrow().to_pylist() if row["site"] == "train.py:3"]

    assert {row["replica"] for row in rows} == {0, 1, 2}
    assert {(row["algorithm"], row["transport"], row["state"]) for row in rows} == {("fused", "gpu", "ok")}


def test_a_worker_process_per_gpu_sees_that_one_only(two_gpus: None) -> None:
    with runtime.connect(gpus=2) as cluster:
        assert [device.short for device in cluster.devices] == ["GPU:0", "GPU:1"]
        assert len({device.worker for device in cluster.devices}) == 2
        seen = cluster.client.run(
            lambda: (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"])
        )
        assert sorted(seen.values()) == [("0", "false"), ("1", "false")]


@pytest.mark.parametrize(("own", "expected"), [(None, "false"), ("true", "true")])
def test_jax_leaves_the_memory_of_a_gpu_to_others_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, own: str | None, expected: str
) -> None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    if own:
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", own)

    with runtime.connect(replicas=1) as cluster:
        seen = cluster.client.run(lambda: os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"])

    assert list(seen.values()) == [expected]


def test_what_a_gpu_worker_lacks_is_told_in_the_cell(two_gpus: None) -> None:
    def program(env: ReplicaEnv) -> int:
        return env.rank

    with (
        runtime.connect(gpus=1) as cluster,
        pytest.raises(BackendUnavailable, match=r"CuPy is not installed|no NVIDIA driver"),
    ):
        run(cluster, program)


def test_a_worker_that_is_stuck_in_nccl_ends_itself_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(gpus.os, "_exit", codes.append)
    gpus.end_process("a replica is stuck in connecting the GPUs (NCCL)")

    assert codes == [gpus.STUCK_EXIT_CODE]
    assert "stuck in connecting the GPUs" in capsys.readouterr().err


def test_devices_of_several_kinds_make_no_strategy(shared_gpu: runtime.Cluster) -> None:
    mixed = (shared_gpu.devices[0], replace(shared_gpu.devices[1], kind="CPU"))

    with pytest.raises(InvalidArgumentError, match="devices of one kind, got CPU and GPU"):
        shared_gpu.group(mixed, label="test")
