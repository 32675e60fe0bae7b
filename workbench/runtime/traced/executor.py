"""Runs traced programs: a worker compiles each once, and runs one after the other for all of its replicas.

The thread that reads the driver's messages runs them, while the devices' own threads, which do everything else, are
idle. JAX computes in the background, with up to `IN_FLIGHT` programs at once. More would be useless, and JAX on CPUs
deadlocks when more threads wait in collectives than its pool has.
"""

from __future__ import annotations

import dataclasses
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.errors import CollectiveAborted, DeadlineExceededError, WorkbenchError
from workbench.faults import fault
from workbench.runtime.comm.failure_report import report
from workbench.runtime.comm.links import Link, readable
from workbench.runtime.comm.messages import (
    DONE,
    RELEASE,
    RUN,
    SHIP,
    Failed,
    JoinGroup,
    Message,
    Ref,
    Run,
    carried,
    loads,
)
from workbench.runtime.comm.stale_values import argument_text, stale_value
from workbench.runtime.process import tpu
from workbench.runtime.replica.device_threads import Idle, Interruptible
from workbench.runtime.replica.env import set_current_env
from workbench.runtime.replica.executor import StepInterrupted, StepSkipped
from workbench.runtime.replica.replica_store import ReplicaStore
from workbench.runtime.traced.arguments import Arguments, PartialBatch, arguments_of
from workbench.runtime.traced.compiled_step import ReadyProgram
from workbench.runtime.traced.group_programs import GroupPrograms
from workbench.runtime.traced.host_exchange import HostExchange
from workbench.runtime.traced.pending_step import Started
from workbench.runtime.traced.program import Traced
from workbench.runtime.traced.row_store import RowStore
from workbench.runtime.traced.slices import contracted
from workbench.runtime.traced.step_rows import DeviceValues, StepRows
from workbench.runtime.traced.tracing import trace_program

if TYPE_CHECKING:
    from workbench.backends.jax.mesh import Rows
    from workbench.backends.jax.program import Compiled
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.host import TracingHost

IN_FLIGHT = 3
_CACHED = 256
# Number of ended steps that are reported together while more are waiting: half of those that may be in progress.
_TOGETHER = 16
_LONGEST_NS = 20_000_000  # the longest delay of a report


class TracedExecutor:
    """Runs the traced programs of one worker, on the thread that reads the steps link.

    It is a mode of the host (`HostMode`) and leaves everything else to the devices' threads.
    """

    by_devices = False

    def __init__(self, host: TracingHost, device_count: int) -> None:
        self._host = host
        self._device_count = device_count
        self._idle = Idle()
        self._step_rows = StepRows()
        self._hosts = HostExchange(host, self._idle)
        self._joining: dict[int, JoinGroup] = {}
        self._groups: dict[int, GroupPrograms] = {}
        self._started: deque[Started] = deque()
        self._unsent: list[Message] = []
        self._unsent_since_ns = 0
        self._last_end_ns = 0
        self._unneeded: list[tuple[int, int]] = []  # values that the notebook has dropped
        self.traces = 0

    def values_of(self, device: int) -> DeviceValues:
        """A device's components of values, including those of traced programs."""
        return DeviceValues(self._step_rows, device)

    def eager(self, values: list[Any]) -> list[Any]:
        """Converts values to arguments of an untraced program: rows on devices become NumPy arrays."""
        # Recognised by name, because importing `Row` would import JAX.
        return [value.numpy() if type(value).__name__ == "Row" else value for value in values]

    def held(self) -> int:
        """Number of values that are kept once for all devices."""
        return len(self._step_rows)

    def new_store(self) -> ReplicaStore:
        """An empty store for a replica, which can hold its rows of arrays on devices."""
        return RowStore()

    def handed_out(self, count: int) -> None:
        """Counts new messages in the queues of device threads; traced programs wait for them."""
        self._idle.add(count)

    def carried_out(self) -> None:
        """Notes that a device thread has executed one of its messages. Any thread."""
        self._idle.done()

    def before_reading(self, steps: Link) -> None:
        """Reports started steps until the driver sends something."""
        while (self._started or self._unsent) and not readable(steps.fileno(), 0.0):
            self.finish_one()

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> tuple[Any, str]:
        """First half of joining: (address for peers or None without replicas, address where JAX's processes meet)."""
        if len(join.processes) > 1:
            tpu.before_meeting()
        self._joining[join.group] = join
        first = len(join.processes) > 1 and join.processes[0] == self._host.worker
        return open_group() if join.local else None, free_address(bind_host) if first else ""

    def connect(self, group_id: int, told: dict[str, tuple[Any, str]]) -> dict[str, Any] | None:
        """Second half: starts JAX. Returns the peers' addresses, or None without replicas here."""
        from workbench.backends.jax import mesh as backend

        join = self._joining.pop(group_id)
        coordinator = next((meeting for _, meeting in told.values() if meeting), "")
        processes = join.processes
        backend.start(
            self._device_count,
            coordinator=coordinator,
            processes=len(processes),
            process=processes.index(self._host.worker),
        )
        if not join.local:
            return None
        # A group rebuilt in the same processes keeps its compiled programs.
        if group_id not in self._groups:
            mesh, local = backend.ReplicaMesh(join.places), sorted(join.local.items())
            self._groups[group_id] = GroupPrograms(mesh, local)
        return {worker: address for worker, (address, _) in told.items() if address is not None}

    def joined(self, group: LocalGroup) -> None:
        """Called when the group's replicas exist."""
        self._groups[group.join.group].joined(group)

    def take(self, message: Message) -> bool:
        """Runs a traced program; before other messages, reports started steps. Whether the message is then done."""
        if self._is_traced(message):
            if not self._idle:
                self._idle.wait(lambda: self._host.closed)
            self.run(message)
            return True
        if message[0] == RELEASE:
            self._unneeded += message[1]
        elif message[0] != SHIP:
            self.settle()
            for known in self._groups.values():
                known.hand_over()
        if message[0] == RUN:
            self._unneeded += Run.read(message).release
        if self._idle:  # otherwise an earlier program may still need them
            self._free()
        return False

    def leave(self, group_id: int) -> None:
        """Drops a group."""
        self._groups.pop(group_id, None)

    def _is_traced(self, message: Message) -> bool:
        """Whether `message` runs a traced program. Another executor reports a message that cannot be unpickled."""
        if message[0] != RUN:
            return False
        try:
            return type(self._host.objects.get(Run.read(message).function)) is Traced
        except Exception:
            return False

    def run(self, message: Message) -> None:
        """Starts a step; `finish_one` reports it when it has been computed."""
        serial, group_id, epoch, step, function, payload, _, release, committed, _ = Run.read(message)
        self._unneeded += release
        self._free()
        group = self._host.groups.get(group_id)
        known = self._groups.get(group_id)
        if group is None or known is None:
            return
        while len(self._started) >= IN_FLIGHT:
            self.finish_one(awaited=False)
        if epoch < group.epoch or serial > group.failed_serial:
            self.settle()
            self._report_failure(
                serial, group, known, StepSkipped("not run: an earlier step of this strategy had failed")
            )
            return
        known.begin(serial, step, committed)
        # Warnings raised meanwhile, such as about narrowed arguments, go to the cell.
        set_current_env(group.envs[known.ranks[0]])
        try:
            started = self._start(group, known, function, payload)
        except BaseException as error:
            self.settle()
            self._report_failure(serial, group, known, error)
        else:
            self._started.append(started)
        finally:
            set_current_env(None)

    def settle(self) -> None:
        """Waits for all started steps and reports them."""
        while self._started:
            self.finish_one()
        self._send()

    def finish_one(self, *, awaited: bool = True) -> None:
        """Waits until the oldest step has been computed, and reports it.

        Args:
          awaited: Whether the notebook may wait for it or read its result soon; if so, small values are included.
        """
        if not self._started:
            self._send()
            return
        started = self._started[0]
        try:
            started.wait(self._host)
            started.dump_given()
            started.require_finite()
            # Of several that ended together, only the last result is checked, or a sum of all.
            last = awaited and len(self._started) == 1
            outcome = started.program.outcome(started.leaves, awaited=last)
        except BaseException as error:
            self._started.popleft()
            # There will be no handle to the missing result.
            self._step_rows.release((started.serial, index) for index in range(len(started.leaves)))
            self._report_failure(started.serial, started.group, started.known, error)
            return
        self._started.popleft()
        ended_ns = time.monotonic_ns()
        began_ns = max(started.started_ns, self._last_end_ns)
        started.program.record(started.group, started.step, started.started_ns, began_ns, ended_ns)
        self._last_end_ns = ended_ns
        if not self._unsent:
            self._unsent_since_ns = ended_ns
        self._unsent.append((DONE, started.serial, [carried(outcome)]))
        if awaited or len(self._unsent) >= _TOGETHER or ended_ns - self._unsent_since_ns >= _LONGEST_NS:
            self._send()

    def _send(self) -> None:
        """Reports ended steps to the driver together, because waking it for each would take cores from the devices."""
        unsent, self._unsent = self._unsent, []
        self._host.send_all(unsent)

    # -- starting -----------------------------------------------------------------------------------------------

    def _start(
        self,
        group: LocalGroup,
        known: GroupPrograms,
        function: Any,
        payload: Any,
    ) -> Started:
        traced: Traced = self._host.objects.get(function)
        structure, arguments = self._arguments(group, known, payload, function, traced.partial_batch)
        key = function, structure, arguments.signature
        program = known.programs.get(key)
        if program is None:
            with Interruptible(group, known.local[0][0]):
                compiled = self._compile(group, known, traced, arguments)
            if len(known.programs) >= _CACHED:
                known.programs.clear()
            site = getattr(traced.user_function, "__name__", "step")
            program = known.programs[key] = ReadyProgram(self._host, known.ranks, compiled, site)
        fault("traced.before_start")
        compiled = program.compiled
        variables = {
            name: known.mesh.placed(known.rows_of(name, given_away=given_away))
            for names, given_away in ((compiled.writes, True), (compiled.reads, False))
            for name in names
        }
        group.envs[known.ranks[0]].operations = compiled.operations
        flat, new, checks, given = compiled(variables, arguments.rows, arguments.shared)
        from workbench.backends.jax.mesh import Rows

        for name, rows in new.items():
            known.assign(name, rows)
        serial, step, _, _ = known.begun
        leaves = list(contracted(flat, compiled.structure[1]))
        for index, leaf in enumerate(leaves):
            self._step_rows.keep((serial, index), known, leaf)
        waits_for = [leaf for leaf in flat if type(leaf) is Rows] + list(new.values())
        if checks is not None:
            waits_for.append(checks)
        waits_for += given
        return Started(
            serial,
            step,
            group,
            known,
            leaves,
            waits_for,
            program,
            time.monotonic_ns(),
            traced.timeout_seconds,
            checks,
            traced.dump,
            given,
        )

    def _arguments(
        self,
        group: LocalGroup,
        known: GroupPrograms,
        payload: Any,
        function: Any,
        partial_batch: PartialBatch,
    ) -> tuple[Any, Arguments]:
        """Returns the id of the arguments' structure, and the arguments."""
        if payload is None:
            spec, leaves, refs = None, [], []
            structure: Any = None
        else:
            structure, leaves, refs = loads(payload) if type(payload) is bytes else payload
            leaves = list(leaves)
            for index, made_by, leaf in refs:
                leaves[index] = Ref(made_by, leaf)
            spec = self._host.objects.get(structure)
        try:
            return structure, arguments_of(
                known.mesh,
                [self._host.executors[device] for device in known.positions],
                lambda ref: self._step_rows.rows(ref, known),
                lambda ref, rows: self._keep_in_place(ref, known, rows),
                spec,
                leaves,
                partial_batch,
                self._hosts.agree(known.begun.serial, group, known, leaves, partial_batch),
                lambda index, rows: known.padded((function, structure, index), rows),
            )
        except KeyError as error:
            where = argument_text(spec, refs, error.args[0]) if spec is not None else ""
            raise stale_value(-1, where) from error

    def _keep_in_place(self, ref: Ref, known: GroupPrograms, rows: Rows) -> None:
        for device in known.positions:
            self._host.executors[device].release([ref])
        self._step_rows.keep(ref, known, rows)

    def _free(self) -> None:
        """Drops the values that the notebook has dropped."""
        if not self._unneeded:
            return
        for known in self._groups.values():
            for ref in self._unneeded if known.agreed else ():
                known.agreed.pop(Ref(*ref), None)
        elsewhere = self._step_rows.release(self._unneeded)
        self._unneeded.clear()
        if elsewhere:
            for executor in self._host.executors:
                executor.release(elsewhere)

    def _compile(
        self, group: LocalGroup, known: GroupPrograms, traced: Traced, arguments: Arguments
    ) -> Compiled:
        self.traces += 1
        first = group.envs[known.ranks[0]]
        program = trace_program(known.mesh, traced, arguments, known.shapes(), first)
        self._hosts.compare(known.begun.serial, group, known, program)
        return program

    # -- ending -------------------------------------------------------------------------------------------------

    def _report_failure(
        self, serial: int, group: LocalGroup, known: GroupPrograms, error: BaseException
    ) -> None:
        if not isinstance(error, StepSkipped):
            group.failed_serial = min(group.failed_serial, serial)
        secondary = isinstance(error, (CollectiveAborted, StepSkipped, StepInterrupted))
        first = known.local[0][0]
        failure = report(first, error, secondary=secondary, overdue=isinstance(error, DeadlineExceededError))
        told = WorkbenchError(f"replica {first} raised {failure.type_name}: {failure.text}", replica=first)
        for rank, _ in known.local:
            if not isinstance(error, StepSkipped):
                group.envs[rank].communicator.abort(told)
        self._send()
        outcomes = [Failed(rank, dataclasses.replace(failure, rank=rank)) for rank, _ in known.local]
        self._host.send((DONE, serial, [carried(outcome) for outcome in outcomes]))
        if self._host.poisoned:
            self._host.end_process()


def free_address(host: str) -> str:
    """A free address of this host, such as "127.0.0.1:1234" or "[::1]:1234"."""
    version_6 = ":" in host
    with socket.create_server((host, 0), family=socket.AF_INET6 if version_6 else socket.AF_INET) as server:
        port = server.getsockname()[1]
    return f"[{host}]:{port}" if version_6 else f"{host}:{port}"
