"""Traced programs: a worker compiles them once and runs them once for all of its replicas, one after the other.

The thread that reads the driver's messages runs them itself, while the devices' own threads, which do everything
else, are idle. JAX computes in the background: up to `IN_FLIGHT` programs have been started and not ended. More would
be of no use, and JAX on CPUs deadlocks when more threads wait in collectives than its pool has.
"""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.collectives.options import CommunicationOptions
from workbench.errors import (
    CollectiveAborted,
    DeadlineExceededError,
    StaleGeneration,
    TracingError,
    WorkbenchError,
)
from workbench.faults import fault
from workbench.runtime.executor import StepInterrupted, StepSkipped
from workbench.runtime.reports import report
from workbench.runtime.traced_agreement import fed, kinds, most_rows, rows_of
from workbench.runtime.traced_arguments import Arguments, PartialBatch, arguments_of
from workbench.runtime.traced_slices import SlicesRows, contracted
from workbench.runtime.traced_trace import trace_program
from workbench.runtime.wire import (
    CALL,
    DONE,
    INLINE_BYTES,
    RELEASE,
    RUN,
    SHIP,
    JoinGroup,
    Message,
    Ref,
    RemoteLeaf,
    RowsLeaf,
    loads,
)
from workbench.telemetry.records import Signature

if TYPE_CHECKING:
    from workbench.backends.jax import ReplicaMesh, Rows
    from workbench.backends.jax_program import Compiled
    from workbench.runtime.env import ReplicaEnv
    from workbench.runtime.host import LocalGroup, ReplicaHost

IN_FLIGHT = 3
_CACHED = 256
_TOGETHER = 8  # ended steps that are reported at once while more are waiting
_POLL_SECONDS = 50e-6


class Traced:
    """Marks a program that is traced and compiled, once for all replicas, instead of called on each.

    Attributes:
      program: Called as `program(env, *args, **kwargs)` with a `TracedEnv`.
      user_function: What the user wrote, for messages.
      partial_batch: What becomes of components with fewer rows than others.
      timeout_seconds: Longest time that a step may take, None for any.
    """

    __slots__ = ("partial_batch", "program", "timeout_seconds", "user_function")

    def __init__(
        self,
        program: Callable[..., Any],
        user_function: Callable[..., Any],
        *,
        partial_batch: PartialBatch = "recompile",
        timeout_seconds: float | None = None,
    ) -> None:
        self.program = program
        self.user_function = user_function
        self.partial_batch = partial_batch
        self.timeout_seconds = timeout_seconds

    def __call__(self, env: ReplicaEnv, *args: Any, **kwargs: Any) -> Any:
        """Not without a worker that traces it."""
        raise TracingError("this program runs on TPU devices only")

    def __reduce__(self) -> tuple[Any, ...]:
        return _traced, (self.program, self.user_function, self.partial_batch, self.timeout_seconds)


def _traced(
    program: Any, user_function: Any, partial_batch: PartialBatch, timeout_seconds: float | None
) -> Traced:
    return Traced(program, user_function, partial_batch=partial_batch, timeout_seconds=timeout_seconds)


@dataclass(slots=True)
class _Started:
    """A step that JAX computes.

    Attributes:
      serial: Number of its message.
      step: Number among the user's steps.
      group: Whose step it is.
      leaves: Of its result: `Rows`, or what is the same in every step.
      waits_for: Everything that it computes.
      compiled: The program.
      site: The user's function.
      started_ns: When it was started.
      deadline_seconds: How long it may take, None for any time.
    """

    serial: int
    step: int
    group: LocalGroup
    leaves: list[Any]
    waits_for: list[Rows]
    compiled: Compiled
    site: str
    started_ns: int
    deadline_seconds: float | None


@dataclass(slots=True)
class _GroupPrograms:
    """What one group has here.

    Attributes:
      mesh: The devices of its replicas.
      local: (rank, device index) of this worker's replicas, in rank order.
      ranks: The replicas of this worker.
      programs: Compiled programs by function, structure and shapes.
      largest: Per function and leaf of its arguments, the most rows seen, to which partial batches are padded.
      agreed: The fewest and the most rows on any replica, of values that hosts have read, once they have told.
    """

    mesh: ReplicaMesh
    local: list[tuple[int, int]]
    ranks: tuple[int, ...]
    programs: dict[Any, Compiled] = field(default_factory=dict)
    largest: dict[Any, int] = field(default_factory=dict)
    agreed: dict[Ref, tuple[int, int]] = field(default_factory=dict)


class TracedExecutor:
    """Runs the traced programs of one worker; used by the thread that reads the steps link."""

    def __init__(self, host: ReplicaHost, device_count: int) -> None:
        self._host = host
        self._device_count = device_count
        self.idle = Idle()
        self._joining: dict[int, JoinGroup] = {}
        self._groups: dict[int, _GroupPrograms] = {}
        self._started: deque[_Started] = deque()
        self._unsent: list[Message] = []
        self._last_end_ns = 0
        self.traces = 0

    @property
    def busy(self) -> bool:
        """Whether a step has been started and not reported."""
        return bool(self._started or self._unsent)

    @staticmethod
    def on_host(value: Any) -> Any:
        """A value for a program that is not traced: rows on devices become NumPy arrays."""
        return value.numpy() if type(value).__name__ == "Row" else value

    def open(self, join: JoinGroup, bind_host: str, open_group: Callable[[], Any]) -> tuple[Any, str]:
        """First half of joining: (address for the peers or None without replicas here, where JAX's processes meet)."""
        self._joining[join.group] = join
        first = len(join.processes) > 1 and join.processes[0] == self._host.worker
        return open_group() if join.local else None, free_address(bind_host) if first else ""

    def connect(self, group_id: int, addresses: dict[str, tuple[Any, str]]) -> dict[str, Any]:
        """Second half: starts JAX. Returns the peers' addresses, none if there are no replicas here."""
        from workbench.backends import jax as backend

        join = self._joining.pop(group_id)
        coordinator = next((meeting for _, meeting in addresses.values() if meeting), "")
        processes = join.processes
        backend.start(
            self._device_count,
            coordinator=coordinator,
            processes=len(processes),
            process=processes.index(self._host.worker),
        )
        if not join.local:
            return {}
        if group_id not in self._groups:  # else rebuilt in the same processes: compiled programs stay
            mesh, local = backend.ReplicaMesh(join.places), sorted(join.local.items())
            self._groups[group_id] = _GroupPrograms(mesh, local, tuple(rank for rank, _ in local))
        self._groups[group_id].agreed.clear()  # a host may have failed after the others had agreed with it
        return {worker: address for worker, (address, _) in addresses.items() if address is not None}

    def handle(self, message: Message) -> bool:
        """Runs a traced program; before other messages it reports what was started. Whether that was all to do."""
        if self.takes(message):
            self.idle.wait(lambda: self._host.closed)
            self.run(message)
            return True
        if message[0] == RELEASE:
            self._released(message[1])
        elif message[0] != SHIP:
            self.settle()
        return False

    def leave(self, group_id: int) -> None:
        """Forgets a group."""
        self._groups.pop(group_id, None)

    def takes(self, message: Message) -> bool:
        """Whether `message` runs a traced program. One that cannot be unpickled is not ours to report."""
        if message[0] != RUN:
            return False
        try:
            return type(self._host.objects.get(message[5])) is Traced
        except Exception:
            return False

    def run(self, message: Message) -> None:
        """Starts a step; it is reported when it has been computed, see `finish_one`."""
        _, serial, group_id, epoch, step, function, payload, _, release, committed, _ = message
        for executor in self._host.executors:
            executor.release(release)
        self._released(release)
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
        for rank, _ in known.local:
            env = group.envs[rank]
            env.store.commit(committed)
            env.store.begin(serial, step)
        try:
            started = self._start(
                serial, step, group, known, self._host.objects.get(function), function, payload
            )
        except BaseException as error:
            self.settle()
            self._report_failure(serial, group, known, error)
        else:
            self._started.append(started)

    def settle(self) -> None:
        """Waits for and reports all started steps."""
        while self._started:
            self.finish_one()
        self._send()

    def finish_one(self, *, awaited: bool = True) -> None:
        """Waits until the oldest step has been computed, and reports it.

        Args:
          awaited: The notebook may be about to look at its result: small values go along.
        """
        if not self._started:
            self._send()
            return
        started = self._started[0]
        known = self._groups[started.group.join.group]
        try:
            self._wait(started, known)
            outcomes = [self._outcome(started, known, awaited)]
        except BaseException as error:
            self._started.popleft()
            self._report_failure(started.serial, started.group, known, error)
            return
        self._started.popleft()
        self._record(started, known)
        self._unsent.append((DONE, started.serial, outcomes))
        if awaited or len(self._unsent) >= _TOGETHER:
            self._send()

    def _send(self) -> None:
        """Tells the driver of the steps that have ended: waking it for each would take the cores from the devices."""
        for message in self._unsent:
            self._host.send(message)
        self._unsent.clear()

    # -- starting -----------------------------------------------------------------------------------------------

    def _start(
        self,
        serial: int,
        step: int,
        group: LocalGroup,
        known: _GroupPrograms,
        traced: Traced,
        function: Any,
        payload: Any,
    ) -> _Started:
        envs = [group.envs[rank] for rank, _ in known.local]
        arguments = self._arguments(serial, group, known, payload, function, traced.partial_batch)
        key = function, arguments.signature
        program = known.programs.get(key)
        if program is None:
            with self._interruptible(group, known):
                program = self._compile(serial, group, known, traced, arguments, envs)
            if len(known.programs) >= _CACHED:
                known.programs.clear()
            known.programs[key] = program
        fault("traced.before_start")
        variables = {
            name: known.mesh.placed(self._rows_of(known, envs, name))
            for name in (*program.writes, *program.reads)
        }
        envs[0].operations = program.operations
        flat, new = program(variables, arguments.rows, arguments.shared)
        from workbench.backends.jax import Row, Rows

        leaves = list(contracted(flat, program.structure[1]))

        for name, rows in new.items():
            for position, env in enumerate(envs):
                env.store[name] = Row(rows, position)
        for index, leaf in enumerate(leaves):
            for position, (_, device) in enumerate(known.local):
                value: Any = Row(leaf, position) if type(leaf) is Rows else leaf
                if type(leaf) is SlicesRows:
                    value = leaf.fixed.with_arrays(Row(leaf.values, position), Row(leaf.indices, position))
                self._host.executors[device].keep((serial, index), value)
        waits_for = [leaf for leaf in flat if type(leaf) is Rows] + list(new.values())
        site = getattr(traced.user_function, "__name__", "step")
        return _Started(
            serial, step, group, leaves, waits_for, program, site, time.monotonic_ns(), traced.timeout_seconds
        )

    def _arguments(
        self,
        serial: int,
        group: LocalGroup,
        known: _GroupPrograms,
        payload: Any,
        function: Any,
        partial_batch: PartialBatch,
    ) -> Arguments:
        if payload is None:
            spec, leaves = None, []
            structure: Any = None
        else:
            structure, leaves, refs = loads(payload) if type(payload) is bytes else payload
            leaves = list(leaves)
            for index, made_by, leaf in refs:
                leaves[index] = Ref(made_by, leaf)
            spec = self._host.objects.get(structure)
        try:
            return arguments_of(
                known.mesh,
                [self._host.executors[device] for _, device in known.local],
                spec,
                leaves,
                partial_batch,
                self._agree(serial, group, known, leaves, partial_batch),
                lambda index, rows: self._padded(known, (function, structure, index), rows),
            )
        except KeyError as error:
            raise StaleGeneration(
                "an argument is gone: its replica was replaced since it was made; compute it again"
            ) from error

    def _agree(
        self,
        serial: int,
        group: LocalGroup,
        known: _GroupPrograms,
        leaves: Sequence[Any],
        partial_batch: PartialBatch,
    ) -> dict[int, int]:
        """Compares what the hosts have read, if there are several; see `traced_agreement`."""
        if not _has_several_hosts(group):
            return {}
        values = fed(self._host.executors[known.local[0][1]], leaves)
        new = {index: ref for index, ref in values.items() if ref not in known.agreed}
        if new:
            device, refs = dict(known.local), list(new.values())
            everyones = self._exchange(
                serial,
                group,
                known,
                lambda env: kinds(self._host.executors[device[env.rank]], refs),
                "arguments",
            )
            known.agreed.update(zip(refs, rows_of(everyones, list(new)), strict=True))
        return most_rows({index: known.agreed[ref] for index, ref in values.items()}, partial_batch)

    def _released(self, values: Sequence[tuple[int, int]]) -> None:
        """The notebook has let go of these."""
        for known in self._groups.values():
            for serial, leaf in values if known.agreed else ():
                known.agreed.pop(Ref(serial, leaf), None)

    @staticmethod
    def _padded(known: _GroupPrograms, key: Any, rows: int) -> int:
        """To how many rows an argument is padded: to the most that there were."""
        known.largest[key] = max(rows, known.largest.get(key, 0))
        return known.largest[key]

    def _compile(
        self,
        serial: int,
        group: LocalGroup,
        known: _GroupPrograms,
        traced: Traced,
        arguments: Arguments,
        envs: Sequence[ReplicaEnv],
    ) -> Compiled:
        variables = {
            name: (tuple(value.shape), np.dtype(value.dtype))
            for name, value in envs[
                0
            ].store.items()  # as they are stored: looking at shapes brings nothing home
            if hasattr(value, "shape") and hasattr(value, "dtype") and value.dtype != object
        }
        self.traces += 1
        program = trace_program(known.mesh, traced, arguments, variables, envs[0])
        if _has_several_hosts(group):
            self._compare(serial, group, known, program)
        return program

    def _compare(self, serial: int, group: LocalGroup, known: _GroupPrograms, program: Compiled) -> None:
        """Makes sure that all hosts have compiled the same program: running different ones would hang all of them.

        Raises:
          TracingError: If they have not.
          DeadlineExceededError: If a host does not come in time.
        """
        mine = np.frombuffer(program.digest, np.uint8)[np.newaxis]
        found = self._exchange(serial, group, known, lambda env: mine, "programs")
        different = [rank for rank in range(len(found)) if (found[rank] != found[0]).any()]
        if different:
            hosts = ", ".join(dict.fromkeys(group.devices[rank].host for rank in different))
            raise TracingError(
                f"hosts traced different programs: that of {hosts} is not that of {group.devices[0].host}; the "
                f"function must not depend on the host (its name, time, files, or arguments whose shapes differ)"
            )

    def _exchange(
        self,
        serial: int,
        group: LocalGroup,
        known: _GroupPrograms,
        mine: Callable[[ReplicaEnv], Any],
        what: str,
    ) -> Any:
        """What `mine(env)` returns on each replica of all hosts, in rank order; none of them waits for devices.

        Raises:
          DeadlineExceededError: If a host does not come in time.
        """
        options = CommunicationOptions(timeout_seconds=120.0)

        def gather(env: ReplicaEnv) -> Any:
            # The step is not marked as finished: there may be a second exchange in it.
            env.communicator.begin(env.step, serial)
            with env.communicator.internal(what):
                return env.communicator.all_gather(mine(env), 0, site=what, options=options)

        return self._on_devices(group, known, gather)

    def _on_devices(
        self, group: LocalGroup, known: _GroupPrograms, function: Callable[[ReplicaEnv], Any]
    ) -> Any:
        """Calls `function` for each local replica on its own thread; what the first one returns."""
        found: dict[int, Any] = {}

        def call(device: int) -> None:
            rank = group.rank_of_device.get(device)
            if rank is not None:
                try:
                    found[rank] = function(group.envs[rank])
                except BaseException as error:
                    found[rank] = error

        self._host.to_devices((CALL, call))
        self.idle.wait(lambda: self._host.closed)
        for result in found.values():
            if isinstance(result, BaseException):
                raise result
        return found[known.local[0][0]]

    def _rows_of(self, known: _GroupPrograms, envs: Sequence[ReplicaEnv], name: Any) -> Rows:
        """A variable as the program takes it: as it was left by the last step, or put together."""
        from workbench.backends.jax import Row

        components = [env.store.kept(name) for env in envs]
        first = components[0]
        if type(first) is Row and all(type(c) is Row and c.rows is first.rows for c in components):
            rows = first.rows
        else:
            rows = known.mesh.stack(components)
        if rows.array.is_deleted():
            raise StaleGeneration(
                "the value of a variable went with a step that failed after it had been started; restore a checkpoint, "
                "or assign the variable anew"
            )
        return rows

    def _interruptible(self, group: LocalGroup, known: _GroupPrograms) -> _Interruptible:
        return _Interruptible(group, known.local[0][0])

    # -- ending -------------------------------------------------------------------------------------------------

    def _wait(self, started: _Started, known: _GroupPrograms) -> None:
        from workbench.backends.jax_program import ready, wait

        alone = known.mesh.size == len(known.local)
        if alone and started.deadline_seconds is None:
            wait(started.waits_for)
            return
        ends = time.monotonic() + (started.deadline_seconds or 1e9)
        epoch = started.group.epoch
        while not ready(started.waits_for):
            group = started.group
            if group.aborted and group.epoch == epoch:
                self._host.poisoned = True
                raise CollectiveAborted(
                    "the step cannot end: another host has failed, and JAX cannot stop a program"
                )
            if time.monotonic() > ends:
                self._host.poisoned = True
                raise DeadlineExceededError(
                    f"a step of {started.site!r} did not end within {started.deadline_seconds:g} s: a host is missing "
                    f"in one of its collectives, or it takes longer (CommunicationOptions.timeout_seconds)"
                )
            time.sleep(_POLL_SECONDS)  # JAX has no wait with a deadline
        wait(started.waits_for)  # raises what the computation raised

    def _outcome(self, started: _Started, known: _GroupPrograms, awaited: bool) -> tuple[Any, ...]:
        """What DONE carries: the local ranks, the structure of the result, and its leaves; see `wire`."""
        from workbench.backends.jax import Rows

        leaves: list[Any] = []
        for leaf in started.leaves:
            if type(leaf) is SlicesRows:
                leaves.append(RemoteLeaf("IndexedSlices", leaf.values.dtype.name, leaf.fixed.dense_shape, 0))
            elif type(leaf) is not Rows:
                leaves.append((leaf,))
            elif awaited and leaf.nbytes <= INLINE_BYTES:
                leaves.append(RowsLeaf(leaf.bring_home()))
            else:
                leaves.append(RemoteLeaf("jax.Array", leaf.dtype.name, leaf.shape, leaf.nbytes))
        return known.ranks, self._host.structure_key(started.compiled.structure[0]), leaves

    def _record(self, started: _Started, known: _GroupPrograms) -> None:
        """One record per replica: the whole step, with what its collectives move as the compiler says."""
        end = time.monotonic_ns()
        group, program = started.group, started.compiled
        begin = max(started.started_ns, self._last_end_ns)
        self._last_end_ns = end
        for rank, _ in known.local:
            ring = self._host.rings.get((group.join.group, rank))
            if ring is not None:
                signature = Signature(
                    group.join.generation,
                    group.join.name,
                    "step",
                    "",
                    "",
                    "traced",
                    0,
                    "xla",
                    site=started.site,
                )
                ring.write(
                    ring.number(signature),
                    started.step,
                    0,
                    program.collectives,
                    program.collective_bytes,
                    started.started_ns,
                    begin,
                    end,
                )

    def _report_failure(
        self, serial: int, group: LocalGroup, known: _GroupPrograms, error: BaseException
    ) -> None:
        if not isinstance(error, StepSkipped):
            group.failed_serial = min(group.failed_serial, serial)
        secondary = isinstance(error, (CollectiveAborted, StepSkipped, StepInterrupted))
        first = known.local[0][0]
        failure = report(first, error, secondary=secondary)
        told = WorkbenchError(f"replica {first} raised {failure.type_name}: {failure.text}", replica=first)
        for rank, _ in known.local:
            if not isinstance(error, StepSkipped):
                group.envs[rank].communicator.abort(told)
        self._send()
        outcomes = [(rank, dataclasses.replace(failure, rank=rank)) for rank, _ in known.local]
        self._host.send((DONE, serial, outcomes))
        if self._host.poisoned:
            self._host.end_process()


class Idle:
    """How many messages the device threads have still to carry out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0

    def add(self, count: int) -> None:
        """So many more were handed out."""
        with self._changed:
            self._open += count

    def done(self) -> None:
        """One was carried out."""
        with self._changed:
            self._open -= 1
            if not self._open:
                self._changed.notify_all()

    def wait(self, gave_up: Callable[[], bool]) -> None:
        """Waits until all have been carried out; their own waits have deadlines. Ends early when `gave_up()`."""
        with self._changed:
            while self._open and not gave_up():
                self._changed.wait(1.0)


def _has_several_hosts(group: LocalGroup) -> bool:
    return len({device.worker for device in group.devices}) > 1


def free_address(host: str) -> str:
    """An address on which nobody listens."""
    with socket.create_server((host, 0)) as server:
        return f"{host}:{server.getsockname()[1]}"


class _Interruptible:
    """Lets an interrupt reach this thread while it traces and compiles; a step that has started cannot be stopped."""

    def __init__(self, group: LocalGroup, rank: int) -> None:
        self._group = group
        self._rank = rank

    def __enter__(self) -> None:
        self._group.busy[self._rank] = threading.get_ident()

    def __exit__(self, *exc_info: object) -> None:
        self._group.busy[self._rank] = 0
        _checkpoint()


def _checkpoint() -> None:
    """An interrupt that was sent before is raised at this call at the latest."""
