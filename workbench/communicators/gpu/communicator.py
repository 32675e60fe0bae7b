"""The communicator of a replica on a GPU: arrays on GPUs stay there; the host's link handles host arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import monotonic_ns as _now
from typing import Any

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.call import Call, describe
from workbench.communicators.core.gathering import filled, fitting_shapes, in_words, written_shapes
from workbench.communicators.core.link import Blocks, Link
from workbench.communicators.core.options import CommunicationImplementation, Options, Reduction
from workbench.communicators.core.packing import Pack, bytes_of, described, header, packs_of
from workbench.communicators.core.plan import remember
from workbench.communicators.core.position import Flight, Position, Status
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.communicators.gpu.nccl import wire_dtype
from workbench.communicators.gpu.plane import GpuPlane, Launch
from workbench.communicators.gpu.work import Work, native
from workbench.communicators.threads.rendezvous import together
from workbench.errors import BackendUnavailable
from workbench.telemetry.records import Signature, message_bytes

_BYTE = np.dtype(np.uint8)
_ON_HOST = 1 << 40  # a block number that means "on the host", greater than any rank


@dataclass(frozen=True, slots=True)
class _Plan:
    """A reduction of arrays of certain dtypes and shapes, prepared for repetition.

    Attributes:
      call: The call, as peers compare it.
      packs: How the arrays travel.
      totals: The dtype of each pack's result.
      dtypes: The dtype of each array's result.
      kinds: The dtypes in each pack: one, except where NCCL sums float16 and float32 together.
    """

    call: Call
    packs: tuple[Pack, ...]
    totals: tuple[np.dtype, ...]
    dtypes: tuple[np.dtype, ...]
    kinds: tuple[tuple[np.dtype, ...], ...]


class GpuCommunicator:
    """`Communicator` of one replica on a GPU; wraps the one that connects the host processes.

    Collectives of GPU arrays return as soon as they are queued: the replica's current stream waits for them, its
    thread does not. `finish` waits for them and raises if any has failed.
    """

    def __init__(self, host: ReplicaCommunicator, plane: GpuPlane) -> None:
        self.rank = host.rank
        self.size = host.size
        self.generation = host.generation
        self.transport = f"{'gpu' if plane.fused else 'nccl'}, {host.transport} for host arrays"
        self._host = host
        self._plane = plane
        self._gpu = plane.accelerator
        self._ordinal = plane.ordinals[host.rank]
        self._purpose = ""
        self._plans: dict[Any, _Plan] = {}

    def begin(self, step: int, order: int | None = None) -> None:
        """Starts a step."""
        self._host.begin(step, order)

    def finish(self) -> None:
        """Ends the step once its collectives have completed on the GPU."""
        self._plane.settle(self.rank)
        self._host.finish()

    def all_reduce(
        self,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """As `Communicator.all_reduce`; a structure of both GPU and host arrays takes one collective for each kind."""
        owned = [self._gpu.owns(array) for array in arrays]
        if True not in owned:
            return self._host.all_reduce(arrays, request)
        if False not in owned:
            return self._combined("all_reduce", arrays, request, None)
        results = list(arrays)
        for on_gpu in (False, True):
            chosen = [index for index, each in enumerate(owned) if each is on_gpu]
            mine = [arrays[index] for index in chosen]
            if on_gpu:
                combined = self._combined("all_reduce", mine, request, None)
            else:
                combined = self._host.all_reduce(mine, request)
            for index, result in zip(chosen, combined, strict=True):
                results[index] = result
        return results

    def reduce(
        self, arrays: Sequence[Any], op: str, root: int, *, site: str = "", options: Options | None = None
    ) -> list[Any]:
        """As `Communicator.reduce`; either all arrays are on the GPU, or none."""
        if not self._all_on_gpu(arrays):
            return self._host.reduce(arrays, op, root, site=site, options=options)
        self._check_root(root)
        return self._combined("reduce", arrays, Reduction(op, site, options), root)

    def reduce_scatter(self, array: Any, op: str, *, site: str = "", options: Options | None = None) -> Any:
        """As `Communicator.reduce_scatter`."""
        if not self._gpu.owns(array):
            return self._host.reduce_scatter(array, op, site=site, options=options)
        value = self._view(array)
        if value.ndim == 0:
            raise ValueError("reduce_scatter needs at least one dimension to split, got a scalar")
        backend.ufunc(op)
        rows = [len(part) for part in np.array_split(np.empty((value.shape[0], 0)), self.size)]
        row = value.size // value.shape[0] if value.shape[0] else 0
        bounds = np.cumsum([0, *(n * row for n in rows)]).tolist()
        mine = bounds[self.rank + 1] - bounds[self.rank]
        call = self._call("reduce_scatter", [value], op, site=site, mode="on GPU", count=mine)
        dtype = self._wide(value.dtype, op)
        with self._gpu.on(self._ordinal):
            source = self._gpu.flat([value], dtype)
            out = backend.mean_dtype(dtype) if op == "mean" else dtype
            target = self._gpu.empty(mine, out)
        self._carry_out(
            call, options, [source], [target], lambda ops, works: ops.reduce_scatter(op, works, bounds)
        )
        result = self._converted(target, self._result_dtype(value.dtype, op))
        return self._gpu.like(result.reshape((rows[self.rank], *value.shape[1:])), array)

    def all_gather_arrays(
        self,
        arrays: Sequence[Any],
        axis: int,
        *,
        site: str = "",
        options: Options | None = None,
        nesting: str = "",
    ) -> list[Any]:
        """As `Communicator.all_gather_arrays`; each GPU array takes its own collective."""
        if any(self._gpu.owns(array) for array in arrays):
            return [self.all_gather(array, axis, site=site, options=options) for array in arrays]
        return self._host.all_gather_arrays(arrays, axis, site=site, options=options, nesting=nesting)

    def all_gather(self, array: Any, axis: int, *, site: str = "", options: Options | None = None) -> Any:
        """As `Communicator.all_gather`."""
        if not self._gpu.owns(array):
            return self._host.all_gather(array, axis, site=site, options=options)
        value = self._view(array)
        if value.ndim == 0:
            raise ValueError("all_gather needs at least one dimension to concatenate along, got a scalar")
        if not -value.ndim <= axis < value.ndim:
            raise ValueError(f"all_gather along axis {axis} of an array of {value.ndim} dimensions")
        dtype = value.dtype
        nbytes = message_bytes("all_gather", value.size, dtype.itemsize, self.size)
        call = Call(
            "all_gather", "", in_words([dtype], [value.shape], axis), site, "", f"axis={axis}, on GPU", value.size,
            nbytes, dtype.name, "", purpose=self._purpose, alike=backend.dtype_text(dtype),
        )  # fmt: skip

        def body(link: Link, position: Position) -> tuple[Any, bool]:
            blocks = link.exchange(position, {self.rank: written_shapes([value])})
            told = [blocks[rank] for rank in range(self.size)]
            found = fitting_shapes(
                link, position, told, dtypes=[dtype], axis=axis, generation=self.generation
            )
            shapes = [shape for (shape,) in found]
            counts = [_count(shape) * dtype.itemsize for shape in shapes]
            position.moved = value.size, sum(counts), dtype.name
            with self._gpu.on(self._ordinal):
                source = self._gpu.flat([value], dtype)
                target = self._gpu.empty(sum(counts), _BYTE)
            self._queue(link, position, [source], [target], lambda ops, works: ops.all_gather(works, counts))
            with self._gpu.on(self._ordinal):
                return self._assembled(target.view(dtype), shapes, axis), True

        return self._gpu.like(self._host.carry_out(call, options, body), array)

    def _assembled(self, flat: Any, shapes: Sequence[tuple[int, ...]], axis: int) -> Any:
        """Joins all replicas' parts, which lie one after another, into one array."""
        parts, low = [], 0
        for shape in shapes:
            high = low + _count(shape)
            parts.append(flat[low:high].reshape(shape))
            low = high
        return self._gpu.concatenate(filled(parts, axis), axis)

    def broadcast(self, array: Any, root: int, *, site: str = "", options: Options | None = None) -> Any:
        """As `Communicator.broadcast`; the root informs the others whether it is a GPU array."""
        self._check_root(root)
        call = Call("broadcast", "", "", site, "", f"root={root}", 0, 0, "", "", purpose=self._purpose)
        value: Any = None
        mine: Blocks = {}
        if self.rank == root and self._gpu.owns(array):
            value = self._view(array)
            mine = {root: bytes_of(np.zeros(0)), ~root: header(value)}
        elif self.rank == root:
            on_host = backend.view(array)
            mine = {root: bytes_of(on_host), ~root: header(on_host), _ON_HOST: np.zeros(1, np.uint8)}

        def body(link: Link, position: Position) -> tuple[Any, bool]:
            blocks = link.exchange(position, mine)
            dtype, shape = described(blocks[~root])
            position.moved = _count(shape), _count(shape) * dtype.itemsize, dtype.name
            if _ON_HOST in blocks:
                copy = blocks[root].view(dtype).reshape(shape).copy()
                position.reads_on_host()
                if self.rank == root:
                    position.look(copy)
                return copy if array is None else backend.like(copy, array), False
            with self._gpu.on(self._ordinal):
                target = self._gpu.empty(_count(shape) * dtype.itemsize, _BYTE)
                sources = [] if value is None else [self._gpu.flat([value], value.dtype)]
            self._queue(link, position, sources, [target], lambda ops, works: ops.broadcast(works, root))
            result = target.view(dtype).reshape(shape)
            return result if array is None else self._gpu.like(result, array), True

        return self._host.carry_out(call, options, body)

    def barrier(self, *, site: str = "", options: Options | None = None) -> None:
        """Returns once every replica has called it; queued GPU work may still run."""
        self._plane.poll()
        self._host.barrier(site=site, options=options)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """Host memory; the GPU library allocates its own arrays."""
        return self._host.empty(shape, dtype)

    def paused(self, what: str, site: str = "") -> AbstractContextManager[None]:
        """As `Communicator.paused`."""
        return self._host.paused(what, site)

    def record(self, signature: Signature, step: int, seq: int, *numbers: int) -> None:
        """As `Communicator.record`."""
        self._host.record(signature, step, seq, *numbers)

    @contextmanager
    def internal(self, purpose: str) -> Iterator[None]:
        """As `Communicator.internal`."""
        before, self._purpose = self._purpose, purpose
        try:
            with self._host.internal(purpose):
                yield
        finally:
            self._purpose = before

    def status(self) -> Status:
        """Where the replica is. Any thread."""
        return self._host.status()

    def flight(self) -> list[Flight]:
        """Its last 2,000 collectives; those of GPU arrays end when they are queued. Any thread."""
        return self._host.flight()

    def abort(self, error: BaseException) -> None:
        """Breaks the group: first the host link, so that peers know, then the queued work. Any thread."""
        self._host.abort(error)
        self._plane.abort()

    def give_back(self, before: float) -> None:
        """Frees host memory that was last used before `before`, a `time.monotonic` time. Any thread."""
        self._host.give_back(before)

    def close(self) -> None:
        """Frees all resources; idempotent."""
        self._plane.drain()
        self._host.close()
        self._plane.close(self.rank)

    # -- one collective ----------------------------------------------------------------------------------------

    def _combined(
        self,
        name: str,
        arrays: Sequence[Any],
        request: Reduction,
        root: int | None,
    ) -> list[Any]:
        """Reduces arrays on the GPU.

        Each result belongs to its array's library; it is None on replicas other than `root`, if there is a root.
        """
        op = request.op
        values = [self._gpu.described(array) for array in arrays]
        self._require_here(values)
        key = (name, root, request, self._purpose, tuple([(value.dtype, value.shape) for value in values]))
        plan = self._plans.get(key)
        if plan is None:
            plan = remember(self._plans, key, self._planned(name, values, request, root))
        receives = root is None or root == self.rank
        with self._gpu.on(self._ordinal):
            described = [[values[index] for index in pack.indices] for pack in plan.packs]
            handed_over = [self._gpu.handed_over(each) for each in described]
            sources = [
                self._gpu.flat(each, pack.dtype) for each, pack in zip(handed_over, plan.packs, strict=True)
            ]
            targets = [
                self._gpu.empty(pack.count, dtype)
                for pack, dtype in zip(plan.packs, plan.totals, strict=True)
                if receives
            ]

        def launch(ops: Any, works: Sequence[Work]) -> None:
            if root is None:
                ops.all_reduce(op, works)
            else:
                ops.reduce(op, works, root)

        foreign = [own for own, of in zip(handed_over, described, strict=True) if own is not of]
        self._carry_out(plan.call, request.options, sources, targets, launch, keep=foreign)
        return self._split(plan, targets, arrays) if receives else [None] * len(arrays)

    def _planned(self, name: str, values: Sequence[Any], request: Reduction, root: int | None) -> _Plan:
        op = request.op
        backend.ufunc(op)
        self._check_implementation(request.options)
        layout = packs_of(
            values,
            op,
            options=request.options,
            packs=request.packs,
            dtype_of=native if self._plane.fused else wire_dtype,
        )
        call = self._call(
            name,
            values,
            op,
            site=request.site,
            mode=f"{request.algorithm if root is None else f'root={root}'}, on GPU, {len(layout)} packs",
            packs=len(layout),
            nesting=request.nesting,
        )
        totals = [backend.mean_dtype(pack.dtype) if op == "mean" else pack.dtype for pack in layout]
        dtypes = [self._result_dtype(value.dtype, op) for value in values]
        kinds = [tuple(dict.fromkeys(dtypes[index] for index in pack.indices)) for pack in layout]
        return _Plan(call, layout, tuple(totals), tuple(dtypes), tuple(kinds))

    def _split(self, plan: _Plan, totals: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        results: list[Any] = [None] * len(arrays)
        for pack, total, kinds in zip(plan.packs, totals, plan.kinds, strict=True):
            for dtype in kinds:
                flat = self._converted(total, dtype)
                for index, low, high in zip(pack.indices, pack.offsets, pack.offsets[1:], strict=False):
                    if plan.dtypes[index] == dtype:
                        part = flat[low:high].reshape(tuple(arrays[index].shape))
                        results[index] = self._gpu.like(part, arrays[index])
        return results

    def _converted(self, flat: Any, dtype: np.dtype) -> Any:
        if flat.dtype == dtype:
            return flat
        with self._gpu.on(self._ordinal):
            return self._gpu.flat([flat], dtype)

    def _carry_out(
        self,
        call: Call,
        options: Options | None,
        sources: list[Any],
        targets: list[Any],
        launch: Launch,
        *,
        keep: Sequence[Any] = (),
    ) -> None:
        def body(link: Link, position: Position) -> tuple[Any, bool]:
            self._queue(link, position, sources, targets, launch, keep=keep)
            return None, True

        self._host.carry_out(call, options, body)

    def _queue(
        self,
        link: Link,
        position: Position,
        sources: list[Any],
        targets: list[Any],
        launch: Launch,
        *,
        keep: Sequence[Any] = (),
    ) -> None:
        """Queues the current collective and makes this replica's stream wait for it.

        Buffers are allocated on the replica's own stream. CuPy's pool returns memory to the stream that allocated it,
        so the work of the next user of the memory runs after this stream has waited for the result.
        """
        enter_ns = _now()
        self._plane.poll()
        with self._gpu.on(self._ordinal):
            ready = self._gpu.event(timed=False)
            self._gpu.record(ready)
        work = Work(self.rank, position.call, position.step, position.seq, enter_ns, ready, sources, targets)
        work.moved = position.moved
        work.temporary += keep

        def execute(works: list[Any], _blocks: Blocks, exchange: Any) -> None:
            self._plane.run(position, sorted(works, key=lambda each: each.rank), exchange, launch)

        together(link, position, work, {}, execute)
        with self._gpu.on(self._ordinal):
            self._gpu.wait(work.finished)

    def _call(
        self,
        name: str,
        values: Sequence[Any],
        op: str,
        *,
        site: str,
        mode: str,
        packs: int = 1,
        count: int | None = None,
        nesting: str = "",
    ) -> Call:
        names = {value.dtype.name for value in values}
        return Call(
            name, op, describe(values), site, nesting, mode,
            sum(value.size for value in values) if count is None else count,
            sum(value.nbytes for value in values), names.pop() if len(names) == 1 else "mixed", "auto", packs,
            self._purpose,
        )  # fmt: skip

    def _view(self, array: Any) -> Any:
        value = self._gpu.view(array)
        self._require_here([value])
        return value

    def _require_here(self, values: Sequence[Any]) -> None:
        elsewhere = {self._gpu.ordinal(value) for value in values} - {self._ordinal}
        if elsewhere:
            raise BackendUnavailable(
                f"replica {self.rank} runs on GPU {self._ordinal} of its worker and got an array on GPU "
                f"{min(elsewhere)}; make arrays with ctx.xp, which uses the replica's own GPU",
                replica=self.rank,
            )

    def _all_on_gpu(self, arrays: Sequence[Any]) -> bool:
        owned = {self._gpu.owns(array) for array in arrays}
        if len(owned) > 1:
            raise ValueError("reduce needs arrays that are all on the GPU, or all on the host; got both")
        return owned == {True}

    def _wide(self, dtype: np.dtype, op: str) -> np.dtype:
        return native(dtype, op) if self._plane.fused else wire_dtype(dtype, op)

    def _result_dtype(self, dtype: np.dtype, op: str) -> np.dtype:
        return (backend.mean_dtype(dtype) if op == "mean" else dtype).newbyteorder("=")

    def _check_implementation(self, options: Options | None) -> None:
        asked = getattr(options, "implementation", None)
        if asked is CommunicationImplementation.NCCL and self._plane.fused and self.size > 1:
            raise BackendUnavailable(
                f"NCCL was asked for, and the {self.size} replicas share one GPU, where it cannot work: leave the "
                f"implementation (or NcclAllReduce) out, which uses workbench's own kernel, or use a GPU per replica",
                replica=self.rank,
            )

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise ValueError(f"root must be a replica of this group, 0 to {self.size - 1}, got {root}")


def _count(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
