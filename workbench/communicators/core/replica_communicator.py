"""The communicator of a replica: arrays of any library above, a link to the peers below."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic_ns as _now
from typing import Any

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.call import Call
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.finiteness import FINITE, NOT_READ
from workbench.communicators.core.gathering import (
    GatherLayout,
    filled,
    fitting_shapes,
    in_words,
    written_shapes,
)
from workbench.communicators.core.link import Blocks, Link
from workbench.communicators.core.options import Options, Reduction
from workbench.communicators.core.packing import bytes_of, described, header
from workbench.communicators.core.plan import Plan, planned, remember
from workbench.communicators.core.position import OUTSIDE, Flight, Position, Status
from workbench.communicators.core.roll_call import RollCall
from workbench.errors import CollectiveAborted, CollectiveMismatch, StaleGeneration, WorkbenchError
from workbench.faults import fault
from workbench.telemetry.recording.flight_memory import POSITION
from workbench.telemetry.recording.ring import Ring, SharedRing
from workbench.telemetry.records import Signature, message_bytes


class ReplicaCommunicator:
    """The implementation of `Communicator` for threads, processes and hosts; only their links differ."""

    def __init__(
        self,
        rank: int,
        size: int,
        link: Link,
        *,
        roll_call: RollCall,
        generation: int = 0,
        group: str = "",
        ring: Ring | SharedRing | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.generation = generation
        self.transport = link.transport
        self._link = link
        self._group = group
        self._ring = ring
        self._memory = ring.memory if isinstance(ring, Ring) else None
        self._where = None if self._memory is None else self._memory.words
        self._position = Position(rank, reads=ring is not None)
        roll_call.watch(self._position)
        self._purpose = ""
        self._plans: dict[Any, Plan] = {}
        self._closed = False
        self._closing = threading.Lock()  # two threads must not close the same descriptors

    def begin(self, step: int, order: int | None = None) -> None:
        """Starts a step; see `Communicator.begin`."""
        position = self._position
        position.step = step
        position.order = step if order is None else order
        position.seq = -1
        if self._memory is not None:
            self._memory.begin(step)

    def finish(self) -> None:
        """Ends the step: peers that still wait in one of its collectives get `CollectiveMismatch` at once."""
        self._link.finish(self._position)

    def all_reduce(
        self,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """Combines each array elementwise over all replicas (see `Communicator.all_reduce`)."""
        views = [x if type(x) is np.ndarray else backend.view(x) for x in arrays]
        # The common case first: building the general key would take a fifth of the time of a small array.
        if len(views) == 1:
            what: Any = (views[0].dtype, views[0].shape)
        else:
            what = tuple([(view.dtype, view.shape) for view in views])
        key = (request, self._purpose, what)
        plan = self._plans.get(key)
        if plan is None:
            plan = remember(self._plans, key, planned("all_reduce", views, request, purpose=self._purpose))
        enter = self._enter(plan.call, request.options)
        try:
            results = plan.combine(self._link, self._position, views, request.shared)
        except BaseException as error:
            self._give_up(enter, error)
            raise
        self._leave(enter, "ok")
        if plan.plain is not None and views[0] is arrays[0]:
            return results
        return [
            result if type(x) is np.ndarray else backend.like(result, x)
            for result, x in zip(results, arrays, strict=True)
        ]

    def reduce(
        self, arrays: Sequence[Any], op: str, root: int, *, site: str = "", options: Options | None = None
    ) -> list[Any]:
        """Combines arrays as `all_reduce` does; replicas other than `root` get None for each array."""
        self._check_root(root)
        views = [backend.view(x) for x in arrays]
        request = Reduction(op, site, options, shared=True)
        plan = planned("reduce", views, request, purpose=self._purpose, root=root)
        totals = self._run(plan.call, options, lambda: plan.combine(self._link, self._position, views, True))
        if self.rank != root:
            return [None] * len(totals)
        return [backend.like(total.copy(), x) for total, x in zip(totals, arrays, strict=True)]

    def reduce_scatter(self, array: Any, op: str, *, site: str = "", options: Options | None = None) -> Any:
        """Combines `array` over all replicas and returns this replica's part along axis 0 (as np.array_split)."""
        value = backend.view(array)
        if value.ndim == 0:
            raise ValueError("reduce_scatter needs at least one dimension to split, got a scalar")
        request = Reduction(op, site, options, shared=True)
        plan = planned("reduce_scatter", [value], request, purpose=self._purpose, count=self._part(value))
        (total,) = self._run(
            plan.call, options, lambda: plan.combine(self._link, self._position, [value], True)
        )
        part = np.array_split(total, self.size)[self.rank]
        return backend.like(part.copy(), array)

    def all_gather(self, array: Any, axis: int, *, site: str = "", options: Options | None = None) -> Any:
        """Concatenates every replica's array along `axis`, in rank order (see `Communicator.all_gather`)."""
        value = backend.view(array)
        if value.ndim == 0:
            raise ValueError("all_gather needs at least one dimension to concatenate along, got a scalar")
        if not -value.ndim <= axis < value.ndim:
            raise ValueError(f"all_gather along axis {axis} of an array of {value.ndim} dimensions")
        value = backend.native(value)
        dtype = value.dtype
        nbytes = message_bytes("all_gather", value.size, value.itemsize, self.size)
        call = self._call(
            "all_gather",
            in_words([dtype], [value.shape], axis),
            site,
            f"axis={axis}",
            value.size,
            nbytes,
            dtype.name,
            alike=backend.dtype_text(dtype),
        )
        mine = {self.rank: bytes_of(value), ~self.rank: written_shapes([value])}

        def body() -> np.ndarray:
            ranks, link, position = range(self.size), self._link, self._position
            blocks = link.exchange(position, mine)
            position.look(value)
            told = [blocks[~rank] for rank in ranks]
            shapes = fitting_shapes(
                link, position, told, dtypes=[dtype], axis=axis, generation=self.generation
            )
            parts = [blocks[rank].view(dtype).reshape(shapes[rank][0]) for rank in ranks]
            together = np.concatenate(filled(parts, axis), axis=axis)
            position.moved = value.size, together.nbytes, dtype.name
            return together

        return backend.like(self._run(call, options, body), array)

    def all_gather_arrays(
        self,
        arrays: Sequence[Any],
        axis: int,
        *,
        site: str = "",
        options: Options | None = None,
        nesting: str = "",
    ) -> list[Any]:
        """Concatenates each array as `all_gather` does, in one collective (see `Communicator.all_gather_arrays`)."""
        views = [backend.native(backend.view(x)) for x in arrays]
        for view in views:
            if not -view.ndim <= axis < view.ndim:
                raise ValueError(f"all_gather along axis {axis} of an array of {view.ndim} dimensions")
        layout = GatherLayout(views, axis)
        names = {view.dtype.name for view in views}
        dtype = names.pop() if len(names) == 1 else "mixed"
        count = sum(view.size for view in views)
        call = self._call(
            "all_gather",
            layout.what,
            site,
            f"axis={axis}",
            count,
            sum(view.nbytes for view in views) * self.size,
            dtype,
            nesting,
            layout.alike,
        )

        def body() -> list[np.ndarray]:
            ranks, mine, position = range(self.size), layout.block(), self._position
            blocks = self._link.exchange(position, {self.rank: mine, ~self.rank: layout.shapes})
            for flat in layout.by_dtype(mine):
                position.look(flat)
            told = [blocks[~rank] for rank in ranks]
            shapes = fitting_shapes(
                self._link, position, told, dtypes=layout.dtypes, axis=axis, generation=self.generation
            )
            together = layout.concatenated([blocks[rank] for rank in ranks], shapes)
            position.moved = count, sum(each.nbytes for each in together), dtype
            return together

        found = self._run(call, options, body)
        return [backend.like(result, x) for result, x in zip(found, arrays, strict=True)]

    def broadcast(self, array: Any, root: int, *, site: str = "", options: Options | None = None) -> Any:
        """Returns the array of replica `root`; see `Communicator.broadcast`."""
        self._check_root(root)
        mine: Blocks = {}
        call = self._call("broadcast", "", site, f"root={root}")
        if self.rank == root:
            value = backend.view(array)
            mine = {root: bytes_of(value), ~root: header(value)}
        return self._run(call, options, lambda: self._broadcast(mine, root, array))

    def _broadcast(self, mine: Blocks, root: int, array: Any) -> Any:
        blocks = self._link.exchange(self._position, mine)
        dtype, shape = described(blocks[~root])
        value: np.ndarray = blocks[root].view(dtype).reshape(shape).copy()
        if self.rank == root:
            self._position.look(value)
        self._position.moved = value.size, value.nbytes, value.dtype.name
        return value if array is None else backend.like(value, array)

    def barrier(self, *, site: str = "", options: Options | None = None) -> None:
        """Returns once every replica has called it."""
        call = self._call("barrier", "", site, "")
        self._run(call, options, lambda: self._link.exchange(self._position, {}))

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised array that peers can read in place, so `all_reduce` does not copy it first."""
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        array: np.ndarray = self._link.empty(nbytes).view(dtype).reshape(shape)
        return array

    def carry_out(
        self, call: Call, options: Options | None, body: Callable[[Link, Position], tuple[Any, bool]]
    ) -> Any:
        """Runs `body` as one collective of this replica.

        Args:
          call: The collective.
          options: The deadline.
          body: Returns the result, and whether its telemetry is written elsewhere once a device has executed it.
        """
        enter = self._enter(call, options)
        if self._position.inputs is not None:
            self._position.inputs.found = NOT_READ  # the inputs are not on this host
        try:
            result, recorded = body(self._link, self._position)
        except BaseException as error:
            self._give_up(enter, error)
            raise
        self._leave(enter, "ok", recorded=recorded)
        return result

    @contextmanager
    def paused(self, what: str, site: str = "") -> Iterator[None]:
        """Within this context, `status` reports that the replica waits in `what`, such as "merge_call"."""
        before = self._position.pause
        self._position.pause = (what, site)
        try:
            yield
        finally:
            self._position.pause = before

    def record(self, signature: Signature, step: int, seq: int, *numbers: int) -> None:
        """Records a collective that something else has carried out, such as a compiled program.

        Args:
          signature: Describes it; its generation and group are filled in.
          step: Its step.
          seq: Its number in the step; identifies it on all replicas.
          *numbers: Elements, bytes, and when it was entered, began to move data and ended, as for `Ring.write`.
        """
        if self._ring is not None:
            known = signature._replace(generation=self.generation, group=self._group)
            self._ring.write(self._ring.number(known), step, seq, *numbers)

    @contextmanager
    def internal(self, purpose: str) -> Iterator[None]:
        """Marks the collectives in this context as workbench's own; see `Communicator.internal`."""
        before, self._purpose = self._purpose, purpose
        try:
            yield
        finally:
            self._purpose = before

    def status(self) -> Status:
        """Where the replica is. Any thread."""
        return self._position.status()

    def flight(self) -> list[Flight]:
        """Its last 2,000 collectives, oldest first. Any thread."""
        return self._position.flight()

    def abort(self, error: BaseException) -> None:
        """Breaks the group: all waiting replicas raise, also in other processes. Any thread; the first call wins."""
        self._link.fail(Failure.of(error, self.generation))

    def give_back(self, before: float) -> None:
        """Frees collectives' memory that was last used before `before`, a `time.monotonic` time. Any thread."""
        with self._closing:
            if not self._closed:
                self._link.give_back(before)

    def close(self) -> None:
        """Frees all resources; idempotent. Any thread."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._link.close()

    def _part(self, value: np.ndarray) -> int:
        """Number of elements in this replica's part of an array that is split along axis 0."""
        rows = len(value)
        mine = rows // self.size + (self.rank < rows % self.size)
        return value.size // rows * mine if rows else 0

    def _call(
        self,
        op: str,
        what: str,
        site: str,
        mode: str,
        count: int = 0,
        nbytes: int = 0,
        dtype: str = "",
        nesting: str = "",
        alike: str = "",
    ) -> Call:
        """A call that combines nothing."""
        return Call(
            op, "", what, site, nesting, mode, count, nbytes, dtype, "", purpose=self._purpose, alike=alike
        )

    def _run(self, call: Call, options: Options | None, body: Callable[[], Any]) -> Any:
        enter = self._enter(call, options)
        try:
            result = body()
        except BaseException as error:
            self._give_up(enter, error)
            raise
        self._leave(enter, "ok")
        return result

    def _enter(self, call: Call, options: Options | None) -> int:
        position = self._position
        position.seq = seq = position.seq + 1
        if (where := self._where) is not None:
            where[POSITION] = seq
        position.phase = "waiting"
        position.started_ns = 0
        position.algorithm = ""
        position.moved = None
        position.call = call
        enter = _now()
        if (inputs := position.inputs) is not None:
            inputs.found = FINITE
            inputs.entered_ns = enter
        seconds = options.timeout_seconds if options is not None else None
        if seconds:
            position.entered_ns = enter
            position.deadline_ns = enter + int(seconds * 1e9)
            position.limited_by = self.rank
        else:
            position.deadline_ns = 0
        fault(call.entering, replica=self.rank)
        if self._closed:
            raise StaleGeneration(f"{call.op} on a closed communicator: connect the group again")
        return enter

    def _give_up(self, enter: int, error: BaseException) -> None:
        if isinstance(error, WorkbenchError) and not error.collective:
            # A thread that breaks a group from outside does not know each replica's collective.
            error.collective = self._position.asked().collective
        self._position.given_up = self._position.fingerprint()
        self._leave(enter, _state(error))

    def _leave(self, enter: int, state: str, *, recorded: bool = False) -> None:
        position = self._position
        call, now = position.call, _now()
        start, end = position.started_ns or enter, now
        ring, inputs = self._ring, position.inputs
        if ring is None or inputs is None:
            position.call = OUTSIDE
            position.flights.append((position.step, position.seq, call, state, enter, start, end))
            return
        inputs.inside_ns += now - enter
        if inputs.spent_ns:
            end -= inputs.spent_ns
            inputs.spent_ns = 0
        position.call = OUTSIDE
        position.flights.append((position.step, position.seq, call, state, enter, start, end))
        if recorded:
            return
        count, nbytes = call.count, call.nbytes
        if position.moved is not None:
            count, nbytes, _ = position.moved
        number = call.numbers[inputs.found].get(position.algorithm) if state == "ok" else None
        if number is None:
            number = self._number(ring, call, state, inputs.found)
        ring.write(number, position.step, position.seq, count, nbytes, enter, start, end)

    def _number(self, ring: Ring | SharedRing, call: Call, state: str, inputs: str) -> int:
        algorithm, moved = self._position.algorithm, self._position.moved
        signature = Signature(
            self.generation,
            self._group,
            call.op,
            call.redop,
            call.dtype if moved is None else moved[2],
            algorithm or call.algorithm,
            call.packs,
            self.transport,
            state,
            call.site,
            call.purpose,
            inputs if state == "ok" else NOT_READ,
        )
        number = ring.number(signature)
        if state == "ok":
            call.numbers[inputs][algorithm] = number
        return number

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise ValueError(f"root must be a replica of this group, 0 to {self.size - 1}, got {root}")


def _state(error: BaseException) -> str:
    if isinstance(error, CollectiveMismatch):
        return "mismatch"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "aborted" if isinstance(error, (CollectiveAborted, WorkbenchError)) else "error"
