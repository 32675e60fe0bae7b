"""The worker's side thread, for all that must not wait for a step: aborts, interrupts, heartbeats, telemetry."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import sys
import threading
import time
from collections.abc import Callable

from workbench.errors import RunInterrupted, WorkbenchError
from workbench.runtime.comm.failure_report import python_stacks, user_place
from workbench.runtime.comm.links import Link, LinkClosed, readable
from workbench.runtime.comm.messages import (
    ABORT,
    BEAT,
    CLOCK,
    DUMP,
    INTERRUPT,
    LAST_WRITES,
    LEAVING,
    PING,
    PONG,
    REPLY,
    STOP,
    TELEMETRY,
    Message,
    ReplicaStatus,
)
from workbench.runtime.process import beside
from workbench.runtime.process.last_writes import write_all
from workbench.runtime.replica.executor import StepInterrupted
from workbench.runtime.worker.host import ReplicaHost
from workbench.runtime.worker.lingering import Lingering
from workbench.runtime.worker.telemetry_shipper import TelemetryShipper

HEARTBEAT_SECONDS = 0.5
SHIP_SECONDS = 0.1


class SignalsThread(threading.Thread):
    """Serves the signals link of one `ReplicaHost`, and ends when the driver goes.

    `publish` sends telemetry batches; it is called at most ten times a second, and only if there are records.
    """

    def __init__(self, link: Link, host: ReplicaHost, publish: Callable[[bytes], None]) -> None:
        super().__init__(name="workbench-signals", daemon=True)
        self._link = link
        self._host = host
        self._telemetry = TelemetryShipper(host, publish)
        self._lingering = Lingering()
        # Slow requests, with the functions that answer them; None ends the thread.
        self._requests: queue.SimpleQueue[tuple[int, Callable[[], object]] | None] = queue.SimpleQueue()

    def run(self) -> None:
        """Runs until the driver is gone or announces its end."""
        next_beat = 0.0
        # On a separate thread, because the first drain imports pyarrow, and no heartbeat or abort may wait for that.
        threading.Thread(target=self._ship, name="workbench-telemetry", daemon=True).start()
        try:
            while not self._host.closed:
                now = time.monotonic()
                if now >= next_beat:
                    self._link.send((BEAT, self._statuses(), beside.statuses()))
                    next_beat = now + HEARTBEAT_SECONDS
                self._host.flush()
                if self._link.pending or readable(
                    self._link.fileno(), SHIP_SECONDS if self._active() else HEARTBEAT_SECONDS
                ):
                    for message in self._link.receive():
                        self._serve(message)
        except LinkClosed:
            pass
        finally:
            if self._host.failure:
                with contextlib.suppress(LinkClosed):
                    self._link.send((LEAVING, "failed inside workbench", self._host.failure))
            self._host.close()
            self._link.close()
            self._requests.put(None)

    def _ship(self) -> None:
        with contextlib.suppress(LinkClosed):
            while not self._host.closed:
                self._telemetry.ship()
                self._host.give_back()
                try:
                    request = self._requests.get(
                        timeout=SHIP_SECONDS if self._active() else HEARTBEAT_SECONDS
                    )
                except queue.Empty:
                    continue
                if request is not None:
                    number, answer = request
                    self._reply(number, answer())
        if not self._host.codec.by_reference:
            write_all()  # a killed driver has not requested this

    def _active(self) -> bool:
        return any(any(group.busy.values()) for group in self._host.open_groups().values())

    def _statuses(self) -> list[ReplicaStatus]:
        """One status per local replica."""
        rows = []
        for group_id, group in self._host.open_groups().items():
            for rank, env in group.envs.copy().items():
                step, seq, op, phase, site = env.communicator.status()
                thread = group.busy.get(rank)
                if thread and phase == "running":
                    site = self._lingering.place((group_id, rank), (step, seq), thread)
                rows.append(ReplicaStatus(group_id, rank, bool(thread), step, seq, op, phase, site))
        return rows

    def _serve(self, message: Message) -> None:
        kind = message[0]
        if kind == ABORT:
            _, group_id, epoch, serial, reason = message
            self._host.abort(group_id, epoch, serial, WorkbenchError(reason))
        elif kind == INTERRUPT:
            self._interrupt(message[1], message[2])
        elif kind == DUMP:
            self._reply(message[1], self._dump())
        elif kind == TELEMETRY:
            self._requests.put((message[1], self._telemetry.flush))
        elif kind == LAST_WRITES:
            self._requests.put((message[1], write_all))
        elif kind == PING:
            received = time.monotonic_ns()
            self._link.send((PONG, message[1], received, time.monotonic_ns()))
        elif kind == CLOCK:
            self._telemetry.set_clock(message[1], message[2])
        elif kind == STOP:
            raise LinkClosed("the driver said goodbye")

    def _reply(self, request: int, payload: object) -> None:
        self._link.send((REPLY, request, True, self._host.codec.encode(payload)))

    def _interrupt(self, group_id: int, epoch: int) -> None:
        """Interrupts the replica threads of a group: at their next bytecode, or in their current wait."""
        self._host.abort(group_id, epoch, -1, RunInterrupted("interrupted"))
        group = self._host.groups.get(group_id)
        if group is None or group.epoch != epoch:
            return  # its replicas have become idle and reconnected meanwhile
        for rank, ident in group.busy.copy().items():
            if ident and rank not in group.shielded_ranks:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(StepInterrupted)
                )

    def _dump(self) -> dict[str, object]:
        """Python stacks and the last collectives, for `wb.diagnose()`."""
        statuses = self._statuses()  # before the collectives, so that those include what has ended by then
        flights = {
            (group_id, rank): list(env.communicator.flight())
            for group_id, group in self._host.open_groups().items()
            for rank, env in group.envs.copy().items()
        }
        return {
            "stacks": python_stacks(),
            "flight": flights,
            "statuses": statuses,
            "places": self._places(),
        }

    def _places(self) -> dict[tuple[int, int], str]:
        """(group, rank) -> the current line of user code, for replicas that run something."""
        frames = sys._current_frames()
        return {
            (group_id, rank): user_place(frames.get(ident))
            for group_id, group in self._host.open_groups().items()
            for rank, ident in group.busy.copy().items()
            if ident
        }
