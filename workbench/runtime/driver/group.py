"""The replicas of one strategy: runs programs on them, keeps their order, recovers after failures."""

from __future__ import annotations

import gc
import itertools
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import optree

from workbench.device_names import Device
from workbench.errors import ClusterClosed, ReplicaLost, RunInterrupted, StaleGeneration
from workbench.runtime.comm.messages import LEAVE, ROLLBACK, RUN
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.driver.accepted_steps import Accepted
from workbench.runtime.driver.arguments import payload
from workbench.runtime.driver.driver_events import step_failed
from workbench.runtime.driver.failures import structure_error
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.interrupts import interrupt_step
from workbench.runtime.driver.merge_call import refuse_merge, run_merge
from workbench.runtime.driver.recent_results import RecentResults
from workbench.runtime.driver.recovery import rebuild_group
from workbench.runtime.driver.sent_values import Sent
from workbench.runtime.driver.step import MergeFunction, Step
from workbench.runtime.driver.step_errors import StepErrors
from workbench.runtime.driver.straggler_deadline import Overdue
from workbench.runtime.shipping.function_registry import Prepared
from workbench.runtime.user_code.call_sites import users_call_site

if TYPE_CHECKING:
    from workbench.runtime.driver.gang import Gang

_ids = itertools.count(1)
# Steps that may be on their way at once: bounds the workers' undo logs and the memory of their results.
MAX_IN_FLIGHT = 32
# How often recovery starts over because a worker is lost during it.
_SEEDINGS = 4
_MANY_LEAVES = 10_000
RecoverCallback = Callable[[list[int], list[int]], None]


def _itself(handle: Handle) -> Handle:
    return handle


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Makes many objects that stay without looking for garbage among them, which would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Group:
    """An ordered set of replicas with communicators between them.

    Attributes:
      gang: The workers.
      devices: One per replica, in rank order.
      size: Number of replicas.
      label: What the user calls it.
      generation: How often its communicators were rebuilt after a failure.
      epoch: Steps of older epochs are refused by the workers.
      stale: Something failed since the last rebuild: the next step rebuilds first.
      worker_names: The workers it is on.
      number: User steps submitted so far.
      committed: Number of the last message that succeeded everywhere, and all before it.
      committed_step: The same as the user counts steps.
      nesting: Merge functions that run now.
      overdue: Replicas did not come to a collective in time, and some may still run; None normally.
      links: worker name -> the link behind which the stores of its replicas are.
      seats: (worker name, device index there) of each replica, whether it takes part now or not.
      taken: The seats that take part, by rank; see `membership`.
      places: Of each rank, as `seats`; another tuple as soon as others take part.
      absent: Worker name -> why its replicas do not take part.
      may_grow: All of these are back.
      recent: Small results of its newest steps.
      sent: What the notebook has sent the replicas, as far as anybody holds it.
      errors: What failed since it was last made ready.
      kept_names: Names the values that live on the replicas for as long as the notebook wants: variables.
    """

    def __init__(self, gang: Gang, devices: Sequence[Device], *, label: str) -> None:
        self.gang = gang
        self.id = next(_ids)
        self.devices = tuple(devices)
        self.size = len(self.devices)
        self.label = label
        self.generation = 0
        self.epoch = 0
        self.stale = True
        self.number = 0
        self.committed = 0
        self.committed_step = -1
        self.links: dict[str, WorkerLink] = {}
        self.nesting = 0
        self.overdue: Overdue | None = None
        self.recent = RecentResults()
        self.sent: weakref.WeakSet[Sent] = weakref.WeakSet()
        self.errors = StepErrors()
        self.kept_names: Callable[[], tuple[str, ...]] = tuple
        self._callbacks: list[RecoverCallback] = []
        self._in_flight = 0
        # Lost replicas to which the callbacks have not given their state yet.
        self._unseeded: set[int] = set()  # seats
        self._seeding = False
        self.seats = tuple(_places(gang, self.devices))
        self._seat_devices = self.devices
        self.absent: dict[str, str] = {}
        self.may_grow = False
        self._resized = False
        self._resize_callbacks: list[Callable[[], None]] = []
        self.take(range(self.size))
        self._resized = False
        with gang.lock:
            gang.groups[self.id] = self
            try:
                rebuild_group(self)
            except BaseException:
                self.close()  # or those workers that have opened their part would keep it
                raise

    @property
    def name(self) -> str:
        """Its name in telemetry, unique in the gang: "MirroredStrategy/1"."""
        return f"{self.label}/{self.id}"

    def place(self, rank: int) -> tuple[WorkerLink, int]:
        """The worker of a replica, and the index of its device there."""
        name, index = self.places[rank]
        return self.gang.workers[name], index

    def ranks_of(self, worker_name: str) -> dict[int, int]:
        """Rank -> device index, of the replicas on one worker."""
        return {rank: index for rank, (name, index) in enumerate(self.places) if name == worker_name}

    def take(self, seats: Sequence[int]) -> None:
        """Has these replicas take part from the next connection on."""
        self.taken = tuple(seats)
        self.places = tuple(self.seats[number] for number in self.taken)
        self.devices = tuple(self._seat_devices[number] for number in self.taken)
        self.size = len(self.taken)
        self.worker_names = tuple(dict.fromkeys(name for name, _ in self.places))
        self._resized = True

    def grow(self) -> None:
        """Takes missing replicas back, whose workers have returned; nothing may be used that was made without them."""
        if self.nesting:
            return  # in the midst of a step
        with self.gang.lock, self.gang.interrupts:
            self.may_grow = False
            self.stale = True
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
            f"a value has components of {handle.size} replicas, and {self.label} goes on with {self.size}: compute it "
            f"again. strategy.local_results(value) still gives the components that were not lost",
            run=self.gang.run_id,
            generation=self.generation,
        )

    def at_steps(self) -> list[int]:
        """Per replica the number of the user's step that it is in, or did last; -1 before the first.

        Replicas of one worker report together: they are where the slowest of them is.
        """
        at = [self.number - 1] * self.size
        for step in self.gang.on_their_way(self):
            if step.number >= 0:
                for rank in step.waiting.copy():
                    at[rank] = min(at[rank], step.number)
        return at

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
                while self.places is not places:  # a batch that is split anew may meet the next loss
                    places = self.places
                    args, kwargs = self._all_renewed(args, kwargs or {})
            promised = prepared.structure if pipelined and not self.nesting else None
            step = self._send(prepared, args, kwargs, on_merge, ranks, promised)
            if promised is not None:
                structure = promised
                if self._in_flight >= MAX_IN_FLIGHT:
                    gang.wait_for_room(self, MAX_IN_FLIGHT // 2)
            else:
                gang.wait(step)
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
            return Sent.of(components, by_reference=gang.shipping.by_reference).give(self)

    def wait(self) -> None:
        """Waits for all outstanding steps; raises their error. Ctrl-C stops them and leaves the cluster usable."""
        with self.gang.lock:
            self.gang.wait_for_room(self, 0)
            self.errors.raise_unreported()

    def close(self) -> None:
        """Lets the replicas forget the group and all that they keep for it."""
        with self.gang.lock, self.gang.interrupts:
            self.stale = True  # so that the next step looks
            if self.gang.groups.pop(self.id, None) is not None and not self.gang.closed:
                for name in self.worker_names:
                    self.gang.post(self.gang.workers[name], (LEAVE, self.id))

    @property
    def status(self) -> str:
        """One word: "live", "stale" (rebuilt before the next step), "lost" (a worker is gone) or "stopped"."""
        if self.gang.closed or self.id not in self.gang.groups:
            return "stopped"
        if any(self.gang.workers[name].lost for name in self.worker_names):
            return "lost"
        return "stale" if self.stale else "live"

    @property
    def in_flight(self) -> int:
        """Steps that were sent and have not ended."""
        return self._in_flight

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
        if number >= 0:  # only now: a step whose arguments cannot travel is none
            self.number += 1
        self._submit(step, encoded, structure, None if ranks is None else tuple(ranks))
        return step

    def _submit(self, step: Step, encoded: Any, structure: Any, ranks: tuple[int, ...] | None) -> None:
        function = step.prepared.function
        message = (
            RUN,
            step.serial,
            self.id,
            self.epoch,
            step.number,
            function,
            encoded,
            ranks,
            # A nested step overtakes others, which may need what is to be released.
            [] if step.nested else self.gang.take_released(),
            self.committed,
            step.nested,
        )
        self._in_flight += 1
        self.gang.submit(step, message, (function, structure) if type(function) is int else ())

    def _send_again(self) -> None:
        """Sends the steps again that were accepted and then lost with a replica."""
        for step in self.errors.take_accepted():
            assert step.accepted is not None
            try:  # for the replicas that take part now, which may be fewer
                step.accepted.handles = [self.renewed(handle) for handle in step.accepted.handles]
            except StaleGeneration as error:
                step.error, step.accepted = error, None
                self.errors.owe(error)
                continue
            step.begin_again(self.gang.next_serial())
            self._submit(step, step.accepted.payload_now(), step.accepted.structure, None)

    # -- what becomes of a step
    # ---------------------------------------------------------------------------------

    def failing(self, step: Step) -> None:
        """A replica failed while others still run: they must not wait for it."""
        failure = step.failures[0]
        self.stale = True
        self.gang.abort(
            self, step.serial, f"replica {failure.rank} raised {failure.type_name}: {failure.text}"
        )
        if self.overdue is None and any(failure.overdue for failure in step.failures):
            self.overdue = Overdue(self, step)
            self.errors.explain(step)
            self.overdue.explain(step.error)
            self.errors.owe(step.error)

    @property
    def given_up(self) -> bool:
        """Whether steps are waited for no longer, as replicas that did not come in time have not stopped either."""
        return self.overdue is not None and not self.overdue.grace_seconds()

    def give_up(self, step: Step) -> None:
        """Lets a step fail that has not ended, because of replicas that did not come in time."""
        step.error = step.error or self.errors.cause

    def step_ended(self, step: Step) -> None:
        """Every replica has reported, or is gone."""
        self._in_flight -= 1
        step.ended_ns = time.monotonic_ns()
        if not step.failed:
            step.error = step.error or structure_error(step)
            if not step.nested:
                self.committed = step.serial
                if step.number >= 0:
                    self.committed_step = step.number
                    if step.error is None:
                        self.recent.add(step)
            if step.accepted is not None:
                # Of a step that was sent again: those that were dropped before that have another serial.
                if step.accepted.losses:
                    self.gang.released.extend((step.serial, leaf) for leaf in step.accepted.dropped)
                step.accepted = None
        else:
            self.stale = True
            self.errors.failed(step)
            if self.errors.cause is step.error:  # and not another step, whose failure this one only followed
                for event in step_failed(step):
                    self.gang.notify(event)
        if step.error is not None:
            # Replicas that succeeded hold results that nobody will have a handle to.
            most = max((len(leaves) for leaves in step.leaves if leaves is not None), default=0)
            self.gang.released.extend((step.serial, leaf) for leaf in range(most))
            if not step.prepared.quiet:
                self.errors.owe(step.error)

    def wait_for_cause(self, step: Step) -> None:
        """Waits for the later step whose failure cut `step` short, if there is one."""
        if self.errors.is_effect(step) and not step.nested:
            self.gang.drain(self)

    def try_merge(self, step: Step) -> None:
        """Runs a merge function if every replica waits for it; ends the wait if one never will."""
        if step.ended or not step.merging:
            return
        if (
            set(step.merging) == step.waiting
            and not step.failed
            and all(leaf is None for leaf in step.leaves)
        ):
            run_merge(step)
        elif step.failed or any(leaf is not None for leaf in step.leaves):
            refuse_merge(step)

    @property
    def committed_text(self) -> str:
        """Up to where errors say that state is kept."""
        last = self.committed_step
        return "No step is committed yet" if last < 0 else f"State committed at step {last}"

    def interrupted(self, step: Step) -> None:
        """Ctrl-C while `step` was waited for: stops it, by force if it is pressed again.

        Raises:
          RunInterrupted: always.
        """
        interrupt_step(self, step)
        last = self.committed_step
        kept = f"variables are as {'before the first step' if last < 0 else f'after step {last}'}"
        if all(self.gang.workers[name].lost for name in self.worker_names):
            kept = "all its workers had to be ended, and the values of variables with them"
        raise RunInterrupted(
            f"interrupted {step.name!r}; the cluster is usable, {kept}",
            run=self.gang.run_id,
            generation=self.generation,
            step=step.number,
        )

    def make_ready(self) -> None:
        """Recovers now from what has failed, if anything has, so that what can be made again is there again."""
        with self.gang.lock, self.gang.interrupts:
            if self.stale:
                self._make_ready(quiet=True)

    def _make_ready(self, *, quiet: bool = False) -> None:
        """Before the next step after a failure: report what is still unreported, undo, rebuild.

        Args:
          quiet: The user did not ask for this step: a lost replica is told by the next one that they ask for.
        """
        gang = self.gang
        gang.check_open()
        if self.id not in gang.groups:
            raise ClusterClosed(f"these replicas were let go: {self.label} was closed")
        if (self.nesting or self._seeding) and self.errors.cause is not None:
            raise self.errors.cause
        gang.wait_for_room(self, 0)
        self.errors.raise_unreported(losses=not (quiet or self._seeding))
        gang.drain(self)  # of replicas that did not come in time: nothing is undone or rebuilt under them
        self.overdue = None
        if first_failed := self.errors.settle():
            for name in self.worker_names:
                gang.post(gang.workers[name], (ROLLBACK, self.id, first_failed))
        for attempt in range(_SEEDINGS):
            if self.stale:
                self._unseeded.update(rebuild_group(self))
            try:
                self._seed()
            except ReplicaLost as error:
                # A worker was lost meanwhile: what was seeded is known, go on with the rest.
                if attempt == _SEEDINGS - 1 or not self.stale:
                    raise
                self.errors.reported(error)
                self.errors.first_failed, self.errors.cause = 0, None
            else:
                break
        if not self._seeding:
            self._send_again()

    def _seed(self) -> None:
        """Has the callbacks give lost replicas their state back; all of them again if that fails."""
        lost = [rank for rank, number in enumerate(self.taken) if number in self._unseeded]
        if not (lost or self._resized) or self._seeding:
            return
        survivors = [rank for rank in range(self.size) if rank not in lost]
        self._seeding = True
        try:
            if self._resized:
                for resize in self._resize_callbacks:
                    resize()
            if lost:
                for sent in list(self.sent):
                    sent.give_again(self, lost)
                for callback in self._callbacks:
                    callback(lost, survivors)
        finally:
            self._seeding = False
        self._resized = False
        self._unseeded.clear()

    def _all_renewed(self, *arguments: Any) -> Any:
        whole: Any = arguments
        leaves, structure = optree.tree_flatten(whole, namespace="workbench")
        renewed = [self.renewed(leaf) if type(leaf) is Handle else leaf for leaf in leaves]
        return optree.tree_unflatten(structure, renewed)


def _places(gang: Gang, devices: Sequence[Device]) -> list[tuple[str, int]]:
    """(worker name, device index there) of each device. A worker keeps its name when it is restarted."""
    first_index: dict[str, int] = {}
    on_host: dict[str, int] = {}
    by_address = {}
    for worker in gang.workers.values():
        first_index[worker.name] = on_host.get(worker.host, 0)
        on_host[worker.host] = first_index[worker.name] + worker.device_count
        by_address[worker.address] = worker
    owners = [(by_address[device.worker], device) for device in devices]
    return [(worker.name, device.index - first_index[worker.name]) for worker, device in owners]
