"""The GPUs of one process in one group: queues collectives, times them, and watches calls that may block forever.

The host link compares all calls before anything is queued here, so NCCL never sees a mismatch. But peers may still die
or hang in between. A watching thread detects that (by deadlines, NCCL's own errors, the host link) and

1. publishes the failure on the host link, so that a replica that finds its stream drained also finds the reason,
2. aborts NCCL, after which streams continue with garbage,
3. reports a thread or a device that is still stuck, or has failed: then only ending the process helps.

Results are valid only after `settle`, which looks for a failure once all work has completed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import sched_yield
from typing import Any

from workbench.backends.accelerator import Accelerator
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.link import Link
from workbench.communicators.core.position import Position
from workbench.communicators.core.topology import Topology
from workbench.communicators.gpu import nccl_connect
from workbench.communicators.gpu.fused import SharedGpuOps
from workbench.communicators.gpu.timing import Lane, Launched, Pair, retire
from workbench.communicators.gpu.work import GpuOps, Work
from workbench.communicators.threads.rendezvous import Exchange
from workbench.errors import CollectiveAborted, WorkbenchError
from workbench.telemetry.recording.ring import SharedRing
from workbench.telemetry.records import Signature

POLL_SECONDS = 0.025
DEADLINE_SECONDS = 300.0
"""For a queued collective without a timeout. All its peers have arrived, so only a failure takes this long.
"""
CONNECT_SECONDS = 60.0
GRACE_SECONDS = 5.0
"""How long a thread may stay inside NCCL after its failure was published; then the process is given up."""
_IDLE_SECONDS = 0.5
_JOIN_SECONDS = 5.0
_SPIN_SECONDS = 0.002
"""How long to yield while waiting for a step's end, as CUDA does. Any sleep, even one of 0, takes 60 to 130 µs."""
_PAUSE_SECONDS = 0.0005
"""The longest sleep between two checks; the first ones after yielding are shorter."""
_DRAIN_SECONDS = 2.0
"""How long closing waits for queued work if nothing has failed."""

Launch = Callable[[GpuOps, Sequence[Work]], None]


@dataclass(slots=True)
class _Guard:
    """A call that may block forever, on its own thread; `lock` decides which thread gets its result.

    Attributes:
      what: The call in words.
      deadline_ns: When it must have returned, on the clock of `time.monotonic_ns`.
      reported_ns: When the group was first found broken during the call; 0 until then.
      given_up: Whether nothing waits for its result any more.
      outcome: Its result or exception; empty until it ends.
    """

    what: str
    deadline_ns: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    returned: threading.Event = field(default_factory=threading.Event)
    reported_ns: int = 0
    given_up: bool = False
    outcome: list[Any] = field(default_factory=list)


class GpuPlane:
    """One process's GPUs in one generation of a group.

    `_lock` guards the queue and the ops; replica threads and the watching thread take it, never for long.

    Attributes:
      accelerator: The GPU library.
      fused: Whether all replicas are in this process and share one GPU.
      ordinals: Device of each local rank.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        topology: Topology,
        ordinals: Mapping[int, int],
        *,
        link: Link,
        generation: int,
        group: str,
        rings: Mapping[int, SharedRing],
        on_stuck: Callable[[str], None] | None = None,
    ) -> None:
        """Calls `on_stuck(why)` when a thread is stuck inside NCCL; the process should then be ended.

        If it is None, for example because replicas are threads of the notebook, that thread is abandoned.
        """
        self.accelerator = accelerator
        self.ordinals = dict(ordinals)
        self.fused = len(ordinals) == topology.size and len(set(ordinals.values())) == 1
        self._topology = topology
        self._link = link
        self._generation = generation
        self._group = group
        self._rings = dict(rings)
        self._on_stuck = on_stuck
        self._connect_seconds = CONNECT_SECONDS
        self._lock = threading.Lock()
        self._lanes: dict[int, Lane] = {}
        self._ops: GpuOps | None = None
        self._queued: deque[Launched] = deque()
        self._guards: list[_Guard] = []
        self._aborted = False
        self._aborted_ns = 0
        self._device_error = ""
        self._closed = False
        self._drained: bool | None = None
        self._wake = threading.Event()
        self._watching: threading.Thread | None = None
        self._open = set(ordinals)

    # -- replicas' threads -------------------------------------------------------------------------------------

    def run(self, position: Position, works: Sequence[Work], exchange: Exchange, launch: Launch) -> None:
        """Queues one collective for all replicas of the process; first connects the GPUs if necessary.

        Args:
          position: Identifies the call; gets the name of the algorithm.
          works: The buffers and streams of each replica of the process.
          exchange: Exchanges blocks of bytes with the other processes, to connect the GPUs.
          launch: Queues the operation.

        Raises:
          CollectiveAborted: if NCCL refuses it, or the group is broken.
        """
        self._check()
        try:
            ops = self._connected(exchange)
            position.algorithm = ops.name
            launched = self._launch(ops, works, launch, position)
        except WorkbenchError:
            raise
        except Exception as error:
            if type(error).__name__ != "NcclError":
                raise
            raise CollectiveAborted(f"{position.asked()}: NCCL: {error}") from error
        with self._lock:
            self._queued.append(launched)
        if not self._wake.is_set():  # the watching thread checks the queue after clearing the event
            self._wake.set()
        self._check()

    def _launch(self, ops: GpuOps, works: Sequence[Work], launch: Launch, position: Position) -> Launched:
        gpu, pairs = self.accelerator, []
        for ordinal, lane in self._lanes.items():
            local = [work for work in works if self.ordinals[work.rank] == ordinal]
            start, end = lane.event(), lane.event()
            with gpu.on(ordinal, lane.stream):
                for work in local:
                    work.stream = lane.stream
                    gpu.wait(work.ready)
                fused = self.fused and bool(position.call.redop)
                flags = lane.inputs.look(local, fused=fused) if self._rings else None
                gpu.record(start)
            pairs.append(Pair(lane, start, end, local, lane.base, flags))
        launch(ops, works)
        for pair in pairs:
            with gpu.on(pair.lane.ordinal, pair.lane.stream):
                gpu.record(pair.end)
                for work in pair.works:
                    # Not from the pool, because the replica may wait for this event after the pair is gone.
                    work.finished = gpu.event(timed=False)
                    gpu.record(work.finished)
        deadline_ns = position.deadline_ns or time.monotonic_ns() + int(DEADLINE_SECONDS * 1e9)
        return Launched(pairs, deadline_ns, ops.name)

    def settle(self, rank: int) -> None:
        """Waits until all queued work has completed, then checks whether the group was broken meanwhile.

        Raises:
          WorkbenchError: if it was, because a stream that drains after an abort looks like success.
        """
        spins_until, pause = time.monotonic() + _SPIN_SECONDS, 0.0
        while self._queued and self._failure() is None:
            if not self.poll():
                if time.monotonic() < spins_until:
                    sched_yield()
                else:
                    pause = min(_PAUSE_SECONDS, pause + _PAUSE_SECONDS / 25)
                    time.sleep(pause)
        if self._ops is not None:
            self._check()

    def drain(self) -> None:
        """The first replica to close waits a moment for queued work, before the host link is closed.

        Peers may still wait for that work. Only if all of it has completed, `close` frees NCCL without aborting.
        """
        if self._drained is not None:
            return
        ends = time.monotonic() + _DRAIN_SECONDS
        while self._queued and not self._is_broken() and time.monotonic() < ends:
            if not self.poll():
                time.sleep(_PAUSE_SECONDS)
        self._drained = not self._queued and not self._is_broken()

    def _is_broken(self) -> bool:
        """Whether something has failed.

        A peer that has closed its end is not a failure, because all replicas close NCCL.
        """
        failure = self._failure()
        return self._aborted or (failure is not None and failure.kind != "closed")

    def close(self, rank: int) -> None:
        """Closes the end of one replica; the last one frees streams and communicators."""
        self._open.discard(rank)
        if self._open or self._closed:
            return
        self._closed = True
        self._wake.set()
        if self._ops is not None and self._drained and not self._queued:
            self._ops.close()
        self.abort()
        if (
            self._watching is not None
            and self._watching is not threading.current_thread()
            and not self._guards
        ):
            self._watching.join(_JOIN_SECONDS)
        with self._lock:
            self._queued.clear()
            self._lanes = {}  # a new object, because a replica's thread may be iterating over the old one
        if self._device_error and self._on_stuck is not None:
            self._on_stuck(
                f"the GPU has failed, and only a new process can use it again: {self._device_error}"
            )

    # -- any thread --------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """Drops the queued work. The failure must already be on the host link, as peers' streams may drain at once."""
        with self._lock:
            self._aborted = True
            self._aborted_ns = self._aborted_ns or time.monotonic_ns()
            ops = self._ops
        if ops is not None:
            ops.abort()

    def poll(self) -> bool:
        """Retires completed collectives and returns whether there were any."""
        retired = False
        with self._lock:
            while self._queued and self._happened(self._queued[0]):
                launched = self._queued.popleft()
                launched.state = "aborted" if self._aborted else "ok"
                retire(self.accelerator, launched, self._record)
                retired = True
        return retired

    def _happened(self, launched: Launched) -> bool:
        try:
            for pair in launched.pairs:
                if not self.accelerator.done(pair.end):
                    return False
        except Exception as error:  # a device error persists, so the deadline or the next call reports it
            self._device_error = str(error)
            self._link.fail(Failure.of(error, self._generation))
            return False
        return True

    def _record(
        self, work: Work, start_ns: int, end_ns: int, algorithm: str, state: str, inputs: str
    ) -> None:
        ring, call = self._rings.get(work.rank), work.call
        if ring is not None:
            count, nbytes, dtype = work.moved or (call.count, call.nbytes, call.dtype)
            repeats = state == "ok" and work.moved is None
            number = call.numbers[inputs].get(algorithm) if repeats else None
            if number is None:
                number = ring.number(
                    Signature(
                        self._generation, self._group, call.op, call.redop, dtype, algorithm, call.packs,
                        "gpu" if self.fused else "nccl", state, call.site, call.purpose, inputs,
                    )
                )  # fmt: skip
                if repeats:
                    call.numbers[inputs][algorithm] = number
            ring.write(number, work.step, work.seq, count, nbytes, work.enter_ns, start_ns, end_ns)

    def _failure(self) -> Failure | None:
        return self._link.broken()

    def _check(self) -> None:
        failure = self._failure()
        if failure is not None:
            self.abort()
            raise failure.error()

    # -- connecting --------------------------------------------------------------------------------------------

    def _connected(self, exchange: Exchange) -> GpuOps:
        if self._ops is None:
            ordinals = sorted(set(self.ordinals.values()))
            self._lanes = {ordinal: Lane(self.accelerator, ordinal) for ordinal in ordinals}
            self._watching = threading.Thread(target=self._watch, name="workbench-gpu-watch", daemon=True)
            self._watching.start()
            if self.fused:
                self._ops = SharedGpuOps(self.accelerator, ordinals[0])
            else:
                self._ops = nccl_connect.connect(
                    self.accelerator,
                    self._topology,
                    self.ordinals,
                    exchange=exchange,
                    blocking=self.carry_out,
                )
            self._check()
        return self._ops

    def carry_out(self, what: str, call: Callable[[], Any], undo: Callable[[Any], None]) -> Any:
        """Runs `call()`, which may block in C forever, on its own watched thread; see `nccl_connect.Blocking`.

        Args:
          what: The call in words, for errors.
          call: The function.
          undo: Called with its result if it returns after it was given up.

        Raises:
          WorkbenchError: if the group breaks first, because of this call's deadline or otherwise.
        """
        guard = _Guard(what, time.monotonic_ns() + int(self._connect_seconds * 1e9))
        self._guards.append(guard)
        self._wake.set()
        threading.Thread(
            target=self._attempt, args=(guard, call, undo), name="workbench-gpu-connect", daemon=True
        ).start()
        while not guard.returned.wait(POLL_SECONDS):
            failure = self._failure()
            if failure is not None:
                with guard.lock:
                    guard.given_up = not guard.outcome
                if guard.given_up:
                    raise failure.error()
        (outcome,) = guard.outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _attempt(self, guard: _Guard, call: Callable[[], Any], undo: Callable[[Any], None]) -> None:
        try:
            outcome = call()
        except BaseException as error:
            outcome = error
        with guard.lock:
            guard.outcome.append(outcome)
            late = guard.given_up
        if late and not isinstance(outcome, BaseException):
            undo(outcome)
        self._forget(guard)
        guard.returned.set()

    def _forget(self, guard: _Guard) -> None:
        with suppress(ValueError):  # the watching thread and the call's thread may both remove it
            self._guards.remove(guard)

    # -- the watching thread -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._closed or self._guards:
            busy = bool(self._queued or self._guards)
            self._wake.wait(POLL_SECONDS if busy else _IDLE_SECONDS)
            if not busy:
                self._wake.clear()
                continue
            time.sleep(POLL_SECONDS)
            self.poll()
            self._look_for_failures()
            for lane in list(self._lanes.values()):
                if lane.base_is_old:
                    lane.rebase()

    def _look_for_failures(self) -> None:
        now = time.monotonic_ns()
        queued = self._queued
        text = self._ops.error() if self._ops is not None and not self._aborted else ""
        try:
            oldest = queued[0]
        except IndexError:
            oldest = None
        if text:
            self._link.fail(Failure("aborted", text, generation=self._generation))
        elif oldest is not None and now > oldest.deadline_ns and not self._aborted:
            self._link.fail(
                Failure(
                    "deadline",
                    f"{oldest.asked()} exceeded its timeout on the GPU: all replicas had started it, so one of them or "
                    f"the network between them has failed",
                    generation=self._generation,
                )
            )
        for guard in tuple(self._guards):
            self._look_at(guard, now)
        if (failure := self._failure()) is not None and (queued or self._guards):
            self.abort()
            if queued and now - self._aborted_ns > GRACE_SECONDS * 1e9 and self._on_stuck is not None:
                self._on_stuck(f"work that is queued on the GPU does not end after: {failure.text}")

    def _look_at(self, guard: _Guard, now: int) -> None:
        if now > guard.deadline_ns and self._failure() is None:
            text = f"{guard.what} took longer than {self._connect_seconds:.0f} s: a replica is missing or unreachable"
            self._link.fail(Failure("deadline", text, generation=self._generation))
        failure = self._failure()
        if failure is None:
            return
        if not guard.reported_ns:
            guard.reported_ns = now
        elif now - guard.reported_ns > GRACE_SECONDS * 1e9:
            if self._on_stuck is None:
                self._forget(guard)  # its thread remains in C code that nothing can end
            else:
                self._on_stuck(f"a replica is stuck in {guard.what} after: {failure.text}")
