"""Runs the steps of one device's replicas, in order, on one thread."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import optree

from workbench.backends.from_gpu import described_error
from workbench.errors import (
    CaptureError,
    CollectiveAborted,
    DeadlineExceededError,
    RunInterrupted,
    WorkbenchError,
)
from workbench.runtime.comm.codec import Codec
from workbench.runtime.comm.failure_report import FailureReport, report, safe_text
from workbench.runtime.comm.messages import (
    CALL,
    FETCH,
    MERGE,
    MERGED,
    PUT,
    RELEASE,
    REPLY,
    RUN,
    Done,
    Failed,
    Message,
    Outcome,
    Ref,
    Run,
    loads,
)
from workbench.runtime.comm.stale_values import argument_text, stale_value
from workbench.runtime.replica.env import ReplicaEnv, set_current_env
from workbench.runtime.replica.output import ReplicaOutput

if TYPE_CHECKING:
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.replica.object_cache import ShippedObjects

# Types of the most frequent results; their structure is known.
_LEAVES = frozenset({int, float, bool, complex, np.ndarray, np.float32, np.float64})
_LEAF = optree.tree_structure(cast("Any", 0), namespace="workbench")


class StepSkipped(WorkbenchError):
    """The step did not run, because an earlier one of its group had failed."""


class StepInterrupted(KeyboardInterrupt):
    """Raised in a replica's thread by the signals thread. Not an Exception, so `except Exception` does not catch it."""


class MergeAborted(WorkbenchError):
    """The merge that this replica waited for is impossible, because another replica failed."""


_SECONDARY = (CollectiveAborted, MergeAborted, RunInterrupted, StepInterrupted)


class Reports(Protocol):
    """Reports the outcome of a step to the driver; see `StepTallies`."""

    def ended(self, serial: int, group: LocalGroup, ranks: Any, outcome: Outcome) -> None:
        """Reports that a replica has ended a step."""

    def merge_requested(self, message: Message) -> None:
        """Reports that a replica waits in a merge."""


class Mode(Protocol):
    """How the host runs steps."""

    def eager(self, values: list[Any]) -> list[Any]:
        """Converts values to arguments of a program that runs on one replica."""


class Host(Protocol):
    """The part of a host that its devices use."""

    codec: Codec
    groups: dict[int, LocalGroup]
    objects: ShippedObjects

    @property
    def tallies(self) -> Reports:
        """The object to which ended steps are reported."""

    @property
    def mode(self) -> Mode:
        """How the host runs steps."""

    def handle(self, message: Message) -> None:
        """Executes a message that concerns the host, not one device."""

    def send(self, message: Message) -> None:
        """Sends to the driver."""

    def structure_key(self, spec: Any) -> int:
        """The driver's number for the structure of a result."""

    def use_device(self, index: int) -> None:
        """Makes a device current on the calling thread."""


class DeviceExecutor:
    """One device of a worker: its values, and the thread that runs its replicas (at most one per group).

    `next_message` waits for the next message of this device. Only the executor's thread calls it, but also inside a
    paused replica (`merge`), so that the work of a merge function reaches the replica that waits for it.

    Args:
      host: The host of the device.
      index: Number of the device on the host.
      next_message: See above.
      values: The mapping with this device's components of values.
    """

    def __init__(
        self,
        host: Host,
        index: int,
        next_message: Callable[[], Message],
        values: dict[tuple[int, int], Any],
    ) -> None:
        self._host = host
        self._index = index
        self._next_message = next_message
        self._backlog: deque[Message] = deque()
        self._values = values
        self._unreadable: dict[tuple[int, int], str] = {}  # key -> why this value cannot be read
        self._merge_serial = -1
        self._merge_leaf = -1

    def loop(self) -> None:
        """Executes messages until the link ends (`next_message` raises)."""
        while True:
            self.execute(self._backlog.popleft() if self._backlog else self._next_message())

    def execute(self, message: Message) -> None:
        """Executes one message; replies go to the driver."""
        kind = message[0]
        if kind == RUN:
            self._run(message)
        elif kind == RELEASE:
            for key in message[1]:
                self._values.pop(key, None)
        elif kind == PUT:
            self._put(message)
        elif kind == FETCH:
            self._fetch(message)
        elif kind == CALL:
            message[1](self._index)
        elif kind == MERGED:
            pass  # for another replica of this worker, or one that no longer waits
        else:
            self._host.handle(message)

    def kept(self, key: tuple[int, int]) -> Any:
        """The value kept as `key`.

        Raises:
          KeyError: if there is none.
        """
        return self._values[key]

    def keep(self, key: tuple[int, int], value: Any) -> None:
        """Keeps a value under `key`, to which a handle of the notebook refers. On this device's thread."""
        self._values[key] = value

    def release(self, keys: Iterable[tuple[int, int]]) -> None:
        """Drops values. Only while this device is idle."""
        for key in keys:
            self._values.pop(key, None)

    def holds(self) -> int:
        """Number of values kept for handles, for tests and `wb.diagnose()`."""
        return len(self._values)

    def _put(self, message: Message) -> None:
        _, serial, components = message
        if self._index in components:
            value = components[self._index]
            try:
                self._values[serial, 0] = self._host.codec.decode(value, "a value for the replicas")
            except CaptureError as error:  # nothing waits for this message; requesting the value will raise
                self._unreadable[serial, 0] = str(error)

    def _fetch(self, message: Message) -> None:
        _, request, device, keys = message
        if device != self._index:
            return
        values = []
        for key in keys:
            if key not in self._values:
                self._host.send((REPLY, request, False, report(-1, self._missing(key))))
                return
            values.append(self._values[key])
        try:
            payload = self._host.codec.encode(self._host.codec.on_host(values))
        except Exception as error:  # pickling calls code of any class in the values
            kinds = " or ".join(dict.fromkeys(type(value).__name__ for value in values))
            refusal = CaptureError(
                f"a {kinds} that a replica function returned cannot be sent to the notebook: "
                f"{type(error).__name__}: {safe_text(error)}; return arrays, numbers or what pickles, or pass it on to "
                f"a replica function, which needs no pickling"
            )
            self._host.send((REPLY, request, False, report(-1, refusal)))
        else:
            self._host.send((REPLY, request, True, payload))

    def _missing(self, key: tuple[int, int], rank: int = -1, where: str = "") -> WorkbenchError:
        """Why there is no value with `key`.

        Args:
          key: The key of the value.
          rank: The replica that should have it; -1 to derive it from the device.
          where: The argument and the function; "" if the value itself was requested.
        """
        if key in self._unreadable:
            return CaptureError(self._unreadable[key])
        return stale_value(rank, where)

    def _run(self, message: Message) -> None:
        serial, group_id, epoch, step, function, payload, ranks, release, committed, _ = Run.read(message)
        for key in release:
            self._values.pop(key, None)
        group = self._host.groups.get(group_id)
        rank = -1 if group is None else group.rank_of_device.get(self._index, -1)
        if group is None or rank < 0 or (ranks is not None and rank not in ranks):
            return
        env = group.envs[rank]
        if epoch < group.epoch or serial > group.failed_serial:
            skipped = StepSkipped("not run: an earlier step of this strategy had failed")
            self._host.tallies.ended(
                serial, group, ranks, Failed(rank, report(rank, skipped, secondary=True))
            )
            return
        env.store.commit(committed)
        try:
            outcome = self._call(env, group, serial, step, function, payload)
        except StepInterrupted as interrupt:  # it came while the step was ending; there is no second one
            set_current_env(None)
            outcome = Failed(rank, self._failed(env, group, interrupt, serial))
        self._host.tallies.ended(serial, group, ranks, outcome)

    def _call(
        self,
        env: ReplicaEnv,
        group: LocalGroup,
        serial: int,
        step: int,
        function: Any,
        payload: Any,
    ) -> Outcome:
        """Runs one step of one replica."""
        outer_serial, outer_step = env.serial, env.step
        nested = outer_serial >= 0
        env.serial, env.step = serial, step
        env.store.begin(serial, outer_step if nested else step)
        set_current_env(env)
        try:
            if not nested:
                group.busy[env.rank] = threading.get_ident()
                self._host.use_device(self._index)
                env.communicator.begin(step, serial)
            program = self._host.objects.get(function)
            args, kwargs = self._arguments(env.rank, payload)
            outcome: Outcome = self._pack(env.rank, serial, program(env, *args, **kwargs))
            if not nested:
                env.communicator.finish()
                if type(sys.stdout) is ReplicaOutput:
                    sys.stdout.flush()  # an unfinished line must precede the step's completion
            return outcome
        except BaseException as error:
            if not nested:
                group.busy[env.rank] = 0  # first, because the following lines must not be interrupted
            return Failed(env.rank, self._failed(env, group, error, serial))
        finally:
            if nested:
                env.serial, env.step = outer_serial, outer_step
            else:
                env.serial = -1
                group.busy[env.rank] = 0
                # An interrupt sent before this call is raised by it at the latest, and thus within `_run`.
                set_current_env(None)

    def _failed(self, env: ReplicaEnv, group: LocalGroup, error: BaseException, serial: int) -> FailureReport:
        group.failed_serial = min(group.failed_serial, serial)
        error = described_error(error, env.rank)
        failure = report(
            env.rank,
            error,
            secondary=isinstance(error, _SECONDARY),
            overdue=isinstance(error, DeadlineExceededError) and bool(error.collective),
        )
        told = f"replica {failure.rank} raised {failure.type_name}: {failure.text}"
        env.communicator.abort(WorkbenchError(told, replica=failure.rank))
        return failure

    def _arguments(self, rank: int, payload: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if payload is None:
            return (), {}
        structure, leaves, refs = loads(payload) if type(payload) is bytes else payload
        resolved = list(leaves)
        values = self._values
        try:
            for index, serial, leaf in refs:
                resolved[index] = values[serial, leaf]
            resolved = self._host.mode.eager(resolved)
        except KeyError as error:
            spec = self._host.objects.get(structure)
            raise self._missing(error.args[0], rank, argument_text(spec, refs, error.args[0])) from error
        args: Any = optree.tree_unflatten(self._host.objects.get(structure), resolved)
        return args  # type: ignore[no-any-return]

    def _pack(self, rank: int, serial: int, result: Any) -> Done:
        """Stores the result's leaves; returns the message part for the driver."""
        if type(result) in _LEAVES:
            leaves, spec = [result], _LEAF
        else:
            leaves, spec = optree.tree_flatten(result, namespace="workbench")
        key = self._host.structure_key(spec)
        for index, leaf in enumerate(leaves):
            self._values[serial, index] = leaf
        return Done(rank, key, self._host.codec.leaves(leaves))

    def merge(
        self, env: ReplicaEnv, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs `fn` in the driver, while this thread executes the work that it causes; see `ReplicaEnv.merge`."""
        serial = env.serial
        call: Any = args, kwargs
        leaves, spec = optree.tree_flatten(call, namespace="workbench")
        # Arguments become values of this replica, under numbers that no result has and that are equal on all replicas.
        if self._merge_serial != serial:
            self._merge_serial, self._merge_leaf = serial, -1
        first_leaf = self._merge_leaf
        codec = self._host.codec
        body = codec.encode((fn, spec, first_leaf, [codec.leaf(leaf) for leaf in leaves]))
        self._merge_leaf -= len(leaves)
        for index, leaf in enumerate(leaves):
            self._values[serial, first_leaf - index] = leaf
        seq = env.communicator.status().seq
        self._host.tallies.merge_requested((MERGE, serial, env.rank, body, seq))
        group = self._host.groups[env.group_id]
        with env.communicator.paused("merge_call"), group.shielded(env.rank):
            while True:
                message = self._next_message()
                if message[0] == MERGED and message[1] == serial:
                    break
                if message[0] == RELEASE or (message[0] == RUN and not Run.read(message).nested):
                    # While this step is paused, a later one must not free values, which may be arguments of this one.
                    self._backlog.append(message)
                else:
                    self.execute(message)
        set_current_env(env)
        env.store.begin(serial, env.step)
        ok, payload = codec.decode(message[2], "the answer to merge_call")
        if not ok:
            raise MergeAborted(payload)
        spec, leaves = payload[env.rank]
        resolved = [self._values[leaf] if type(leaf) is Ref else leaf for leaf in leaves]
        return optree.tree_unflatten(spec, resolved)
