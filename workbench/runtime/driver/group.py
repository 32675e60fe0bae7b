"""The replicas of one strategy: runs programs on them in order, and recovers after failures."""

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
    """Disables garbage collection while many long-lived objects are created, where it would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Group(StepQueue):
    """Connected replicas on which one strategy runs its steps.

    Attributes:
      kept_names: Names of the values that live on the replicas as long as the notebook needs them, such as variables.
      epoch: The progress of the newest loop over a distributed dataset; None before the first.
    """

    gang: Gang[Group]

    def __init__(self, gang: Gang[Group], devices: Sequence[Device], *, label: str) -> None:
        super().__init__(gang, devices, label=label)
        self.sent: weakref.WeakSet[Sent] = weakref.WeakSet()
        self.kept_names: Callable[[], tuple[str, ...]] = tuple
        self.epoch: Callable[[], EpochFacts | None] = lambda: None
        self._callbacks: list[RecoverCallback] = []
        self._resize_callbacks: list[Callable[[], None]] = []
        # Seats of lost replicas; the callbacks have not yet restored their state.
        self._unseeded: set[int] = set()
        self._seeding = False
        with gang.lock:
            gang.groups[self.id] = self
            try:
                rebuild_group(self)
            except BaseException:
                self.close()  # otherwise workers that have already opened their part would keep it
                raise

    def grow(self) -> None:
        """Takes back missing replicas after their workers have returned; invalidates all that was made without them."""
        if self.nesting:
            return  # during a step
        with self.gang.lock, self.gang.interrupts:
            self.may_grow = False
            self.state.after(Change.OUTDATED)
            self._make_ready()

    def renewed(self, handle: Handle) -> Handle:
        """A handle of the same value for the current replicas.

        Raises:
          StaleGeneration: if other replicas made it, and it cannot be made again.
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
        """Notes whether missing workers are back; the watching thread calls it now and then."""
        look_for_returned(self)

    def on_recover(self, callback: RecoverCallback) -> None:
        """Registers `callback(lost ranks, surviving ranks)`; called after lost workers are replaced, before a step."""
        self._callbacks.append(callback)

    def on_resize(self, callback: Callable[[], None]) -> None:
        """Registers `callback()`; called when the set of replicas has changed, before the callbacks of `on_recover`."""
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
          prepared: The result of `prepare`.
          args: Positional arguments; a `Handle` anywhere in them stands for the replica's component.
          kwargs: Arguments by name, likewise.
          pipelined: Whether to return as soon as the step is sent, if the structure of its result is known from an
            earlier run.
          on_merge: Called as `on_merge(fn, args, kwargs)` when all replicas wait in `env.merge`.
          ranks: Run on these replicas only.
          wrap: Converts the handle of each leaf; by default the result has the handles.
          check: Raises if the arguments must not be used any more; called right before they are sent.

        Returns:
          The structure that the program returned, with a wrapped `Handle` for each leaf.

        Raises:
          WorkbenchError: if the step failed on the replicas.
        """
        __tracebackhide__ = True
        gang = self.gang
        with gang.lock, gang.interrupts:
            if self.stale or self.errors.unreported is not None or gang.closed:
                places = self.places
                self._make_ready(quiet=prepared.quiet)
                while self.places is not places:  # a resplit batch may be lost again
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
        """Sends each replica its component; returns the handle.

        Args:
          components: One per replica, in rank order.

        Raises:
          CaptureError: if a component cannot be pickled; it names the first.
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
        """Makes the replicas drop the group and everything that they keep for it."""
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
        if number >= 0:  # last, because a step with arguments that cannot be sent does not count
            self.state.number += 1
        self.submit(step, encoded, structure, None if ranks is None else tuple(ranks))
        return step

    def _send_again(self) -> None:
        """Resends accepted steps that were lost with a replica."""
        for step in self.errors.take_accepted():
            assert step.accepted is not None
            try:  # split for the current replicas, which may be fewer
                step.accepted.handles = [self.renewed(handle) for handle in step.accepted.handles]
            except StaleGeneration as error:
                step.error, step.accepted = error, None
                self.errors.owe(error)
                continue
            step.begin_again(self.gang.next_serial())
            self.submit(step, step.accepted.payload_now(), step.accepted.structure, None)

    def drop_accepted(self, error: WorkbenchError) -> None:
        """Does not resend accepted steps that were lost; readers of their results get `error`."""
        for step in self.errors.take_accepted():
            step.error, step.accepted = error, None

    # -- after failures
    # ------------------------------------------------------------------------------------------------

    def make_ready(self) -> None:
        """Recovers from earlier failures now, so that lost values that can be made again exist again."""
        with self.gang.lock, self.gang.interrupts:
            if self.stale:
                self._make_ready(quiet=True)

    def _make_ready(self, *, quiet: bool = False) -> None:
        """Prepares the next step after a failure: raises unreported errors, undoes steps, rebuilds the group.

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
                # A worker was lost meanwhile. Keep the restored part and continue with the rest.
                if attempt == _SEEDINGS - 1 or not self.stale:
                    raise
                self.errors.reported(error)
                self.errors.first_failed, self.errors.cause = 0, None
            else:
                break
        if not self._seeding:
            self._send_again()

    def _seed(self) -> None:
        """Lets the callbacks restore the state of lost replicas; if that fails, starts again with all of them."""
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
