"""Handles: the driver's references to values that live on replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.backends.from_gpu import fetched
from workbench.errors import CaptureError
from workbench.runtime.comm.messages import PickledLeaf, RemoteLeaf, unpickled

if TYPE_CHECKING:
    from workbench.runtime.driver.step import Runner, Step

_MESSAGE_BYTES = 64 * 1024 * 1024


class Handle:
    """One value per replica: leaf `leaf` of the result of `step`. When it is collected, the replicas free their copies.

    Attributes:
      group: The replicas that hold it, in rank order.
    """

    __slots__ = ("__weakref__", "_fetched", "_release", "_step", "leaf")

    def __init__(self, step: Step, leaf: int) -> None:
        self._step = step
        self.leaf = leaf
        self._fetched: dict[int, Any] | None = None
        self._release = step.group.gang.released.append

    @property
    def group(self) -> Runner:
        """The replicas that hold it."""
        return self._step.group

    @property
    def size(self) -> int:
        """How many replicas hold it; its group may now have a different number."""
        return len(self._step.places)

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The places of these replicas; the group's own tuple while the same replicas take part."""
        return self._step.places

    @property
    def serial(self) -> int:
        """Serial of the step that made it."""
        return self._step.serial

    @property
    def step(self) -> Step:
        """The step that made it."""
        return self._step

    @property
    def ready(self) -> bool:
        """Whether its step has ended, so that reading it does not wait."""
        return self._step.ended

    @property
    def failed(self) -> bool:
        """Whether its step has ended without making it."""
        return self._step.error is not None

    def is_here(self, rank: int) -> bool:
        """Whether the component is in this process, so that `value` fetches nothing; its step has ended."""
        leaves = self._step.leaves[rank]
        fetched = self._fetched is not None and rank in self._fetched
        return fetched or (leaves is not None and type(leaves[self.leaf]) is not RemoteLeaf)

    def value(self, rank: int) -> Any:
        """The component of replica `rank`; waits for its step, fetches it once and keeps it.

        Raises:
          WorkbenchError: if the step failed, or the replica has been lost since.
          CaptureError: if its type does not exist in this process.
        """
        if self._fetched is not None and rank in self._fetched:
            return self._fetched[rank]
        leaf = self._leaf(rank)
        kind = type(leaf)
        if kind is tuple:
            return fetched(leaf[0])
        if kind is PickledLeaf:
            value = fetched(unpickled(leaf.data, f"the value of replica {rank}"))
        else:
            if self._step.origin is not None:  # the value can be sent or read again
                self.group.make_ready()
            keys = {rank: [(self.serial, self.leaf)]}
            (value,) = self.group.gang.requests.fetch(self.places, keys)[rank]
        self.take(rank, value)
        return value

    def take(self, rank: int, value: Any) -> None:
        """Keeps a fetched component."""
        if self._fetched is None:
            self._fetched = {}
        self._fetched[rank] = value

    def remote_bytes(self, rank: int) -> int:
        """Size of a component that is not in this process, else -1. Waits for its step."""
        leaf = self._leaf(rank)
        if type(leaf) is not RemoteLeaf or (self._fetched is not None and rank in self._fetched):
            return -1
        return leaf.size_bytes

    def values(self) -> list[Any]:
        """The components of all replicas, in rank order; see `value`."""
        return [self.value(rank) for rank in range(self.size)]

    def spec(self, rank: int) -> tuple[str, tuple[int, ...]] | None:
        """(dtype name, shape) of a component without fetching it, or None if it is not an array."""
        leaf = self._leaf(rank)
        if type(leaf) is RemoteLeaf:
            return None if leaf.shape is None else (leaf.dtype, leaf.shape)
        try:
            value = self.value(rank)
        except CaptureError:
            return None
        shape = getattr(value, "shape", None)
        if shape is None:
            return None
        return str(value.dtype).rpartition(".")[2], tuple(int(n) for n in shape)

    def specs(self) -> list[tuple[str, tuple[int, ...]] | None]:
        """`spec` of every replica, in rank order."""
        return [self.spec(rank) for rank in range(self.size)]

    def error(self) -> BaseException | None:
        """The error of its step, which it waits for, else None; does not mark the error as reported to the user."""
        self.group.wait_for_end(self._step)
        return self._step.error

    def _leaf(self, rank: int) -> Any:
        if not self._step.ended or self._step.error is not None:
            self.group.wait_for(self._step)
        leaves = self._step.leaves[rank]
        if leaves is None:
            raise IndexError(f"this value has no component for replica {rank}: its step did not run there")
        return leaves[self.leaf]

    def __del__(self) -> None:
        # Only appends, because this may run at any point in any thread. The gang sends it with its next message.
        step = self._step
        if step.accepted is not None:
            step.accepted.dropped.append(self.leaf)  # the step may be resent with another serial
        self._release((step.serial, self.leaf))


def fetch_all(handles: Sequence[Handle]) -> None:
    """Fetches missing components of several values from all replicas at once, with many values per message.

    Raises:
      WorkbenchError: as `Handle.value`. Values that cannot be fetched, such as unpicklable objects, raise later, when
        they are read.
    """
    by_place: dict[tuple[Runner, tuple[tuple[str, int], ...]], dict[int, list[Handle]]] = {}
    for handle in handles:
        for rank in range(handle.size):
            if handle.remote_bytes(rank) >= 0:
                missing = by_place.setdefault((handle.group, handle.places), {})
                missing.setdefault(rank, []).append(handle)
    for (group, places), missing in by_place.items():
        if any(handle.step.origin is not None for rest in missing.values() for handle in rest):
            group.make_ready()  # they can be sent or read again
        while any(missing.values()):
            parts = {rank: _part(rank, rest) for rank, rest in missing.items() if rest}
            wanted = {rank: [(each.serial, each.leaf) for each in part] for rank, part in parts.items()}
            try:
                found = group.gang.requests.fetch(places, wanted)
            except CaptureError:
                return
            for rank, part in parts.items():
                for handle, value in zip(part, found[rank], strict=True):
                    handle.take(rank, value)


def _part(rank: int, rest: list[Handle]) -> list[Handle]:
    """Removes handles from the front of `rest`, up to the amount of data for one message; at least one."""
    count = size = 0
    for handle in rest:
        size += handle.remote_bytes(rank)
        if count and size > _MESSAGE_BYTES:
            break
        count += 1
    part = rest[:count]
    del rest[:count]
    return part
