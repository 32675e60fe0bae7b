"""Replicas in one process: they meet, and the last one to arrive combines for all.

If the group has other processes too, that last one also speaks for the process on the outer link.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.call import difference, left_early
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.link import Blocks, Link
from workbench.communicators.core.position import Position
from workbench.communicators.core.result_pool import OrdinaryMemory, ResultPool
from workbench.communicators.core.roll_call import RollCall
from workbench.faults import fault

_TICK_SECONDS = 0.5  # how often a wait checks its deadline; wake-ups end the wait at once

Execute = Callable[[Position, list[Any]], Any]
Exchange = Callable[[Blocks], Blocks]
Together = Callable[[list[Any], Blocks, Exchange], Any]
"""Called once per process with its replicas' contributions, all blocks, and a function that exchanges more blocks."""


class Rendezvous:
    """Where the replicas of one process meet.

    `_lock` guards everything below it in `__init__`. A waiting replica blocks on its own gate, a lock used as a binary
    semaphore. The thread that clears its mark in `_waiting` releases the gate, so exactly one thread does; it writes
    the reason to `_told`, because a later error concerns the next collective.
    """

    def __init__(
        self, ranks: Sequence[int], *, size: int, generation: int, outer: Link | None, roll_call: RollCall
    ) -> None:
        self.size = size
        self.outer = outer
        self.results = ResultPool()
        self._ranks = tuple(ranks)
        self._generation = generation
        self._roll_call = roll_call
        self._gates = [threading.Lock() for _ in ranks]
        for gate in self._gates:
            gate.acquire()
        self._lock = threading.Lock()
        self._waiting = [False] * len(ranks)
        self._told: list[Failure | None] = [None] * len(ranks)
        self._arrived: dict[int, tuple[Position, Any]] = {}
        self._finished = [(-2, 0)] * len(ranks)  # the step's order, number of collectives; orders start at -1
        self._result: Any = None
        self._failure: Failure | None = None
        self._open = set(range(len(ranks)))

    def meet(self, seat: int, position: Position, payload: Any, execute: Execute) -> Any:
        """Waits for all replicas of the process; the last one calls `execute`, whose result all return.

        Args:
          seat: Number of the replica in the process.
          position: Identifies the call and has its deadline.
          payload: This replica's contribution.
          execute: Gets the position and the payloads of all seats.
        """
        with self._lock:
            if self._failure is None:
                self._arrived[seat] = (position, payload)
                self._refuse_if_left(seat, position)
            failure = self._failure
            last = len(self._arrived) == len(self._ranks)
            self._waiting[seat] = failure is None and not last
        if failure is not None:
            self.fail(failure)
            raise failure.error()
        if not last:
            self._wait(seat, position)
            return self._result
        return self._execute(position, execute)

    def _wait(self, seat: int, position: Position) -> None:
        fault(position.call.waiting, replica=position.rank)
        if self.outer is not None:
            self._roll_call.sit(position)
        tick = position.seconds_left(_TICK_SECONDS)
        while not self._gates[seat].acquire(timeout=tick):
            if self._is_spoken_for():
                tick = _TICK_SECONDS
                continue
            tick = position.seconds_left(_TICK_SECONDS)
            if position.expired():
                self._give_up(seat, self._roll_call.overdue(position))
            elif self.outer is not None and (failure := self.outer.broken()) is not None:
                self._give_up(seat, failure)  # no replica of this process is on the outer link to notice
        if (told := self._told[seat]) is not None:
            raise told.error()

    def _is_spoken_for(self) -> bool:
        """Whether the last replica of the process has arrived, and acts for all of them on the outer link.

        Other processes may already have completed the collective with it. So from then on, this replica alone decides:
        it has adopted the earliest deadline, and the outer link ensures that all processes complete the collective or
        none does.
        """
        return self.outer is not None and len(self._arrived) == len(self._ranks)

    def _give_up(self, seat: int, failure: Failure) -> None:
        """As `fail`, unless the collective has been completed meanwhile, or another replica decides about it."""
        with self._lock:
            waits = self._waiting[seat] and not self._is_spoken_for()
            if waits:
                self._failure = self._failure or failure
        if waits:
            self.fail(failure)

    def _execute(self, position: Position, execute: Execute) -> Any:
        arrived = [self._arrived[seat] for seat in range(len(self._ranks))]
        first = arrived[0][0]
        calls = [(each.call.digest, each.order, each.seq) for each, _ in arrived]
        if any(call != calls[0] for call in calls):
            text = difference([each.asked() for each, _ in arrived])
            self.fail(self._mismatch(text, first))
        if self._failure is None:
            try:
                if self.outer is not None:
                    position.hurry(each for each, _ in arrived)
                for each, _ in arrived:
                    if each is not position:  # the replica itself reaches the point, in `execute`
                        fault(each.call.sent, replica=each.rank)
                self._result = execute(position, [payload for _, payload in arrived])
            except BaseException as error:
                self.fail(Failure.again(error, self._generation))
                raise
        with self._lock:  # execute() runs without the lock, because an abort may arrive meanwhile
            self._arrived.clear()
            if self._failure is not None:
                raise self._failure.error()
            result = self._result
            for seat, (each, _) in enumerate(arrived):
                each.started_ns = position.started_ns
                each.algorithm = position.algorithm
                self._release(seat, None)
        return result

    def finish(self, seat: int, position: Position) -> None:
        """Marks that a replica has left its step; the last one tells the outer link."""
        with self._lock:
            self._finished[seat] = (position.order, position.seq + 1)
            for waiter, (other, _) in self._arrived.items():
                if self._failure is None and waiter != seat and self._waiting[waiter]:
                    self._refuse_if_left(waiter, other)
            failure = self._failure
            last = self.outer is not None and all(order >= position.order for order, _ in self._finished)
        if failure is not None:
            self.fail(failure)  # the caller passes it to the outer link, outside of the lock
        elif last and self.outer is not None:
            self.outer.finish(position)

    def give_back(self, before: float) -> None:
        """Frees memory that was last used before `before`, here and on the outer link. Any thread."""
        self.results.give_back(before)
        if self.outer is not None:
            self.outer.give_back(before)

    def fail(self, failure: Failure) -> None:
        """Breaks the group and wakes all replicas that wait here; the first record wins."""
        with self._lock:
            self._failure = self._failure or failure
            first = self._failure
            for seat in range(len(self._ranks)):
                self._release(seat, first)
        if self.outer is not None:
            self.outer.fail(first)

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not known to be."""
        if self._failure is None and self.outer is not None:
            return self.outer.broken()
        return self._failure

    def close(self, seat: int) -> None:
        """Closes the end of one replica; the last one also closes the outer link."""
        self.fail(Failure("closed", "the communicator was closed", generation=self._generation))
        with self._lock:
            self._open.discard(seat)
            last = not self._open
        if last and self.outer is not None:
            self.outer.close()

    def _release(self, seat: int, failure: Failure | None) -> None:
        if self._waiting[seat]:
            self._waiting[seat] = False
            self._told[seat] = failure
            self._gates[seat].release()

    def _refuse_if_left(self, seat: int, position: Position) -> None:
        for other, (order, count) in enumerate(self._finished):
            if other != seat and order >= position.order and other not in self._arrived:
                text = left_early(self._ranks[other], count, position.asked())
                self._failure = self._mismatch(text, position, replica=self._ranks[other])
                return

    def _mismatch(self, text: str, position: Position, replica: int = -1) -> Failure:
        name = position.asked().collective
        return Failure("mismatch", text, replica, self._generation, position.step, name)


class ThreadLink(OrdinaryMemory):
    """The `Link` of one replica at a `Rendezvous`."""

    def __init__(self, rendezvous: Rendezvous, seat: int) -> None:
        super().__init__()
        self._rendezvous = rendezvous
        self._seat = seat
        outer = rendezvous.outer
        self.transport = "threads" if outer is None else f"threads + {outer.transport}"

    def reduce(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Combines in rank order; every replica copies its result out unless it is shared."""
        total: np.ndarray = self._rendezvous.meet(self._seat, position, flat, self._combine)
        if shared:
            total = total[:]
            total.flags.writeable = False
            return total
        own = self.results.take(total.size, total.dtype)
        np.copyto(own, total)
        return own

    def exchange(self, position: Position, blocks: Blocks) -> Blocks:
        """Merges all replicas' blocks."""
        merged: Blocks = self._rendezvous.meet(self._seat, position, blocks, self._merge)
        return merged

    def together(self, position: Position, brought: Any, blocks: Blocks, execute: Together) -> Any:
        """Waits for all replicas of the group; then the last one of the process executes the call for all of them.

        Args:
          position: Identifies the call and has its deadline.
          brought: This replica's contribution.
          blocks: Bytes for all replicas of the group.
          execute: Gets the contributions of the process's replicas, the blocks of the group, and a function that
            exchanges more blocks.
        """

        def last(position: Position, arrived: list[Any]) -> Any:
            merged = self._merge(position, [part for _, part in arrived])
            return execute([own for own, _ in arrived], merged, exchange)

        def exchange(more: Blocks) -> Blocks:
            outer = self._rendezvous.outer
            return more if outer is None else outer.exchange(position, more)

        return self._rendezvous.meet(self._seat, position, (brought, blocks), last)

    def give_back(self, before: float) -> None:
        """Frees memory that was last used before `before`, also where the replicas meet. Any thread."""
        super().give_back(before)
        self._rendezvous.give_back(before)

    def finish(self, position: Position) -> None:
        """Marks that the replica has left its step."""
        self._rendezvous.finish(self._seat, position)

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not known to be. Any thread."""
        return self._rendezvous.broken()

    def fail(self, failure: Failure) -> None:
        """Breaks the group, here and on the outer link."""
        self._rendezvous.fail(failure)

    def close(self) -> None:
        """Leaves the rendezvous permanently."""
        self._rendezvous.close(self._seat)

    def _combine(self, position: Position, flats: list[Any]) -> np.ndarray:
        rendezvous = self._rendezvous
        redop, apply = position.call.redop, position.call.apply
        first: np.ndarray = flats[0]
        outer = rendezvous.outer
        if outer is None:
            total = rendezvous.results.take(first.size, first.dtype)
        else:
            total = outer.scratch(first.nbytes).view(first.dtype)
        if outer is None:
            position.algorithm = "one_device"  # the last replica to arrive combines for all
            position.arrived()
            fault(position.call.sent, replica=position.rank)
        backend.combine(backend.ufunc(redop), flats, total, apply)
        if outer is not None:
            return outer.reduce(position, total, shared=True)
        backend.finish(redop, total, rendezvous.size, apply)
        return total

    def _merge(self, position: Position, parts: list[Any]) -> Blocks:
        blocks: Blocks = {number: block for part in parts for number, block in part.items()}
        if self._rendezvous.outer is not None:
            return self._rendezvous.outer.exchange(position, blocks)
        position.algorithm = "one_device"  # the last replica to arrive distributes everything
        position.arrived()
        fault(position.call.sent, replica=position.rank)
        # Copied, because a replica may change its array as soon as it has its result.
        return {number: block.copy() for number, block in blocks.items()}


def together(link: Link, position: Position, brought: Any, blocks: Blocks, execute: Together) -> Any:
    """Validates a call like any collective, then lets one thread of each process execute it by other means.

    Args:
      link: The replica's own link.
      position: The caller, its call and the deadline.
      brought: This replica's contribution to the list that `execute` gets, in rank order.
      blocks: See `Link.exchange`.
      execute: Executes the call; every replica returns its result.
    """
    if isinstance(link, ThreadLink):
        return link.together(position, brought, blocks, execute)
    merged = link.exchange(position, blocks)
    return execute([brought], merged, lambda more: link.exchange(position, more))
