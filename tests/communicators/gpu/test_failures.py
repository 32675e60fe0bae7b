"""What can go wrong between GPUs, over the simulated ones: deadlines, aborts, stale results, connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.communicators import simulated_nccl
from tests.communicators.gpu.replicas import DEADLINE_SECONDS, Replicas, put, summed
from tests.communicators.simulated_gpu import SimulatedGpus
from tests.until import until
from workbench.communicators import CommunicationOptions, Reduction
from workbench.communicators.core.failure import Failure
from workbench.communicators.gpu import plane as plane_module
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.errors import (
    CollectiveAborted,
    DeadlineExceededError,
    ReplicaLost,
    StaleGeneration,
    WorkbenchError,
)


def test_a_collective_that_hangs_on_the_gpu_ends_by_its_deadline(two: Replicas) -> None:
    simulated_nccl.faults["hang"] = True
    options = CommunicationOptions(timeout_seconds=0.3)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum", options=options, site="train.py:9"))
        c.finish()

    for outcome in two.run(body):
        assert type(outcome) is DeadlineExceededError
        assert "train.py:9" in str(outcome)


def test_what_drains_after_an_abort_is_no_result(two: Replicas) -> None:
    simulated_nccl.faults["hang"] = True
    read: list[np.ndarray] = []
    queued = threading.Barrier(2)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        (total,) = c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        queued.wait(DEADLINE_SECONDS)
        if c.rank == 0:
            c.abort(ReplicaLost("worker 7 was killed", replica=7))
        read.append(gpus.get(total))  # the stream continues, so this returns, with garbage
        c.finish()

    outcomes = two.run(body)

    assert len(read) == 2
    for outcome in outcomes:
        assert type(outcome) is CollectiveAborted
        assert "worker 7 was killed" in str(outcome)


def test_an_abort_counts_even_after_everything_has_happened(two: Replicas) -> None:
    met = threading.Barrier(2)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        (total,) = c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        gpus.get(total)
        met.wait(DEADLINE_SECONDS)
        if c.rank == 0:
            c.abort(RuntimeError("too late to notice"))
        met.wait(DEADLINE_SECONDS)
        c.finish()

    assert [type(outcome) for outcome in two.run(body)] == [CollectiveAborted] * 2


def test_an_error_that_nccl_reports_in_the_background_breaks_the_group(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        simulated_nccl.faults.update(hang=True, async_error="unhandled system error")
        return summed(c, gpus)

    for outcome in two.run(body):
        assert type(outcome) is CollectiveAborted
        assert "unhandled system error" in str(outcome)


def test_an_error_that_nccl_raises_names_the_collective(two: Replicas) -> None:
    simulated_nccl.faults["refuse"] = "internal error"

    for outcome in two.run(summed):
        assert isinstance(outcome, CollectiveAborted)
        assert "internal error" in str(outcome)


def test_an_error_of_the_device_ends_the_wait_for_it(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        gpus.fails = True
        c.finish()

    for outcome in two.run(body):
        assert type(outcome) is CollectiveAborted
        assert "illegal memory access" in str(outcome)
    two.close()
    assert "only a new process can use it again: an illegal memory access" in two.stuck[0]


def test_a_stream_that_does_not_even_end_after_an_abort_is_reported(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane_module, "GRACE_SECONDS", 0.1)
    released = threading.Event()

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        with gpus.on(c._ordinal):
            gpus.current().submit(lambda: simulated_nccl.wait_on_stream(released))  # a kernel that never ends
        c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        c.abort(RuntimeError("given up"))
        c.finish()

    assert all(isinstance(outcome, CollectiveAborted) for outcome in two.run(body))
    until(lambda: two.stuck)
    released.set()
    assert "does not end after: aborted because of RuntimeError: given up" in two.stuck[0]


@pytest.fixture
def stuck_connecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Communicators are made in C, with no way out, until the event is set."""
    monkeypatch.setattr(plane_module, "GRACE_SECONDS", 0.1)
    released = threading.Event()

    class Stuck(simulated_nccl.NcclCommunicator):
        def __init__(self, size: int, unique_id: bytes, rank: int) -> None:
            assert released.wait(DEADLINE_SECONDS)
            super().__init__(size, unique_id, rank)

    monkeypatch.setattr(simulated_nccl, "NcclCommunicator", Stuck)
    yield released
    released.set()
    until(lambda: "workbench-gpu-connect" not in {thread.name for thread in threading.enumerate()})


def test_connecting_without_a_peer_is_given_up_and_reported(stuck_connecting: threading.Event) -> None:
    replicas = Replicas(2)
    for communicator in replicas.communicators.values():
        communicator._plane._connect_seconds = 0.2  # type: ignore[attr-defined]

    outcomes = replicas.run(summed)  # returns although the C call does not

    until(lambda: replicas.stuck)
    replicas.close()
    assert "stuck in connecting the GPUs (NCCL)" in replicas.stuck[0]
    for outcome in outcomes:
        assert isinstance(outcome, DeadlineExceededError | CollectiveAborted)
        assert "a replica is missing or unreachable" in str(outcome)


def test_replicas_in_the_notebook_do_not_wait_for_a_thread_that_is_stuck(
    stuck_connecting: threading.Event,
) -> None:
    replicas = Replicas(2)
    plane = replicas.communicators[0]._plane  # type: ignore[attr-defined]
    plane._connect_seconds, plane._on_stuck = 0.2, None

    assert all(isinstance(outcome, WorkbenchError) for outcome in replicas.run(summed))
    replicas.close()
    until(lambda: "workbench-gpu-watch" not in {thread.name for thread in threading.enumerate()})


def test_connecting_can_be_aborted(
    stuck_connecting: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane_module, "GRACE_SECONDS", DEADLINE_SECONDS)
    replicas = Replicas(2)
    outcomes: list[Any] = []
    waiting = threading.Thread(target=lambda: outcomes.extend(replicas.run(summed)), daemon=True)
    waiting.start()
    plane = replicas.communicators[0]._plane  # type: ignore[attr-defined]
    until(lambda: plane._guards)
    replicas.communicators[0].abort(RuntimeError("given up"))
    waiting.join(DEADLINE_SECONDS)

    assert [type(outcome) for outcome in outcomes] == [CollectiveAborted] * 2
    aborted: list[int] = []
    simulated_nccl.faults["while_aborted"] = lambda communicator: aborted.append(communicator.rank_id())
    stuck_connecting.set()
    until(lambda: sorted(aborted) == [0, 1])  # what was created too late is released
    replicas.close()


def test_a_communicator_that_cannot_be_made_leaves_no_group_open(two: Replicas) -> None:
    simulated_nccl.faults["refuse_rank"] = 1
    ended: list[bool] = []
    attempt = plane_module.GpuPlane._attempt

    def watched(plane: Any, guard: Any, call: Callable[[], Any], undo: Any) -> None:
        attempt(plane, guard, call, undo)
        ended.append(not simulated_nccl.group_is_open())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_module.GpuPlane, "_attempt", watched)
        outcomes = two.run(summed)
    for outcome in outcomes:
        assert isinstance(outcome, CollectiveAborted)
        assert "unhandled cuda error" in str(outcome)
    until(lambda: ended == [True])


def ops_of(two: Replicas) -> Any:
    """The communicators behind two replicas that have connected."""
    assert two.run(summed) == [2.0, 2.0]
    return two.communicators[0]._plane._ops  # type: ignore[attr-defined]


def test_two_threads_abort_once(two: Replicas) -> None:
    ops, entered, second = ops_of(two), threading.Event(), threading.Event()
    aborted: list[int] = []

    def while_aborted(communicator: Any) -> None:
        aborted.append(communicator.rank_id())
        entered.set()
        assert second.wait(DEADLINE_SECONDS)

    simulated_nccl.faults["while_aborted"] = while_aborted
    first = threading.Thread(target=ops.abort, daemon=True)
    first.start()
    assert entered.wait(DEADLINE_SECONDS)
    ops.abort()  # while the other thread is inside it
    second.set()
    first.join(DEADLINE_SECONDS)
    ops.abort()
    ops.close()

    assert sorted(aborted) == [0, 1]


def test_no_communicator_is_freed_while_it_is_asked_for_errors(two: Replicas) -> None:
    ops, freed = ops_of(two), threading.Event()
    aborting = threading.Thread(target=ops.abort, daemon=True)
    simulated_nccl.faults["while_aborted"] = lambda _: freed.set()

    def while_asked(_: Any) -> None:
        if aborting.ident is None:
            aborting.start()
        freed.wait(0.2)  # an abort that does not wait happens within this time

    simulated_nccl.faults["while_asked"] = while_asked
    found = ops.error()
    aborting.join(DEADLINE_SECONDS)

    assert (found, ops.error()) == ("", "")
    assert freed.is_set()


@pytest.mark.parametrize(
    ("failure", "healthy"),
    [
        (None, True),
        (Failure("closed", "a replica closed its communicator"), True),  # a peer was a moment faster
        (Failure("aborted", "broken"), False),
    ],
)
def test_closing_sends_what_peers_wait_for_unless_the_group_is_broken(
    monkeypatch: pytest.MonkeyPatch, failure: Failure | None, healthy: bool
) -> None:
    ended: list[str] = []
    destroy, abort = simulated_nccl.NcclCommunicator.destroy, simulated_nccl.NcclCommunicator.abort

    def destroyed(communicator: Any) -> None:
        ended.append("destroy")
        destroy(communicator)

    def aborted(communicator: Any) -> None:
        ended.append("abort")
        abort(communicator)

    monkeypatch.setattr(simulated_nccl.NcclCommunicator, "destroy", destroyed)
    monkeypatch.setattr(simulated_nccl.NcclCommunicator, "abort", aborted)
    replicas = Replicas(2)
    assert replicas.run(summed) == [2.0, 2.0]
    if failure is not None:
        replicas.communicators[0]._plane._link.fail(failure)  # type: ignore[attr-defined]
    replicas.close()

    assert set(ended) == ({"destroy", "abort"} if healthy else {"abort"})
    assert ended.count("abort") == 2  # the simulation's own error in `destroy`, or the only one


def test_closing_waits_for_what_is_queued(two: Replicas) -> None:
    released, results = threading.Event(), []

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        with gpus.on(c._ordinal):
            gpus.current().submit(lambda: simulated_nccl.wait_on_stream(released))
        (total,) = c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum"))
        results.append(total)

    two.run(body)
    plane = two.communicators[0]._plane  # type: ignore[attr-defined]
    assert plane._queued
    released.set()
    two.close()

    assert [total.data.tolist() for total in results] == [[2.0] * 3] * 2
    assert plane._drained


def test_a_group_can_be_connected_again_after_an_abort() -> None:
    first = Replicas(2)
    first.communicators[0].abort(RuntimeError("broken"))
    assert all(isinstance(outcome, CollectiveAborted) for outcome in first.run(summed))
    first.close()

    second = Replicas(2, generation=1)
    assert second.run(summed) == [2.0, 2.0]
    second.close()
    assert all(isinstance(outcome, StaleGeneration) for outcome in second.run(summed))
