"""The order of streams, the life of buffers, and times, over the simulated GPUs."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.communicators import simulated_nccl
from tests.communicators.gpu.replicas import DEADLINE_SECONDS, Replicas, put, summed
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.telemetry.reading import records
from workbench.communicators import Reduction
from workbench.communicators.gpu import plane, timing
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.communicators.gpu.timing import Lane
from workbench.errors import (
    StaleGeneration,
)


def test_sources_and_results_are_ordered_between_the_streams(two: Replicas) -> None:
    """The replica's stream is still busy when the collective is queued, and goes on before it has happened."""

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> list[float]:
        values = []
        with gpus.on(c._ordinal):
            for turn in range(20):
                source = gpus.empty(1000, np.dtype(np.float64))
                gpus.current().submit(lambda: time.sleep(0.001))
                gpus.copy(put(c, gpus, np.full(1000, float(turn))), source)
                (total,) = c.all_reduce([source], Reduction("sum"))
                gpus.copy(put(c, gpus, np.full(1000, -1.0)), source)  # may only run after it was read
                after = gpus.empty(1000, np.dtype(np.float64))
                gpus.copy(total, after)
                values.append(float(gpus.get(after)[-1]))
        return values

    assert two.run(body) == [[2.0 * turn for turn in range(20)]] * 2


def test_buffers_live_until_the_collective_has_happened(shared: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> bool:
        c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        held = [
            work.sources
            for launched in list(c._plane._queued)
            for pair in launched.pairs
            for work in pair.works
        ]
        c.finish()
        return all(sources for sources in held) and not c._plane._queued

    assert shared.run(body) == [True] * 3


def test_what_another_library_handed_over_lives_until_the_collective_has_happened(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL adds float16 up in float32: the array that was handed over is read by the conversion only, on the device."""
    handed: dict[int, weakref.ref[Any]] = {}

    def handed_over(described: Any) -> list[Any]:
        ordinal = described[0].device
        joined = two.gpus.put(np.concatenate([each.data for each in described]), ordinal)
        handed[ordinal] = weakref.ref(joined)
        return [joined]

    monkeypatch.setattr(two.gpus, "handed_over", handed_over)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> tuple[Any, bool, bool]:
        released = threading.Event()
        with gpus.on(c._ordinal):
            gpus.current().submit(lambda: simulated_nccl.wait_on_stream(released))
        total, _ = c.all_reduce([put(c, gpus, np.ones(2, np.float16)) for _ in range(2)], Reduction("sum"))
        gc.collect()
        (held,) = [
            work.temporary
            for launched in list(c._plane._queued)
            for pair in launched.pairs
            for work in pair.works
            if work.rank == c.rank
        ]
        lives = any(handed[c._ordinal]() in each for each in held)
        released.set()
        found = gpus.get(total).tolist()
        c.finish()
        return found, lives, not c._plane._queued

    assert two.run(body) == [([2.0, 2.0], True, True)] * 2


@pytest.mark.parametrize("op", ["min", "prod"])
def test_temporary_buffers_live_until_nccl_has_read_them(two: Replicas, op: str) -> None:
    """Minima travel as ordered integers, products of complex numbers are gathered first: both in buffers of the ops."""
    inputs = [np.array([1.0, -2.0]), np.array([3.0, -4.0])]
    if op == "prod":
        inputs = [x + 1j for x in inputs]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        released = threading.Event()
        with gpus.on(c._ordinal):
            # NCCL reads nothing before this ends.
            gpus.current().submit(lambda: simulated_nccl.wait_on_stream(released))
        (found,) = c.all_reduce([put(c, gpus, inputs[c.rank])], Reduction(op))
        released.set()
        return gpus.get(found).tolist()

    want = np.minimum(*inputs) if op == "min" else np.multiply(*inputs)
    assert two.run(body) == [want.tolist()] * 2


def test_times_come_from_events_and_lie_within_the_call(two: Replicas) -> None:
    began = time.monotonic_ns()
    two.run(summed)
    ended = time.monotonic_ns()

    for ring in two.rings.values():
        (record,) = records(ring)
        assert (record.op, record.algorithm, record.transport, record.state) == (
            "all_reduce",
            "nccl",
            "nccl",
            "ok",
        )
        assert began <= record.t_enter_ns <= record.t_start_ns <= record.t_end_ns <= ended


def test_times_get_a_new_base(monkeypatch: pytest.MonkeyPatch) -> None:
    # Simulated streams wait for Python's lock.
    monkeypatch.setattr(timing, "_BASE_SECONDS", DEADLINE_SECONDS)
    gpus = SimulatedGpus()
    lane = Lane(gpus, 0)
    first = lane.base
    lane.rebase()

    assert lane.base[0] is not first[0]
    assert lane.base[1] >= first[1]
    assert not lane.base_is_old


def test_a_new_base_is_waited_for_without_keeping_pythons_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus, pauses, asked = SimulatedGpus(), [], []
    lane = Lane(gpus, 0)
    done = gpus.done

    def late(event: Any) -> bool:
        asked.append(event)
        return len(asked) > 3 and done(event)

    monkeypatch.setattr(timing, "_BASE_SECONDS", DEADLINE_SECONDS)
    monkeypatch.setattr(gpus, "done", late)
    monkeypatch.setattr(timing.time, "sleep", lambda seconds: pauses.append(seconds))
    lane.rebase()

    assert len(pauses) == len(asked) - 1 >= 3
    assert min(pauses) > 0


def test_the_end_of_a_step_gives_way_at_first_and_then_sleeps_longer_and_longer(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only sleeping and giving way move on; no thread watches a plane that is not connected."""
    settling = two.communicators[0]._plane  # type: ignore[attr-defined]
    now, gave_way, sleeps = [0.0], [], []

    def give_way() -> None:
        gave_way.append(now[0])
        now[0] += 10e-6

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(plane, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(plane, "sched_yield", give_way)
    monkeypatch.setattr(settling, "_queued", [None])
    monkeypatch.setattr(settling, "poll", lambda: now[0] > 0.05 and bool(settling._queued.pop() or True))
    settling.settle(0)

    assert 0.0019 < gave_way[-1] < 0.002
    assert sleeps == sorted(sleeps)
    assert (sleeps[0], sleeps[-1]) == (pytest.approx(20e-6), 0.0005)
    assert len(sleeps) < 130


def test_no_thread_is_left_after_close() -> None:
    replicas = Replicas(2)
    replicas.run(summed)
    replicas.close()

    assert "workbench-gpu-watch" not in {thread.name for thread in threading.enumerate()}


def test_closing_while_a_collective_is_queued_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(2)
    wait = SimulatedGpus.wait

    def closed_meanwhile(gpus: SimulatedGpus, event: Any) -> None:
        replicas.close()
        wait(gpus, event)

    monkeypatch.setattr(SimulatedGpus, "wait", closed_meanwhile)
    assert [type(outcome) for outcome in replicas.run(summed)] == [StaleGeneration] * 2
