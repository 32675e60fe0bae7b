"""InputSource: a plan on the replicas, which fetch elements by it, and fetch lost ones again."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench import by_value, tree
from workbench.debugging import numerics
from workbench.device_names import Device
from workbench.distribute.identity import new_id
from workbench.distribute.input.chunk import Chunk, Elements
from workbench.distribute.input.host_input import Request
from workbench.distribute.input.plan import InputPlan, PickledPlan, SharedPlan
from workbench.distribute.input.programs import (
    BY_PROCESS,
    HEAD,
    UNREACHABLE,
    ByReference,
    fetch,
    fetch_again,
    open_input,
)
from workbench.distribute.input.read_step import SHARED, SharedStep, share_pickled
from workbench.errors import InvalidArgumentError
from workbench.runtime.driver.handle import Handle
from workbench.runtime.shipping.captures import explain_unpicklable

if TYPE_CHECKING:
    from workbench.distribute.input.registry import InputRegistry
    from workbench.runtime.driver.group import Group
    from workbench.runtime.shipping.function_registry import Prepared


_SHARED_BYTES: Final = 1 << 20
"""From this size on, sharing a plan's arrays is faster than sending them."""
PlanFor = Callable[[Sequence[Device]], InputPlan]
"""The plan for replicas on these devices."""


class InputSource:
    """Makes the replicas of a group read by a plan. Lives as long as its dataset, an iterator or a batch.

    It does not keep the strategy, which can be collected even if its batches still exist.

    Attributes:
      plan: The plan.
      group: The replicas.
      registry: Knows it, and informs the replicas when it is gone.
      id: The replicas' id for it.
      places: The places of its replicas; see `Group.places`.
      has_process: Whether an input process reads for the replicas.
    """

    def __init__(self, plan: InputPlan, group: Group, registry: InputRegistry, plan_for: PlanFor) -> None:
        """Makes the plan known to the replicas.

        Args:
          plan: The plan for the current replicas.
          group: The replicas.
          registry: Records it.
          plan_for: Makes the plan when the set of replicas changes.

        Raises:
          CaptureError: if a function in it cannot travel.
          InvalidArgumentError: if it requires an input process, and replicas are threads of this one.
        """
        if plan.input_process and group.gang.shipping.codec.by_reference:
            raise InvalidArgumentError(
                "InputOptions(input_process=True) needs replicas in processes of their own, and these are threads of "
                "this one: connect with wb.connect(processes=True), or leave the option out"
            )
        self.has_process = False
        self.plan = plan
        self.group = group
        self.registry = registry
        self.id = new_id()
        self.places = group.places
        self._plan_for = plan_for
        self._fetchers: dict[int, Prepared] = {}
        self._again: Prepared | None = None
        self._trouble: Exception | None = None  # why there is no plan for the current replicas
        self._memory: SharedStep | None = None  # kept for replicas that join later
        self._reachable = True
        self._chunks: weakref.WeakSet[Chunk] = weakref.WeakSet()
        self._open(None)
        registry.add(self)

    def fetch(self, request: Request, elements: Elements) -> tuple[Chunk, tuple[Handle, ...]]:
        """Requests elements from the replicas, without waiting for them.

        Args:
          request: The request.
          elements: Yields them to the user.

        Returns:
          The chunk, and its leaves, which are those of `programs.fetch`.
        """
        self.group.make_ready()
        if self._trouble is not None:
            raise self._trouble
        prepared = self._fetchers.get(request.count)
        if prepared is None:
            prepared = self._fetchers[request.count] = self._fetcher(request.count)
        told = replace(
            request,
            dataset=self.id,
            forgotten=self.registry.take_forgotten(),
            checked=numerics.is_enabled(),
        )
        handles: tuple[Handle, ...] = self.group.run(prepared, (told,), pipelined=True)
        if handles[0].places is not self.places or told.dataset != self.id:
            return self.fetch(request, elements)  # the number of replicas has just changed
        chunk = Chunk(self, request, handles, elements)
        self._chunks.add(chunk)
        return chunk, handles

    def recover(self, lost: Sequence[int]) -> None:
        """Sends the plan to replaced replicas, and reads every batch that they held again."""
        self._open(lost)
        keep: dict[str, int] = {}
        # In order, so that each replaced replica reads an epoch once.
        for chunk in sorted(self._chunks, key=lambda one: one.request.first):
            live = chunk.live()
            if live:
                oldest = keep.setdefault(chunk.request.iterator, chunk.request.first)
                self._fetch_again(replace(chunk.request, keep=oldest, again=tuple(lost)), live)

    def resize(self) -> None:
        """Makes a plan for the current replicas, by which further elements are fetched."""
        self.places = self.group.places
        self._chunks.clear()
        self._trouble = None
        try:
            self.plan = self._plan_for(self.group.devices)
        except Exception as error:  # from a user function, or as hosts now differ in replicas
            self._trouble = error  # raised when elements are requested; steps without them continue
            return
        self.registry.forget_source(self.id)
        self._memory = None
        self.id = new_id()
        self._fetchers.clear()
        self._again = None
        self._open(None)

    def _fetch_again(self, request: Request, live: Sequence[Handle]) -> None:
        exchanges = self.plan.exchanges(self.group.devices)
        if self._again is None:
            self._again = self.group.prepare(fetch_again, user_function=fetch_again if exchanges else None)
        step = live[0].step
        had = [leaves[0][0] for leaves in step.leaves]
        args = request, step.serial, [handle.leaf for handle in live], had
        self.group.run(self._again, args, ranks=None if exchanges else request.again)

    def _fetcher(self, count: int) -> Prepared:
        # If hosts exchange batches, the replicas communicate, and collectives are counted by step.
        is_step = self.plan.exchanges(self.group.devices)
        prepared = self.group.prepare(fetch, user_function=fetch if is_step else None)
        # Set in advance, so that nothing has to wait for a first fetch.
        prepared.structure = tree.flatten((0,) * (HEAD + count * self.width))[1]
        prepared.quiet = True
        return prepared

    @property
    def width(self) -> int:
        """Number of leaves in an element."""
        return int(tree.flatten(self.plan.pipelines[0].element_spec)[1].num_leaves)

    def _open(self, ranks: Sequence[int] | None) -> None:
        plan: PickledPlan | SharedPlan | ByReference = ByReference(self.plan)
        if not self.group.gang.shipping.codec.by_reference:
            pickled = _pickled(self.plan)
            plan = self._shared(pickled) or pickled
        opened = self._opened(plan, ranks)
        if ranks is not None:  # do not wait while replicas are being replaced
            return
        if isinstance(plan, SharedPlan) and UNREACHABLE in opened.values():
            self._memory, self._reachable = None, False
            opened = self._opened(pickled, ranks)
        self.has_process = BY_PROCESS in opened.values()

    def _opened(self, plan: PickledPlan | SharedPlan | ByReference, ranks: Sequence[int] | None) -> Any:
        return self.group.run(self.group.prepare(open_input), (self.id, plan), ranks=ranks)

    def _shared(self, pickled: PickledPlan) -> SharedPlan | None:
        """The plan in shared memory, if the replicas can map its arrays; None if that saves nothing."""
        local = all(self.group.place(rank)[0].local for rank in range(self.group.size))
        if (
            not (SHARED and local and self._reachable)
            or sum(array.nbytes for array in pickled.arrays) < _SHARED_BYTES
        ):
            return None
        if self._memory is None:
            self._memory = share_pickled(pickled.pipelines, pickled.arrays)
        return SharedPlan(pickled.plan, self._memory.place)


def _pickled(plan: InputPlan) -> PickledPlan:
    """The plan for other processes; a notebook's functions are pickled by value.

    Raises:
      CaptureError: if a function of a stage captures something unpicklable; it names that.
    """
    try:
        buffers: list[pickle.PickleBuffer] = []
        data: bytes = by_value.dumps(plan.pipelines, buffer_callback=buffers.append)
        arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        return PickledPlan(replace(plan, pipelines=()), data, arrays)
    except Exception as error:  # pickling calls code of any class inside
        for dataset in plan.pipelines[0].datasets:
            for stage in dataset.stages:
                function: Any = getattr(stage, "fn", None)
                try:
                    by_value.dumps(function)
                except Exception as reason:
                    raise explain_unpicklable(function, reason) from error
        raise
