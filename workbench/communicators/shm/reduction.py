"""Combines arrays of the processes of a host through shared memory.

There are three ways, all in rank order, so that they agree to the bit:

* direct, for small arrays: every process reads all inputs and combines all of them;
* scattered: every process combines its part for all (with "one_device", the first process everything), others copy it;
* shared: as scattered, but into one result that all read in place. If there are other hosts, the first process then
  combines it with theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns as _now

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.control_page import (
    FINGERPRINT,
    HOLDS,
    PLACE,
    SHARED_BLOCKS,
    STARTED,
    TARGET,
)
from workbench.communicators.core.link import Link
from workbench.communicators.core.position import Position
from workbench.communicators.core.result_pool import ResultPool
from workbench.communicators.shm.arena import Arena
from workbench.communicators.shm.barrier import Barrier
from workbench.communicators.shm.host_memory import SLOT_BYTES, HostMemory
from workbench.communicators.shm.results import SharedResults
from workbench.errors import StorageFull
from workbench.faults import fault

_SMALL_BYTES = 32 * 1024  # up to this, each process combines everything, which is cheaper than another round
_SMALL_BYTES_OF_TWO = 512 * 1024


Cuts = Callable[[int, int], tuple[int, int]]


class SharedReduction:
    """Combines arrays with the other processes of the host. One thread only."""

    def __init__(
        self,
        memory: HostMemory,
        barrier: Barrier,
        arena: Arena,
        shared: SharedResults,
        *,
        size: int,
        outer: Link | None,
        spans_hosts: bool,
    ) -> None:
        """If the group `spans_hosts`, the first process of each host has the `outer` link."""
        self._memory = memory
        self._barrier = barrier
        self._arena = arena
        self._shared = shared
        self._size = size
        self._outer = outer
        self._spans_hosts = spans_hosts
        self._results = ResultPool()
        self._index = memory.index
        self._processes = len(memory.controls)
        self._own = memory.controls[memory.index].words
        self._small_bytes = _SMALL_BYTES_OF_TWO if self._processes == 2 else _SMALL_BYTES

    def __call__(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Combines `flat` as `Link.reduce` does."""
        if self._spans_hosts:
            return self._through_shared(position, flat, shared)
        if flat.nbytes <= self._small_bytes and position.call.algorithm not in ("one_device", "ring"):
            total = self._small(position, flat)
            if shared:
                total.flags.writeable = False
            return total
        if shared:
            return self._through_shared(position, flat, shared)
        return self._scattered(position, flat)

    def give_back(self, before: float) -> None:
        """Frees results' memory that was last used before `before`, a `time.monotonic` time. Any thread."""
        self._results.give_back(before)

    def _small(self, position: Position, flat: np.ndarray) -> np.ndarray:
        """Direct reduction in one round: all inputs fit the slots, and each process combines all of them."""
        barrier, index, own = self._barrier, self._index, self._own
        call, dtype, count = position.call, flat.dtype, flat.size
        position.algorithm = "direct"
        parity = (barrier.round + 1) & 1
        sources = self._memory.inputs(parity, count, dtype)
        if not self._memory.is_staged(flat):
            sources[index][...] = flat
        own[FINGERPRINT + parity] = fingerprint = call.fingerprint(position.order, position.seq)
        barrier.next(position)
        barrier.agree(position, fingerprint)
        position.started_ns = _now()
        fault(call.sent, replica=position.rank)
        total = self._results.take(count, dtype)
        function = backend.ufunc(call.redop)
        # Reads another copy instead of our own slot, which is slow to read just after peers have read it.
        if self._processes > 2:
            backend.combine(function, [*sources[:index], flat, *sources[index + 1 :]], total, call.apply)
        elif index == 0:
            call.apply(function, flat, sources[1], out=total)
        else:
            call.apply(function, sources[0], flat, out=total)
        if call.redop == "mean":
            backend.finish("mean", total, self._size, call.apply)
        return total

    def _scattered(self, position: Position, flat: np.ndarray) -> np.ndarray:
        """Each process combines its part of each chunk and copies the other parts.

        A process stages the next chunk before the round that completes the current one, so one round per chunk is
        enough.
        """
        memory, index = self._memory, self._index
        redop, apply = position.call.redop, position.call.apply
        position.algorithm = "one_device" if position.call.algorithm == "one_device" else "scattered"
        cuts = _cuts(position.call.algorithm, self._processes)
        chunk_bytes = SLOT_BYTES if flat.nbytes <= 2 * SLOT_BYTES or self._processes > 2 else SLOT_BYTES // 2
        inputs = self._enter(position, flat, cuts, chunk_bytes=chunk_bytes)
        function = backend.ufunc(redop)
        total = self._results.take(flat.size, flat.dtype)
        for number, (low, high) in enumerate(inputs.chunks()):
            outputs = memory.outputs(number & 1, flat.dtype)
            begin, end = cuts(index, high - low)
            if begin < end:
                part = total[low + begin : low + end]
                backend.combine(function, inputs.at(low + begin, low + end, base=low), part, apply)
                backend.finish(redop, part, self._size, apply)
                outputs[index][: end - begin] = part
            if high < flat.size:
                inputs.stage(high)
            self._barrier.next(position)
            for p in self._barrier.peers:
                begin, end = cuts(p, high - low)
                total[low + begin : low + end] = outputs[p][: end - begin]
        return total

    def _through_shared(self, position: Position, flat: np.ndarray, shared: bool) -> np.ndarray:
        """Each process combines its part into one shared result, which is handed out or copied."""
        redop, apply, outer = position.call.redop, position.call.apply, self._outer
        position.algorithm = "hierarchical" if self._spans_hosts else "shared"
        cuts = _cuts(position.call.algorithm, self._processes)
        inputs = self._enter(position, flat, cuts, chunk_bytes=SLOT_BYTES, into_shared=True)
        inputs.widen()
        if inputs.target is None and not self._spans_hosts:
            total = self._scattered(position, flat)
            total.flags.writeable = False
            return total
        if inputs.target is None:
            raise StorageFull(f"{SHARED_BLOCKS} shared results are in use on this host: drop some of them")
        target = inputs.target[: flat.nbytes].view(flat.dtype)
        function = backend.ufunc(redop)
        for low, high in inputs.chunks():
            begin, end = cuts(self._index, high - low)
            part = target[low + begin : low + end]
            if begin < end:
                backend.combine(function, inputs.at(low + begin, low + end, base=low), part, apply)
                if not self._spans_hosts:
                    backend.finish(redop, part, self._size, apply)
            if high < flat.size:
                inputs.stage(high)
            self._barrier.next(position)
        if outer is not None:
            np.copyto(target, outer.reduce(position, target, shared=True))
            self._own[STARTED] = position.started_ns
        if self._spans_hosts:
            self._barrier.next(position)
            position.arrived(self._barrier.words[0][STARTED])
        if shared:
            target.flags.writeable = False
            return target
        total = self._results.take(flat.size, flat.dtype)
        np.copyto(total, target)
        return total

    def _enter(
        self,
        position: Position,
        flat: np.ndarray,
        cuts: Cuts,
        *,
        chunk_bytes: int,
        into_shared: bool = False,
    ) -> _Inputs:
        """The first round: stages the first chunk, compares fingerprints, and finds the peers' inputs."""
        barrier, own, memory = self._barrier, self._own, self._memory
        parity = (barrier.round + 1) & 1
        place = self._arena.offset(flat)
        own[FINGERPRINT + parity] = fingerprint = position.call.fingerprint(position.order, position.seq)
        own[PLACE + parity] = place
        if into_shared:
            self._shared.release_dropped()
            if self._index == 0:
                own[HOLDS + parity], own[TARGET + parity] = self._shared.offer(flat.nbytes)
        inputs = _Inputs(memory, barrier, flat, cuts, chunk_bytes=chunk_bytes, place=place)
        inputs.stage(0)
        barrier.next(position)
        barrier.agree(position, fingerprint)
        if not self._spans_hosts:
            position.arrived()
        fault(position.call.sent, replica=position.rank)
        inputs.find([words[PLACE + parity] for words in barrier.words])
        if into_shared and barrier.words[0][TARGET + parity]:
            words = barrier.words[0]
            inputs.target = self._shared.hold(words[HOLDS + parity], words[TARGET + parity], flat.nbytes)
        return inputs


class _Inputs:
    """The inputs of all processes, chunk by chunk: in place if they are in shared memory, otherwise from slots."""

    def __init__(
        self,
        memory: HostMemory,
        barrier: Barrier,
        flat: np.ndarray,
        cuts: Cuts,
        *,
        chunk_bytes: int,
        place: int,
    ) -> None:
        self.target: np.ndarray | None = None
        self._memory = memory
        self._barrier = barrier
        self._flat = flat
        self._cuts = cuts
        self._place = place
        self._chunk = max(1, chunk_bytes // flat.itemsize)
        self._arrays: list[np.ndarray | None] = []

    def stage(self, low: int) -> None:
        """Copies into this process's slot, for the next round, the part of the chunk at `low` that others combine."""
        if not self._place and not self._memory.is_staged(self._flat):
            part = self._flat[low : low + self._chunk]
            index = self._memory.index
            slot = self._memory.inputs((self._barrier.round + 1) & 1, part.size, part.dtype)[index]
            begin, end = self._cuts(index, part.size)
            if begin > 0:
                slot[:begin] = part[:begin]
            if end < part.size:
                slot[end:] = part[end:]

    def find(self, places: list[int]) -> None:
        """Locates the inputs of all processes."""
        flat = self._flat
        self._arrays = [
            self._memory.arenas[p].view(place, flat.nbytes).view(flat.dtype) if place else None
            for p, place in enumerate(places)
        ]
        self._arrays[self._memory.index] = flat

    def widen(self) -> None:
        """Uses a single chunk if nothing passes through slots."""
        if all(array is not None for array in self._arrays) and self._place:
            self._chunk = max(1, self._flat.size)

    def chunks(self) -> list[tuple[int, int]]:
        """Bounds of the chunks; at least one."""
        size = self._flat.size
        return [(low, min(size, low + self._chunk)) for low in range(0, max(1, size), self._chunk)]

    def at(self, low: int, high: int, base: int | None = None) -> list[np.ndarray]:
        """Elements [low, high) of all inputs; `base` is the chunk's start if that is not `low`."""
        base = low if base is None else base
        count = min(self._chunk, self._flat.size - base)
        slots = self._memory.inputs(self._barrier.round & 1, count, self._flat.dtype)
        return [
            slot[low - base : high - base] if array is None else array[low:high]
            for slot, array in zip(slots, self._arrays, strict=True)
        ]


def _first_only(p: int, count: int) -> tuple[int, int]:
    return 0, count if p == 0 else 0


def _cuts(algorithm: str, processes: int) -> Cuts:
    """The part of a chunk that a process combines, by its position and the chunk's length."""
    if algorithm == "one_device":
        return _first_only
    return lambda p, count: (p * count // processes, (p + 1) * count // processes)
