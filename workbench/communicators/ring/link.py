"""The link between hosts: a ring of TCP connections.

Large arrays are reduced in n - 1 steps, in which every host adds its part to the passing data, and distributed in n - 1
more. Small ones travel around the ring whole and are combined in the order of the hosts. With more than two hosts these
orders differ, so small and large arrays may differ in the last bit of float results; equal calls give equal results.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.call import Asked, difference, left_early
from workbench.communicators.core.failure import Failure, Kind
from workbench.communicators.core.link import Blocks
from workbench.communicators.core.position import Position
from workbench.communicators.core.result_pool import OrdinaryMemory
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.ring.duplex import ASKED, CALL, DATA, FAILED, FINISHED, Duplex, Frame
from workbench.faults import fault

_SMALL_BYTES = 64 * 1024

T = TypeVar("T")


class RingLink(OrdinaryMemory):
    """The `Link` of one host to the others, used by the process that speaks for the host."""

    transport = "tcp"

    def __init__(
        self,
        index: int,
        preceding: socket.socket,
        following: socket.socket,
        *,
        hosts: int,
        size: int,
        generation: int,
        roll_call: RollCall,
    ) -> None:
        """Takes over the connections.

        Args:
          index: Position of this host.
          preceding: Connection from the host before.
          following: Connection to the next host.
          hosts: Number of hosts.
          size: Number of replicas in the whole group.
          generation: The generation of the group.
          roll_call: Finds out which replicas are missing; closed with the link.
        """
        super().__init__()
        self._index = index
        self._hosts = hosts
        self._size = size
        self._generation = generation
        self._roll_call = roll_call
        self._duplex = Duplex(preceding, following, self._look)
        self._busy = threading.Lock()  # held by the thread that uses the connections
        self._failing = threading.Lock()  # guards _failure
        self._failure: Failure | None = None
        self._told = False  # whether the neighbours know about the failure
        self._inner: Callable[[], Failure | None] = _unbroken

    @property
    def fd(self) -> int:
        """Becomes readable when `broken` may have news."""
        return self._duplex.following_fd

    def watch(self, fds: Sequence[int], broken: Callable[[], Failure | None]) -> None:
        """Ends waits when one of `fds` becomes readable and `broken` returns a failure of the inner level."""
        self._inner = broken
        self._duplex.watch(fds)

    def reduce(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Combines `flat` over the hosts."""
        total = self._guarded(position, lambda: self._reduce(position, flat))
        total.flags.writeable = not shared
        return total

    def exchange(self, position: Position, blocks: Blocks) -> Blocks:
        """Sends every host's blocks once around the ring."""
        return self._guarded(position, lambda: self._exchange(position, blocks))

    def _guarded(self, position: Position, body: Callable[[], T]) -> T:
        with self._busy:
            self._check()  # only here, because `close` may have held the connections until now
            try:
                self._agree(position)
                return body()
            except ConnectionError:
                self._look(position)
                self._tell(self._lost(position))
            except BaseException as error:
                self._tell(Failure.again(error, self._generation))
                raise
        raise self._known_failure().error()

    def _agree(self, position: Position) -> None:
        """Passes fingerprints around the ring before any payload."""
        call = position.call
        mine = Frame(CALL, position.order, position.seq, call.fingerprint(position.order, position.seq))
        held, same = mine, True
        fault(call.waiting, replica=position.rank)
        for _ in range(1, self._hosts):
            held, _ = self._next_frame(position, held, CALL)
            same = same and held.value == mine.value
        if not same:
            self._explain(position)
        position.arrived()
        fault(call.sent, replica=position.rank)

    def _next_frame(
        self, position: Position, frame: Frame, kind: int, text: bytes = b""
    ) -> tuple[Frame, bytes]:
        received, words = self._duplex.swap(position, frame, text)
        return self._checked(position, received, words, kind)

    def _checked(self, position: Position, received: Frame, words: bytes, kind: int) -> tuple[Frame, bytes]:
        while received.kind != kind:
            if received.kind == FAILED:
                raise Failure.decode(words).error()
            if received.kind == FINISHED and received.order >= position.order:
                text_left = left_early(received.value, received.seq, position.asked())
                raise self._made("mismatch", text_left, position, received.value).error()
            if received.kind != FINISHED:
                raise ConnectionError(f"expected a frame of kind {kind}, got {received.kind}")
            received, words = self._duplex.again(position)  # a FINISHED frame of an earlier step is normal
        return received, words

    def _move(self, position: Position, outgoing: memoryview, incoming: memoryview) -> None:
        """Sends and receives payload, each after a frame; a host that has given up sends another kind of frame."""
        if outgoing:
            frame = Frame(DATA, position.order, position.seq, len(outgoing))
            outgoing = self._duplex.begin(frame, outgoing)
        if incoming:
            self._checked(position, *self._duplex.again(position), DATA)
        self._duplex.move(position, outgoing, incoming)

    def _explain(self, position: Position) -> None:
        calls = [position.asked()]
        words = calls[0].encode()
        for _ in range(1, self._hosts):
            _, words = self._next_frame(position, Frame(ASKED, position.order, position.seq, 0), ASKED, words)
            calls.append(Asked.decode(words))
        raise self._made("mismatch", difference(calls), position, -1).error()

    def _reduce(self, position: Position, flat: np.ndarray) -> np.ndarray:
        redop, apply = position.call.redop, position.call.apply
        function = backend.ufunc(redop)
        total = self.results.take(flat.size, flat.dtype)
        if flat.nbytes <= _SMALL_BYTES and position.call.algorithm != "ring":
            position.algorithm = position.algorithm or "gathered"
            sources = self._gathered(position, flat)
            backend.combine(function, sources, total, apply)
            backend.finish(redop, total, self._size, apply)
            return total
        position.algorithm = position.algorithm or "ring"
        np.copyto(total, flat)
        hosts, index = self._hosts, self._index
        parts = [total[h * flat.size // hosts : (h + 1) * flat.size // hosts] for h in range(hosts)]
        incoming = np.empty(max(part.size for part in parts), flat.dtype)
        for hop in range(hosts - 1):
            target = parts[(index - hop - 1) % hosts]
            arrived = incoming[: target.size]
            self._move(position, _raw(parts[(index - hop) % hosts]), _raw(arrived))
            apply(function, arrived, target, out=target)
        backend.finish(redop, parts[(index + 1) % hosts], self._size, apply)
        for hop in range(hosts - 1):
            outgoing, target = parts[(index + 1 - hop) % hosts], parts[(index - hop) % hosts]
            self._move(position, _raw(outgoing), _raw(target))
        return total

    def _gathered(self, position: Position, flat: np.ndarray) -> list[np.ndarray]:
        """The arrays of all hosts, in host order."""
        sources = [flat] * self._hosts
        for hop in range(1, self._hosts):
            incoming = np.empty_like(flat)
            self._move(position, _raw(sources[(self._index - hop + 1) % self._hosts]), _raw(incoming))
            sources[(self._index - hop) % self._hosts] = incoming
        return sources

    def _exchange(self, position: Position, blocks: Blocks) -> Blocks:
        position.algorithm = position.algorithm or "ring"
        everything = dict(blocks)
        for _ in range(1, self._hosts):
            blocks = self._pass_on(position, blocks)
            everything |= blocks
        return everything

    def _pass_on(self, position: Position, blocks: Blocks) -> Blocks:
        table = np.array([(number, block.size) for number, block in blocks.items()], np.int64).reshape(-1)
        header = Frame(DATA, position.order, position.seq, table.nbytes)
        received, _ = self._next_frame(position, header, DATA)
        sizes = np.empty(received.value // 8, np.int64)
        self._move(position, _raw(table), _raw(sizes))
        arrived = {int(number): np.empty(int(nbytes), np.uint8) for number, nbytes in sizes.reshape(-1, 2)}
        outgoing, incoming = list(blocks.values()), list(arrived.values())
        # Block by block; once one direction is done, the other continues alone.
        for turn in range(max(len(outgoing), len(incoming))):
            self._move(
                position,
                _raw(outgoing[turn]) if turn < len(outgoing) else memoryview(b""),
                _raw(incoming[turn]) if turn < len(incoming) else memoryview(b""),
            )
        return arrived

    def finish(self, position: Position) -> None:
        """Informs the next host, which may be waiting, that this one has left the step."""
        with self._busy:
            if self._failure is None:
                self._duplex.post(Frame(FINISHED, position.order, position.seq + 1, position.rank))
                self._duplex.drain_finished()

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not known to be. Any thread."""
        if self._failure is None and self._busy.acquire(blocking=False):
            try:
                complaint = self._duplex.complaint()
            finally:
                self._busy.release()
            if complaint is not None:
                self.fail(Failure.decode(complaint) if complaint else self._gone())
        return self._failure

    def fail(self, failure: Failure) -> None:
        """Breaks the ring; the first record wins. Any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = failure
            self._duplex.wake()
        # The thread that uses the connections informs the neighbours when it wakes up; if there is none, this thread
        # does.
        if self._busy.acquire(blocking=False):
            try:
                self._complain(failure)
            finally:
                self._busy.release()

    def close(self) -> None:
        """Closes the connections."""
        self.fail(Failure("closed", "a replica closed its communicator", generation=self._generation))
        with self._busy, self._failing:
            self._complain(self._known_failure())  # the thread that broke the ring may not have sent it yet
            self._duplex.close()
        self._roll_call.close()
        self._inner = _unbroken  # a cycle would keep the host's shared memory until a garbage collection

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure.error()

    def _tell(self, failure: Failure) -> None:
        """As `fail`, for the thread that uses the connections."""
        with self._failing:
            self._failure = self._failure or failure
        self._complain(self._failure)

    def _complain(self, failure: Failure) -> None:
        """Informs the neighbours, once; the caller holds the connections."""
        if not self._told:
            self._told = True
            self._duplex.complain(failure.encode())

    def _known_failure(self) -> Failure:
        assert self._failure is not None
        return self._failure

    def _look(self, position: Position) -> None:
        self._check()
        if (failure := self._inner()) is not None:
            raise failure.error()
        complaint = self._duplex.complaint()
        if complaint:
            raise Failure.decode(complaint).error()
        if complaint == b"":
            raise self._lost(position).error()
        if position.expired():
            raise self._roll_call.overdue(position).error()

    def _gone(self) -> Failure:
        return Failure("lost", "a neighbouring host is gone", generation=self._generation)

    def _lost(self, position: Position) -> Failure:
        text = f"a neighbouring host of replica {position.rank} is gone; it was in {position.asked()}"
        return self._made("lost", text, position, -1)

    def _made(self, kind: Kind, text: str, position: Position, replica: int) -> Failure:
        name = position.asked().collective
        return Failure(kind, text, replica, self._generation, position.step, name)


def _raw(array: np.ndarray) -> memoryview:
    return array.view(np.uint8).data


def _unbroken() -> Failure | None:
    return None
