"""Rounds, in which the processes of a host wait for each other and learn that a wait is in vain.

Each process counts the rounds it has reached in its control page; a round is complete when all have reached it.
If there are enough cores, a process first spins for some microseconds. Then it sets its SLEEPING word and blocks; the
last one to arrive wakes it. Store, fence, load (here: set SLEEPING, read ARRIVED; there: set ARRIVED, read SLEEPING)
ensures that at least one of the two sees the other.

A process may abandon its round, for example at a deadline, just as the last one arrives. All must agree whether the
round was completed, so it first announces that it is leaving, then checks once more: it abandons the round only if
a process is still missing or has abandoned it. No process takes a round for complete while another one is leaving.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Sequence
from os import sched_yield

from workbench import allowance
from workbench.communicators.core.call import difference, left_early
from workbench.communicators.core.control_page import (
    ARRIVED,
    FAILED,
    FINGERPRINT,
    FINISHED_COUNT,
    FINISHED_ORDER,
    SLEEPING,
    Control,
)
from workbench.communicators.core.failure import Failure, Kind
from workbench.communicators.core.position import Position
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.core.wake import Wake, wake
from workbench.communicators.shm.handshake import Peer
from workbench.faults import fault

# Reads of a peer's word before blocking, if every process has a core: first some without a pause, then some that
# yield the core. A replica that only spins may hold the core that its peer needs while other programs keep the
# rest busy.
_LOOKS = 30
_YIELDING_LOOKS = 120
_YIELDS = 20  # yields before blocking, if there are more processes than cores
_TICK_SECONDS = 0.5  # how often a blocked process checks its state; wake-ups end the wait at once
# Values of SLEEPING. A process that leaves abandons its round unless all have arrived; no process completes an
# abandoned round.
_LEAVING = -1
_GAVE_UP = -2


class Barrier:
    """One process's end. Only one thread uses it; any thread may call `fail`.

    Attributes:
      round: The round that this process has reached; its parity selects between double buffers.
      words: Control words of all processes, in order.
      peers: Positions of the other processes.
    """

    def __init__(
        self,
        index: int,
        controls: Sequence[Control],
        connections: Sequence[Peer],
        own_wake: Wake,
        *,
        ranks: Sequence[Sequence[int]],
        generation: int,
        roll_call: RollCall,
    ) -> None:
        """Joins.

        Args:
          index: Position of this process.
          controls: Pages of all processes, in order.
          connections: Connections to the other processes, in order.
          own_wake: The wake-up on which this process blocks.
          ranks: The replicas of each process.
          generation: The generation of the group.
          roll_call: Finds out which replicas are missing.
        """
        self.round = 0
        self.words = [control.words for control in controls]
        self.peers = [p for p in range(len(controls)) if p != index]
        self._index = index
        self._own = self.words[index]
        self._others = [self.words[p] for p in self.peers]
        self._controls = controls
        self._sockets = {peer.socket.fileno(): p for p, peer in zip(self.peers, connections, strict=True)}
        self._wakes = {p: peer.wake_fd for p, peer in zip(self.peers, connections, strict=True)}
        self._gone: set[int] = set()  # peers whose connection has ended
        self._own_wake = own_wake
        self._ranks = ranks
        self._generation = generation
        self._roll_call = roll_call
        self._looks = _LOOKS + _YIELDING_LOOKS if len(controls) <= allowance.cores() else 0
        self._fence = threading.Lock()  # its atomic operations order this process's stores and loads
        # Guards _failure, the writing of this process's record, and _wakes.
        self._failing = threading.Lock()
        self._failure: Failure | None = None
        self._outer: Callable[[], Failure | None] = _unbroken
        self._poll = select.poll()
        for fd in self.fds:
            self._poll.register(fd, select.POLLIN)

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors that become readable when `glance` may have news."""
        return (self._own_wake.read_fd, *self._sockets)

    def watch(self, fd: int, broken: Callable[[], Failure | None]) -> None:
        """Ends waits when `fd` becomes readable and `broken` returns a failure of the outer level."""
        self._outer = broken
        self._poll.register(fd, select.POLLIN)

    def next(self, position: Position) -> None:
        """Reaches the next round and waits until all others have."""
        self.round = target = self.round + 1
        own = self._own
        own[ARRIVED] = target
        self._fence.acquire()
        self._fence.release()
        others = self._others
        for words in others:
            if words[SLEEPING]:
                self._attend()
                break
        looks = self._looks
        for words in others:
            while words[ARRIVED] < target:
                looks -= 1
                if looks <= 0:
                    self._block(position, target)
                    return
                if looks < _YIELDING_LOOKS:
                    sched_yield()  # the peer may be waiting for this core
        for words in others:
            if words[SLEEPING] < 0:
                self._block(position, target)
                return

    def agree(self, position: Position, fingerprint: int) -> None:
        """Compares the calls of the round just completed; all processes raise `CollectiveMismatch` if they differ."""
        at = FINGERPRINT + (self.round & 1)
        for words in self._others:
            if words[at] != fingerprint:
                self._explain(position)

    def check(self) -> None:
        """Raises if the group is broken."""
        if self._failure is not None:
            raise self._failure.error()

    def finish(self, position: Position) -> None:
        """Announces that this process has left its step."""
        own = self._own
        own[FINISHED_COUNT] = position.seq + 1
        own[FINISHED_ORDER] = position.order + 2
        with self._fence:
            pass
        for p in self.peers:
            # The peer waits for a round that this process will not reach.
            if self.words[p][SLEEPING] > own[ARRIVED]:
                self._wake(p)

    def fail(self, failure: Failure) -> None:
        """Publishes a failure and wakes all processes; the first record wins. Any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = failure
            self._controls[self._index].write_failure(failure, time.monotonic_ns())
            for fd in (*self._wakes.values(), self._own_wake.write_fd):
                wake(fd)

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not. Any thread."""
        if self._failure is None:
            self._adopt_failure()
        return self._failure

    def glance(self) -> Failure | None:
        """As `broken`, for the barrier's own thread while it waits elsewhere for one of `fds`."""
        self._own_wake.clear()
        poll = select.poll()
        for fd in self._sockets:
            poll.register(fd, select.POLLIN)
        ended = {fd: self._sockets[fd] for fd, _ in poll.poll(0)}
        if self.broken() is None and ended:
            ranks = self._ranks[next(iter(ended.values()))]
            self.fail(Failure("lost", _gone(ranks), ranks[0], self._generation))
        return self._failure

    def close(self) -> None:
        """Breaks the group and wakes the waiting thread; when this returns, no other thread uses wake-ups any more."""
        self.fail(Failure("closed", "a replica closed its communicator", generation=self._generation))
        with self._failing:
            self._wakes.clear()
        self._outer = _unbroken  # a cycle would keep the mapped memory until the next garbage collection

    def _block(self, position: Position, target: int) -> None:
        own = self._own
        for _ in range(0 if self._looks else _YIELDS):
            sched_yield()
            if self._complete(target):
                return
        fault(position.call.waiting, replica=position.rank)
        own[SLEEPING] = target
        try:
            self._wait(position, target)
        except BaseException:
            own[SLEEPING] = _GAVE_UP
            raise
        own[SLEEPING] = 0

    def _wait(self, position: Position, target: int) -> None:
        while True:
            with self._fence:
                pass
            # Read before ARRIVED, because a peer writes it after that.
            finished = [words[FINISHED_ORDER] for words in self._others]
            if self._complete(target):
                return
            failure = self._look_around(position, target, finished)
            if failure is not None and self._gives_up(target):
                self._publish(failure)
            self._sleep(position)

    def _arrived(self, target: int) -> bool:
        return all(words[ARRIVED] >= target for words in self._others)

    def _complete(self, target: int) -> bool:
        """Checks first that all have arrived, then that none is leaving.

        In the other order, one could leave in between.
        """
        return self._arrived(target) and all(words[SLEEPING] >= 0 for words in self._others)

    def _gives_up(self, target: int) -> bool:
        """Abandons the round. False if all have arrived, so that the round must be completed."""
        own = self._own
        own[SLEEPING] = _LEAVING
        with self._fence:
            pass
        left = any(words[SLEEPING] == _GAVE_UP for words in self._others)
        # A process that ended while leaving will never say whether it abandoned the round.
        left = left or any(self.words[p][SLEEPING] < 0 for p in self._gone)
        if left or not self._arrived(target):
            own[SLEEPING] = _GAVE_UP
            return True
        own[SLEEPING] = target
        with self._fence:
            pass
        for p in self.peers:
            if self.words[p][SLEEPING]:
                self._wake(p)
        return False

    def _sleep(self, position: Position) -> None:
        for fd, _ in self._poll.poll(position.seconds_left(_TICK_SECONDS) * 1e3):
            if fd == self._own_wake.read_fd:
                self._own_wake.clear()
            elif fd in self._sockets:
                self._gone.add(self._sockets[fd])
            elif (failure := self._outer()) is not None:
                self.fail(failure)

    def _attend(self) -> None:
        """Fails if a peer has abandoned its round.

        Wakes peers whose round is complete; this is how the last one to arrive wakes them.
        """
        for p in self.peers:
            target = self.words[p][SLEEPING]
            if target == _GAVE_UP:
                self._adopt_failure()
                self.check()
            elif target > 0 and all(words[ARRIVED] >= target for q, words in enumerate(self.words) if q != p):
                self._wake(p)

    def _wake(self, p: int) -> None:
        with self._failing:  # `close`, on another thread, removes the descriptors
            if p in self._wakes:
                wake(self._wakes[p])

    def _look_around(self, position: Position, target: int, finished: list[int]) -> Failure | None:
        """The reason to abandon the round; None if there is none."""
        self._adopt_failure()  # a peer publishes its end or failure before its connection ends
        if self._failure is not None:
            return self._failure
        for p, order in zip(self.peers, finished, strict=True):
            words = self.words[p]
            if order >= position.order + 2 and words[ARRIVED] < target:
                text = left_early(self._ranks[p][0], words[FINISHED_COUNT], position.asked())
                return self._made("mismatch", text, position, self._ranks[p][0])
        if self._gone:
            ranks = self._ranks[min(self._gone)]
            text = f"{_gone(ranks)}; replica {position.rank} waited for it in {position.asked()}"
            return self._made("lost", text, position, ranks[0])
        return self._roll_call.overdue(position) if position.expired() else None

    def _adopt_failure(self) -> None:
        """Takes over the earliest failure that any process has published."""
        failed = [(words[FAILED], p) for p, words in enumerate(self.words) if words[FAILED]]
        if failed and (first := min(failed)[1]) != self._index:
            with self._failing:
                self._failure = self._controls[first].read_failure()

    def _explain(self, position: Position) -> None:
        """Handles differing calls: every process publishes its call in words, then reads those of the others."""
        self._controls[self._index].write_asked(position.asked())
        self.next(position)
        text = difference([control.read_asked() for control in self._controls])
        self._publish(self._made("mismatch", text, position, -1))

    def _made(self, kind: Kind, text: str, position: Position, replica: int) -> Failure:
        collective = position.asked().collective
        return Failure(kind, text, replica, self._generation, position.step, collective)

    def _publish(self, failure: Failure) -> None:
        """As `fail`, then raises the failure that was published first."""
        self.fail(failure)
        self._adopt_failure()
        self.check()


def _gone(ranks: Sequence[int]) -> str:
    return f"the process of replica {', '.join(map(str, ranks))} is gone"


def _unbroken() -> Failure | None:
    return None
