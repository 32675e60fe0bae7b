"""What can go wrong between GPUs, over the simulated ones: deadlines, aborts, stale results, order of streams."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.communicators import simulated_nccl
from tests.communicators.simulated_gpu import SimArray, SimulatedGpus
from tests.telemetry.reading import records
from workbench.backends.cupy import DTYPES
from workbench.communicators import Bootstrap, CommunicationOptions, Gpus, Member, Reduction, Topology
from workbench.communicators.core.failure import Failure
from workbench.communicators.gpu import plane as plane_module
from workbench.communicators.gpu import timing
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.communicators.gpu.nccl import NcclOps
from workbench.communicators.gpu.timing import Lane
from workbench.errors import (
    BackendUnavailable,
    CollectiveAborted,
    DeadlineExceededError,
    ReplicaLost,
    StaleGeneration,
    WorkbenchError,
)
from workbench.telemetry.recording.ring import Ring

DEADLINE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def working_nccl() -> Iterator[None]:
    simulated_nccl.faults.clear()
    yield
    simulated_nccl.faults.clear()
    simulated_nccl.give_up_waiting()


class Replicas:
    """Replicas in this process, each on a simulated GPU of its own (or all on the first)."""

    def __init__(self, size: int, *, shared: bool = False, uuids: Any = None, generation: int = 0) -> None:
        self.gpus = SimulatedGpus(uuids or [f"gpu-{rank}" for rank in range(size)])
        self.stuck: list[str] = []
        self.rings = {rank: Ring(replica=rank) for rank in range(size)}
        ordinals = {rank: 0 if shared else rank for rank in range(size)}
        bootstrap = Bootstrap(
            Topology([Member(rank, "a", "p") for rank in range(size)]),
            "p",
            generation=generation,
            rings=self.rings,
            gpus=Gpus(ordinals, self.gpus, on_stuck=self.stuck.append),
        )
        self.communicators = bootstrap.connect({"p": bootstrap.address})

    def run(self, body: Callable[[GpuCommunicator, SimulatedGpus], Any]) -> list[Any]:
        """What each replica returns or raises."""
        outcomes: dict[int, Any] = {}

        def work(rank: int) -> None:
            communicator = self.communicators[rank]
            assert isinstance(communicator, GpuCommunicator)
            try:
                communicator.begin(0)
                outcomes[rank] = body(communicator, self.gpus)
            except WorkbenchError as error:
                outcomes[rank] = error

        threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in self.communicators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_SECONDS)
            assert not thread.is_alive(), "hang"
        return [outcomes[rank] for rank in sorted(outcomes)]

    def close(self) -> None:
        for communicator in self.communicators.values():
            communicator.close()


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


def put(c: GpuCommunicator, gpus: SimulatedGpus, array: Any) -> SimArray:
    return gpus.put(array, c._ordinal)


def summed(c: GpuCommunicator, gpus: SimulatedGpus) -> float:
    (total,) = c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum", site="train.py:9"))
    value = float(gpus.get(total)[0])
    c.finish()
    return value


def until(condition: Callable[[], Any]) -> None:
    ends = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < ends


# -- values that NCCL alone would get wrong


@pytest.mark.parametrize("op", ["min", "max"])
def test_minimum_and_maximum_pass_nans_on(two: Replicas, op: str) -> None:
    inputs = [np.array([np.nan, 1.0, -0.5, np.inf]), np.array([1.0, np.nan, -2.5, -np.inf])]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> list[float]:
        (found,) = c.all_reduce([put(c, gpus, inputs[c.rank])], Reduction(op))
        return [float(x) for x in gpus.get(found)]

    want = getattr(np, f"{op}imum")(*inputs)
    for outcome in two.run(body):
        np.testing.assert_array_equal(outcome, want)


@pytest.mark.parametrize("op", ["prod", "min", "max"])
def test_complex_numbers_are_combined_as_such(two: Replicas, op: str) -> None:
    inputs = [np.array([1 + 2j, 3 - 1j]), np.array([2 - 1j, 3 + 1j])]
    function = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}[op]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        results = [
            c.all_reduce([put(c, gpus, inputs[c.rank])], Reduction(op))[0],
            c.reduce_scatter(put(c, gpus, inputs[c.rank]), op),
        ]
        results.append(c.reduce([put(c, gpus, inputs[c.rank])], op, 1)[0])
        return [None if result is None else gpus.get(result) for result in results]

    for rank, (whole, part, at_root) in enumerate(two.run(body)):
        np.testing.assert_array_equal(whole, function(*inputs))
        np.testing.assert_array_equal(part, function(*inputs)[rank : rank + 1])
        assert (at_root is None) == (rank == 0)


def test_bfloat16_sums_in_float32(shared: Replicas, two: Replicas) -> None:
    array = np.full(4, 256.0, ml_dtypes.bfloat16)
    one = np.ones(4, ml_dtypes.bfloat16)

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        (total,) = c.all_reduce([put(c, gpus, array if c.rank == 0 else one)], Reduction("sum"))
        return gpus.get(total)

    for replicas, want in ((shared, 258.0), (two, 256.0)):
        for outcome in replicas.run(body):
            assert outcome.dtype == ml_dtypes.bfloat16
            assert float(outcome[0]) == want  # 256 + 1 + 1: in bfloat16 each 1 would be lost


def test_arrays_of_both_kinds_in_one_structure(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        first, second = c.all_reduce([np.ones(2), put(c, gpus, np.ones(3))], Reduction("sum"))
        return first.tolist() + gpus.get(second).tolist()

    assert two.run(body) == [[2.0] * 5] * 2


def test_a_host_array_is_broadcast_without_the_gpus(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.broadcast(np.arange(3) if c.rank == 0 else None, 0).tolist()

    assert two.run(body) == [[0, 1, 2]] * 2


# -- errors of the user


def test_two_replicas_on_one_gpu_are_refused_before_nccl_is_asked() -> None:
    replicas = Replicas(2, uuids=["same", "same"])
    outcomes = replicas.run(summed)
    replicas.close()

    assert any(isinstance(outcome, BackendUnavailable) for outcome in outcomes)
    for outcome in outcomes:
        assert "replicas 0 and 1 are both on the Simulated at" in str(outcome)
        assert "gpu_replicas" in str(outcome)


def test_an_array_on_another_gpu_is_refused(two: Replicas) -> None:
    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.all_reduce([gpus.put(np.ones(3), 1 - c.rank)], Reduction("sum"))

    for rank, outcome in enumerate(two.run(body)):
        assert type(outcome) is BackendUnavailable
        assert f"replica {rank} runs on GPU {rank} of its worker and got an array on GPU {1 - rank}" in str(
            outcome
        )


def test_nccl_cannot_be_asked_for_on_a_shared_gpu(shared: Replicas) -> None:
    options = CommunicationOptions(implementation="NCCL")  # type: ignore[arg-type]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        return c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum", options=options))

    assert all(type(outcome) is BackendUnavailable for outcome in shared.run(body))


# -- what the simulation is strict about, as the libraries are


def test_calls_for_several_gpus_of_a_process_need_a_group(
    two: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NcclOps, "_grouped", lambda ops, works: contextlib.nullcontext())

    for outcome in two.run(summed):
        assert isinstance(outcome, CollectiveAborted)
        assert "outside of a group" in str(outcome)


# -- failures


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
        read.append(gpus.get(total))  # the stream goes on: this returns, with garbage
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
    assert "only a new process gets over: an illegal memory access" in two.stuck[0]


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

    outcomes = replicas.run(summed)  # returns although the call in C does not

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
    until(lambda: sorted(aborted) == [0, 1])  # what was made too late is given back
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
    ops.abort()  # while the other one is in it
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
        freed.wait(0.2)  # an abort that does not wait comes within this time

    simulated_nccl.faults["while_asked"] = while_asked
    found = ops.error()
    aborting.join(DEADLINE_SECONDS)

    assert (found, ops.error()) == ("", "")
    assert freed.is_set()


@pytest.mark.parametrize(
    ("failure", "healthy"),
    [
        (None, True),
        (Failure("closed", "a replica closed its communicator"), True),  # a peer was a moment earlier
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
    assert ended.count("abort") == 2  # the simulation's own in `destroy`, or the only one


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


# -- order and lifetime


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
                gpus.copy(put(c, gpus, np.full(1000, -1.0)), source)  # may only run once it was read
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


@pytest.mark.parametrize("op", ["min", "prod"])
def test_temporary_buffers_live_until_nccl_has_read_them(two: Replicas, op: str) -> None:
    """Minima travel as ordered integers, products of complex numbers are gathered first: both in buffers of the ops."""
    inputs = [np.array([1.0, -2.0]), np.array([3.0, -4.0])]
    if op == "prod":
        inputs = [x + 1j for x in inputs]

    def body(c: GpuCommunicator, gpus: SimulatedGpus) -> Any:
        released = threading.Event()
        with gpus.on(c._ordinal):
            gpus.current().submit(
                lambda: simulated_nccl.wait_on_stream(released)
            )  # nothing is read before this ends
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


# -- the real binding, which needs CuPy and no GPU (CONTRIBUTING.md says how to get it)


@pytest.fixture
def real_cupy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that this does not need
        return pytest.importorskip("cupy", reason="CuPy is not installed: pip install -e '.[gpu13]'")


def test_the_simulation_counts_as_the_real_binding_does(real_cupy: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cupy.cuda import nccl
    if not nccl.available:
        pytest.skip("CuPy finds no NCCL")

    numbers = {name: value for name, value in vars(simulated_nccl).items() if name.startswith("NCCL_")}
    assert {name: getattr(nccl, name) for name in numbers} == numbers
    methods = "allReduce reduce broadcast reduceScatter allGather abort destroy check_async_error".split()
    for cls in (simulated_nccl.NcclCommunicator, nccl.NcclCommunicator):
        assert [name for name in methods if not hasattr(cls, name)] == []


@pytest.mark.parametrize(
    "name",
    [
        *sorted(DTYPES),
        "float8_e4m3fn",
        "float8_e5m2",
        "longdouble",
        "clongdouble",
        "datetime64[s]",
        "S3",
        ">f4",
    ],
)
def test_the_real_binding_has_the_dtypes_that_it_is_given(real_cupy: Any, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    try:
        real_cupy.ndarray((0,), dtype)
        refused = ""
    except Exception as error:  # without a driver CuPy's own, after it has looked at the dtype
        refused = str(error)

    assert refused.startswith("Unsupported dtype") == (name not in DTYPES), refused
