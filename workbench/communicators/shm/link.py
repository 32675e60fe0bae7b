"""The link between processes of one host: payload goes through shared memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from workbench.communicators.core.control_page import FINGERPRINT, MOST_BLOCKS, STARTED
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.link import Blocks, Link
from workbench.communicators.core.position import Position
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.core.shared_memory import SharedFile
from workbench.communicators.core.wake import Wake
from workbench.communicators.ring.link import RingLink
from workbench.communicators.shm.arena import Arena
from workbench.communicators.shm.barrier import Barrier
from workbench.communicators.shm.handshake import Hello, Listener, meet
from workbench.communicators.shm.host_memory import FILE_BYTES, SLOT_BYTES, HostMemory
from workbench.communicators.shm.reduction import SharedReduction
from workbench.communicators.shm.results import SharedResults
from workbench.faults import fault


class SharedMemoryLink:
    """The `Link` of one process to the others of its host. The first process speaks for the host on the outer link."""

    def __init__(
        self,
        me: Hello,
        listener: Listener,
        addresses: Sequence[tuple[str, str, str]],
        *,
        ranks: Sequence[Sequence[int]],
        size: int,
        generation: int,
        deadline: float,
        roll_call: RollCall,
    ) -> None:
        """Connects.

        Args:
          me: This process.
          listener: Where the others connect.
          addresses: Process, socket path and token of each process of the host, in order of their first rank.
          ranks: The replicas of each process.
          size: Number of replicas in the whole group.
          generation: The generation of the group.
          deadline: A `time.monotonic` time.
          roll_call: Finds out which replicas are missing; closed with the link.
        """
        self.transport = "shared memory"
        self._generation = generation
        self._file = SharedFile(FILE_BYTES)
        self._wake = Wake()
        try:
            fds = (self._file.fd, self._wake.write_fd)
            self._peers = meet(me, listener, addresses, fds, deadline)
        except BaseException:
            self._wake.close()
            self._file.close()
            raise
        index = [process for process, _, _ in addresses].index(me.process)
        files = [peer.memory_fd for peer in self._peers]
        files.insert(index, self._file.fd)
        self._memory = HostMemory(index, files)
        self._barrier = Barrier(
            index,
            self._memory.controls,
            self._peers,
            self._wake,
            ranks=ranks,
            generation=generation,
            roll_call=roll_call,
        )
        roll_call.look_at(index, ranks, self._barrier.words)
        self._roll_call = roll_call
        self._arena = Arena(self._file)
        self._index = index
        self._size = size
        self._shared = SharedResults(
            self._barrier.words, index, self._memory.arenas[0], self._arena if index == 0 else None
        )
        self._outer: Link | None = None
        self._spans_hosts = False
        self._reduction = self._reducing()
        self._scratch = np.empty(0, np.uint8)
        self._closed = False
        # Held by threads that map memory or wait on descriptors. If another thread closed these descriptors, their
        # numbers could soon belong to other files, which this thread would then read, map or lengthen.
        self._busy = threading.Lock()

    def between_hosts(self, outer: RingLink | None) -> None:
        """Makes results cover other hosts, too; `outer` is the link to them, which each host's first process has."""
        self._outer = outer
        self._spans_hosts = True
        self.transport = "shared memory + tcp"
        self._reduction = self._reducing()
        if outer is not None:
            # While this process waits at one level, it must notice that the other level has failed.
            outer.watch(self._barrier.fds, self._barrier.glance)
            self._barrier.watch(outer.fd, outer.broken)

    def _reducing(self) -> SharedReduction:
        return SharedReduction(
            self._memory,
            self._barrier,
            self._arena,
            self._shared,
            size=self._size,
            outer=self._outer,
            spans_hosts=self._spans_hosts,
        )

    def reduce(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Combines in rank order within the host, then over the hosts."""
        with self._busy:
            self._barrier.check()
            try:
                return self._reduction(position, flat, shared=shared)
            except BaseException as error:
                # Peers must not wait for data that will never arrive.
                self.fail(Failure.again(error, self._generation))
                raise

    def exchange(self, position: Position, blocks: Blocks) -> Blocks:
        """Gathers within the host, then over the hosts, and distributes the other hosts' blocks within this one."""
        with self._busy:
            self._barrier.check()
            try:
                exchange = self._over_hosts if self._spans_hosts else self._exchange
                return exchange(position, blocks)
            except BaseException as error:
                self.fail(Failure.again(error, self._generation))
                raise

    def _over_hosts(self, position: Position, blocks: Blocks) -> Blocks:
        gathered = self._exchange(position, blocks)
        remote: Blocks = {}
        if self._outer is not None:
            everything = self._outer.exchange(position, gathered)
            remote = {number: block for number, block in everything.items() if number not in gathered}
            self._memory.controls[self._index].words[STARTED] = position.started_ns
        remote = self._exchange(position, remote)
        position.arrived(self._barrier.words[0][STARTED])
        return gathered | remote

    def _exchange(self, position: Position, blocks: Blocks) -> Blocks:
        barrier, memory = self._barrier, self._memory
        position.algorithm = "hierarchical" if self._spans_hosts else "direct"
        if len(blocks) > MOST_BLOCKS:
            raise ValueError(
                f"a process can exchange at most {MOST_BLOCKS} blocks together, got {len(blocks)}"
            )
        parity = (barrier.round + 1) & 1
        own = memory.controls[self._index]
        own.write_table(parity, {number: block.size for number, block in blocks.items()})
        fingerprint = position.fingerprint()
        own.words[FINGERPRINT + parity] = fingerprint
        sent = _Stream(blocks)
        sent.copy(memory.input(self._index, parity), 0, into_slot=True)
        barrier.next(position)
        barrier.agree(position, fingerprint)
        if not self._spans_hosts:
            position.arrived()
        fault(position.call.sent, replica=position.rank)
        tables = [control.read_table(parity) for control in memory.controls]
        received = [{n: np.empty(nbytes, np.uint8) for n, nbytes in table.items()} for table in tables]
        streams = [_Stream(part) for part in received]
        longest = max(stream.nbytes for stream in streams)
        for low in range(0, longest, SLOT_BYTES):
            for p, stream in enumerate(streams):
                stream.copy(memory.input(p, barrier.round & 1), low, into_slot=False)
            if low + SLOT_BYTES < longest:
                sent.copy(
                    memory.input(self._index, (barrier.round + 1) & 1), low + SLOT_BYTES, into_slot=True
                )
                barrier.next(position)
        return {number: block for part in received for number, block in part.items()}

    def scratch(self, nbytes: int) -> np.ndarray:
        """This process's input slot, which peers read, if it is large enough; otherwise other shared memory."""
        if nbytes <= SLOT_BYTES:
            return self._memory.input(self._index, (self._barrier.round + 1) & 1)[:nbytes]
        with self._busy:
            self._barrier.check()
            # Drops the last reference, so that the arena may hand the block out again.
            self._scratch = self._scratch[:0]
            self._scratch = self._arena.take(nbytes)
        return self._scratch

    def empty(self, nbytes: int) -> np.ndarray:
        """Allocates shared memory."""
        with self._busy:
            self._barrier.check()
            return self._arena.take(nbytes)

    def give_back(self, before: float) -> None:
        """Frees memory that was last used before `before`, but nothing during a collective. Any thread."""
        if self._busy.acquire(blocking=False):
            try:
                if not self._closed:
                    self._scratch = self._scratch[:0].copy()
                    self._reduction.give_back(before)
                    self._shared.give_back(before)
                    self._arena.give_back(before)
            finally:
                self._busy.release()
        if self._outer is not None:
            self._outer.give_back(before)

    def finish(self, position: Position) -> None:
        """Informs peers, and wakes those that block."""
        self._barrier.finish(position)
        if self._outer is not None:
            self._outer.finish(position)

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not known to be. Any thread."""
        failure = self._barrier.broken()
        if failure is None and self._outer is not None:
            failure = self._outer.broken()
        return failure

    def fail(self, failure: Failure) -> None:
        """Breaks the group on this host and, from its first process, between the hosts."""
        self._barrier.fail(failure)
        if self._outer is not None:
            self._outer.fail(failure)

    def close(self) -> None:
        """Closes descriptors, once the thread that uses them has left; memory goes when the arrays in it are gone."""
        self._barrier.close()  # wakes that thread, even in the link between hosts
        self._roll_call.close()
        with self._busy:
            self._closed = True
            if self._outer is not None:
                self._outer.close()
            for peer in self._peers:
                peer.close()
            self._peers = []
            self._wake.close()
            self._arena.close()
            self._file.close()


class _Stream:
    """Several blocks as one sequence of bytes, which is copied piece by piece."""

    def __init__(self, blocks: Blocks) -> None:
        self.nbytes = sum(block.size for block in blocks.values())
        self._blocks = list(blocks.values())

    def copy(self, slot: np.ndarray, low: int, *, into_slot: bool) -> None:
        """Copies bytes [low, low + slot.size) from the blocks into the slot, or back."""
        start = 0
        for block in self._blocks:
            first, last = max(low, start), min(low + slot.size, start + block.size)
            if first < last:
                inside, outside = block[first - start : last - start], slot[first - low : last - low]
                np.copyto(outside, inside) if into_slot else np.copyto(inside, outside)
            start += block.size
