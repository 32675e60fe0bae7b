"""The replicas of one strategy: runs programs on them, keeps their order, recovers after failures."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optree

from workbench.device_names import Device
from workbench.errors import ClusterClosed, ReplicaLost, StaleGeneration, WorkbenchError
from workbench.runtime.comm.messages import LEAVE, ROLLBACK
from workbench.runtime.driver.accepted_steps import Accepted
from workbench.runtime.driver.arguments import payload
from workbench.runtime.driver.gang.gang import Gang
from workbench.runtime.driver.group_state import Change, Phase
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.membership import look_for_returned
from workbench.runtime.driver.recovery import rebuild_group
from workbench.runtime.driver.sent_values import Sent
from workbench.runtime.driver.step import MergeFunction, Step
from workbench.runtime.driver.step_queue import StepQueue
from workbench.runtime.shipping.function_registry import Prepared
from workbench.runtime.user_code.call_sites import users_call_site
from workbench.telemetry.told import EpochFacts

# Steps that may be in progress at once: limits the workers' undo logs and the memory of their results.
MAX_IN_FLIGHT = 32
# How often recovery starts over when a worker is lost during it.
_SEEDINGS = 4
_MANY_LEAVES = 10_000
RecoverCallback = Callable[[list[int], list[int]], None]


def _itself(handle: Handle) -> Handle:
    return handle


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disables garbage collection, which would take most of the time, while creating many long-lived objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Group(StepQueue):
    """Replicas with communicators between them, on which one strategy runs its steps.

    Attributes:
      kept_names: Names the values that live on the replicas for as long as the notebook wants: variables.
      epoch: Tells how far the newest loop over a distributed dataset is; None before the first.
    """

    gang: Gang[Group]

    def __init__(self, gang: Gang[Group], devices: Sequence[Device], *, label: str) -> None:
        super().__init__(gang, devices, label=label)
        self.sent: weakref.WeakSet[Sent] = weakref.WeakSet()
        self.kept_names: Callable[[], tuple[str, ...]] = tuple
        self.epoch: Callable[[], EpochFacts | None] = lambda: None
        self._callbacks: list[RecoverCallback] = []
        self._resize_callbacks: list[Callable[[], None]] = []
        # Seats of lost replicas whose state the callbacks have not restored yet.
        self._unseeded: set[int] = set()
        self._seeding = False
        with gang.lock:
            gang.groups[self.id] = self
            try:
                rebuild_group(self)
            except BaseException:
                self.close()  # otherwise workers that have opened their part would keep it
                raise

    def grow(self) -> None:
        """Takes missing replicas back, whose workers have returned; nothing may be used that was made without them."""
        if self.nesting:
            return  # in the middle of a step
        with self.gang.lock, self.gang.interrupts:
            self.may_grow = False
            self.state.after(Change.OUTDATED)
            self._make_ready()

    def renewed(self, handle: Handle) -> Handle:
        """A handle of the same value for the replicas that take part now.

        Raises:
          StaleGeneration: if it was made by others, and cannot be made again.
        """
        if handle.places is self.places:
            return handle
        if handle.step.origin is not None:
            renewed: Handle = handle.step.origin.renewed(handle)
            return renewed
        raise StaleGeneration(
            f"a value has components of {handle.size} replicas, and {self.label} continues with {self.size}: "
            f"compute it again. strategy.local_results(value) still gives the components that were not lost",
            run=self.gang.run_id,
            generation=self.generation,
        )

    def look_for_returned(self) -> None:
        """Notes whether missing workers are back; the watching thread's, now and then."""
        look_for_returned(self)

    def on_recover(self, callback: RecoverCallback) -> None:
        """Has `callback(lost ranks, surviving ranks)` called after lost workers were replaced, before the next step."""
        self._callbacks.append(callback)

    def on_resize(self, callback: Callable[[], None]) -> None:
        """Has `callback()` called when other replicas take part than before, before those of `on_recover`."""
        self._resize_callbacks.append(callback)

    # -- running
    # ------------------------------------------------------------------------------------------------

    def prepare(
        self, program: Callable[..., Any], *, user_function: Callable[..., Any] | None = None
    ) -> Prepared:
        """Makes `program` ready to run; see `Shipping.prepare`."""
        return self.gang.shipping.prepare(program, user_function)

    def run(
        self,
        prepared: Prepared,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        pipelined: bool = False,
        on_merge: MergeFunction | None = None,
        ranks: Sequence[int] | None = None,
        wrap: Callable[[Handle], Any] = _itself,
        check: Callable[[], None] | None = None,
    ) -> Any:
        """Calls `program(env, *args, **kwargs)` once on every replica.

        Args:
          prepared: What `prepare` returned.
          args: Positional arguments; a `Handle` anywhere in them stands for the replica's component.
          kwargs: Likewise by name.
          pipelined: Return as soon as the step is sent, if the structure of its result is known from an
            earlier run.
          on_merge: Called as `on_merge(fn, args, kwargs)` when all replicas wait in `env.merge`.
          ranks: Run on these replicas only.
          wrap: What to make of the handle of each leaf; the handle itself unless given.
          check: Raises where the arguments must not be used any more; called right before they are sent.

        Returns:
          The structure that the program returned, with a wrapped `Handle` for each leaf.

        Raises:
          WorkbenchError: what happened on the replicas.
        """
        __tracebackhide__ = True
        gang = self.gang
        with gang.lock, gang.interrupts:
            if self.stale or self.errors.unreported is not None or gang.closed:
                places = self.places
                self._make_ready(quiet=prepared.quiet)
                while self.places is not places:  # a batch that is split again may be lost again
                    places = self.places
                    args, kwargs = self._all_renewed(args, kwargs or {})
            if check is not None:
                check()
            promised = prepared.structure if pipelined and not self.nesting else None
            step = self._send(prepared, args, kwargs, on_merge, ranks, promised)
            if promised is not None:
                structure = promised
                if self.in_flight >= MAX_IN_FLIGHT:
                    self.wait_for_room(MAX_IN_FLIGHT // 2)
            else:
                self.wait_for(step)
                structure = step.structures[0 if ranks is None else ranks[0]]
                prepared.structure = structure
        if structure.num_leaves > _MANY_LEAVES:
            with _no_garbage_collection():
                leaves = [wrap(Handle(step, leaf)) for leaf in range(structure.num_leaves)]
        else:
            leaves = [wrap(Handle(step, leaf)) for leaf in range(structure.num_leaves)]
        return optree.tree_unflatten(structure, leaves)

    def put(self, components: Sequence[Any]) -> Handle:
        """Gives each replica its component; returns the handle.

        Args:
          components: One per replica, in rank order.

        Raises:
          CaptureError: naming the first that does not pickle.
        """
        gang = self.gang
        with gang.lock, gang.interrupts:
            if self.stale or gang.closed:
                self._make_ready()
            return Sent.of(components, gang.shipping.codec).give(self)

    def wait(self) -> None:
        """Waits for all outstanding steps; raises their error. Ctrl-C stops them and leaves the cluster usable."""
        with self.gang.lock:
            self.wait_for_room(0)
            self.errors.raise_unreported()

    def close(self) -> None:
        """Lets the replicas forget the group and all that they keep for it."""
        with self.gang.lock, self.gang.interrupts:
            self.state.after(Change.CLOSED)
            if self.gang.groups.pop(self.id, None) is not None and not self.gang.closed:
                for name in self.worker_names:
                    self.gang.post(self.gang.workers[name], (LEAVE, self.id))

    @property
    def status(self) -> str:
        """One word: "live", "stale" (rebuilt before the next step), "lost" (a worker is gone) or "stopped"."""
        if self.gang.closed or self.state.phase is Phase.CLOSED:
            return "stopped"
        if any(self.gang.workers[name].lost for name in self.worker_names):
            return "lost"
        return "stale" if self.stale else "live"

    def _send(
        self,
        prepared: Prepared,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        on_merge: MergeFunction | None,
        ranks: Sequence[int] | None,
        promised: Any,
    ) -> Step:
        gang = self.gang
        number = self.number if prepared.counts and not self.nesting else -1
        step = Step(
            self,
            gang.next_serial(),
            number=number,
            prepared=prepared,
            on_merge=on_merge,
            ranks=ranks,
            nested=self.nesting > 0,
            promised=promised,
        )
        if number >= 0:
            step.site = users_call_site()
        if promised is not None and number >= 0 and not prepared.quiet:
            step.accepted = Accepted()
        encoded, structure = payload(gang.shipping, step, args, kwargs)
        if step.accepted is not None:
            step.accepted.payload, step.accepted.structure = encoded, structure
        if number >= 0:  # last, because a step whose arguments cannot be sent does not count
            self.state.number += 1
        self.submit(step, encoded, structure, None if ranks is None else tuple(ranks))
        return step

    def _send_again(self) -> None:
        """Sends accepted steps again that were lost with a replica."""
        for step in self.errors.take_accepted():
            assert step.accepted is not None
            try:  # split for the replicas that take part now, which may be fewer
                step.accepted.handles = [self.renewed(handle) for handle in step.accepted.handles]
            except StaleGeneration as error:
                step.error, step.accepted = error, None
                self.errors.owe(error)
                continue
            step.begin_again(self.gang.next_serial())
            self.submit(step, step.accepted.payload_now(), step.accepted.structure, None)

    def drop_accepted(self, error: WorkbenchError) -> None:
        """Steps that were accepted and then lost are not sent again: who looks at their results gets `error`."""
        for step in self.errors.take_accepted():
            step.error, step.accepted = error, None

    # -- after failures
    # ------------------------------------------------------------------------------------------------

    def make_ready(self) -> None:
        """Recovers now from what has failed, if anything has, so that what can be made again is there again."""
        with self.gang.lock, self.gang.interrupts:
            if self.stale:
                self._make_ready(quiet=True)

    def _make_ready(self, *, quiet: bool = False) -> None:
        """Prepares the next step after a failure: reports errors that are still unreported, undoes, rebuilds.

        Args:
          quiet: Whether the user did not request this step. The user's next step then reports a lost replica.
        """
        gang = self.gang
        gang.check_open()
        if self.state.phase is Phase.CLOSED:
            raise ClusterClosed(f"these replicas were let go: {self.label} was closed")
        if (self.nesting or self._seeding) and self.errors.cause is not None:
            raise self.errors.cause
        self.wait_for_room(0)
        self.errors.raise_unreported(losses=not (quiet or self._seeding))
        self.settle()
        if first_failed := self.errors.settle():
            for name in self.worker_names:
                gang.post(gang.workers[name], (ROLLBACK, self.id, first_failed))
        for attempt in range(_SEEDINGS):
            if self.stale:
                if attempt:
                    self.settle()
                self._unseeded.update(rebuild_group(self))
            try:
                self._seed()
            except ReplicaLost as error:
                # A worker was lost meanwhile. Keep what was restored, and continue with the rest.
                if attempt == _SEEDINGS - 1 or not self.stale:
                    raise
                self.errors.reported(error)
                self.errors.first_failed, self.errors.cause = 0, None
            else:
                break
        if not self._seeding:
            self._send_again()

    def _seed(self) -> None:
        """Has the callbacks restore the state of lost replicas; starts again with all of them if that fails."""
        lost = [rank for rank, number in enumerate(self.taken) if number in self._unseeded]
        if not (lost or self.resized) or self._seeding:
            return
        survivors = [rank for rank in range(self.size) if rank not in lost]
        self._seeding = True
        try:
            if self.resized:
                for resize in self._resize_callbacks:
                    resize()
            if lost:
                for sent in list(self.sent):
                    sent.give_again(self, lost)
                for callback in self._callbacks:
                    callback(lost, survivors)
        finally:
            self._seeding = False
        self.resized = False
        self._unseeded.clear()

    def _all_renewed(self, *arguments: Any) -> Any:
        whole: Any = arguments
        leaves, structure = optree.tree_flatten(whole, namespace="workbench")
        renewed = [self.renewed(leaf) if type(leaf) is Handle else leaf for leaf in leaves]
        return optree.tree_unflatten(structure, renewed)


def group_of(handle: Handle) -> Group:
    """The group whose replicas hold a value."""
    group = handle.group
    assert isinstance(group, Group)
    return group
