"""Values that the notebook has sent to the replicas, kept in order to send them again to replaced replicas."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from workbench.errors import CaptureError, StaleGeneration
from workbench.runtime.comm.codec import Codec
from workbench.runtime.comm.failure_report import safe_text
from workbench.runtime.comm.messages import INLINE_BYTES, PUT, RemoteLeaf
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.step import Runner, Step


class Sent:
    """One encoded component per replica, as the user may change the originals. The value's handle keeps it."""

    __slots__ = ("__weakref__", "_known", "_parts", "_serial")

    divisible: Final = False

    def __init__(self, parts: Sequence[Any], known: Sequence[Any]) -> None:
        """Takes the encoded components, and what the driver knows of each."""
        self._parts = parts
        self._known = known
        self._serial = -1

    @classmethod
    def of(cls, components: Sequence[Any], codec: Codec) -> Sent:
        """Encodes components for sending.

        Raises:
          CaptureError: if a component cannot be pickled; it names the first.
        """
        parts = [_encoded(codec, value, rank) for rank, value in enumerate(components)]
        return cls(parts, [_known(value, codec) for value in components])

    def give(self, group: Runner) -> Handle:
        """Sends each replica of a group its component; returns the handle of the value."""
        step = Step(group, group.gang.next_serial(), number=-1, prepared=None, on_merge=None)
        self._serial = step.serial
        self._send(group, group.worker_names)
        step.leaves = [[known] for known in self._known]
        step.ended, step.ended_ns = True, time.monotonic_ns()
        step.origin = self
        group.sent.add(self)
        return Handle(step, 0)

    def give_again(self, group: Runner, lost: Sequence[int]) -> None:
        """Sends the replaced replicas `lost` their components."""
        # The value may belong to a different set of replicas.
        if len(self._parts) == group.size:
            self._send(group, dict.fromkeys(group.places[rank][0] for rank in lost))

    def renewed(self, handle: Handle) -> Handle:
        """Sends the same components to the current replicas.

        Raises:
          StaleGeneration: if their number differs.
        """
        group = handle.group
        if len(self._parts) != group.size:
            raise StaleGeneration(
                f"a value has components for {len(self._parts)} replicas, and {group.label} continues with "
                f"{group.size}: make it again for these, with strategy.distribute_values_from_function",
                run=group.gang.run_id,
                generation=group.generation,
            )
        with group.gang.lock, group.gang.interrupts:
            return Sent(self._parts, self._known).give(group)

    def _send(self, group: Runner, workers: Sequence[str] | dict[str, None]) -> None:
        for name in workers:
            parts = {index: self._parts[rank] for rank, index in group.ranks_of(name).items()}
            group.gang.post(group.gang.workers[name], (PUT, self._serial, parts))


def _encoded(codec: Codec, value: Any, rank: int) -> Any:
    try:
        return codec.encode(value)
    except Exception as error:  # pickling calls code of any class in the value
        raise CaptureError(
            f"the component of replica {rank} cannot be sent to it: a {type(value).__module__}."
            f"{type(value).__qualname__} does not pickle ({safe_text(error)}). Make it inside the function instead."
        ) from error


def _known(value: Any, codec: Codec) -> Any:
    """What the driver keeps of a sent value: a small value itself, or a description."""
    if codec.by_reference:
        return (value,)
    size = int(getattr(value, "nbytes", 0) or sys.getsizeof(value))
    shape = getattr(value, "shape", None)
    if size <= INLINE_BYTES:
        return (value,)
    return RemoteLeaf(type(value).__name__, str(getattr(value, "dtype", "")), shape, size)
