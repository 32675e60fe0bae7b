"""The runtime from the point of view of a program on a replica."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.device_names import Device
from workbench.runtime.replica.replica_store import ReplicaStore

if TYPE_CHECKING:
    from workbench.communicators import Communicator


class ReplicaStep:
    """A step of one replica; threads that the replica starts refer to it.

    Attributes:
      rank: The replica; for a traced function, which runs for all replicas, the first one of the process.
      ended: Whether it has ended. Any thread.
    """

    __slots__ = ("ended", "rank")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.ended = False


class _Thread(threading.local):
    """The replica and step that the calling thread runs."""

    env: ReplicaEnv | None = None
    step: ReplicaStep | None = None  # created on first use


_current = _Thread()


class ReplicaEnv:
    """One replica of one group, on its worker. Only the replica's thread uses it.

    Attributes:
      traced: False, because the program is executed rather than traced; see `TracedEnv`.
      rank: Replica id in the group, 0 to size - 1.
      size: Number of replicas of the group.
      group_id: The group.
      generation: How often the group has been rebuilt.
      step: Number of the current user's step, from 0; -1 before the first.
      serial: Number of the current message. It increases over all steps and internal work of the gang.
      device: The replica's device.
      devices: The devices of all replicas of the group, in rank order.
      communicator: Collectives with the other replicas.
      store: The replica's state between steps; changes are undone if a step fails.
      operations: The collectives of the last traced program, by name; only on the first replica of a process.
    """

    __slots__ = (
        "_keep",
        "_merge",
        "communicator",
        "device",
        "devices",
        "generation",
        "group_id",
        "operations",
        "rank",
        "serial",
        "size",
        "step",
        "store",
    )

    traced = False
    valid_rows: tuple[tuple[Any, Any], ...] = ()
    xp: Any = None
    choose: Any = None

    def __init__(
        self,
        rank: int,
        devices: tuple[Device, ...],
        *,
        group_id: int,
        generation: int,
        communicator: Communicator,
        store: ReplicaStore,
        merge: Callable[[ReplicaEnv, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any],
        keep: Callable[[tuple[int, int], Any], None],
    ) -> None:
        self.rank = rank
        self.size = len(devices)
        self.devices = devices
        self.device = devices[rank]
        self.group_id = group_id
        self.generation = generation
        self.communicator = communicator
        self.store = store
        self.operations: dict[str, Any] = {}
        self.step = -1
        self.serial = -1
        self._merge = merge
        self._keep = keep

    def merge(
        self, fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Pauses this replica until the driver has run `fn` once for all replicas.

        Args:
          fn: The function; it runs in cross-replica context.
          args: Arguments of this replica; `fn` gets those of all replicas as distributed values.
          kwargs: Keyword arguments, likewise.

        Returns:
          This replica's component of the result.

        Raises:
          WorkbenchError: the error of `fn`, or if not every replica requested a merge.
        """
        return self._merge(self, fn, args, kwargs or {})

    def rank_of_output(self, stream: str) -> int:
        """The replica to which a line that the program now writes to "stdout" or "stderr" belongs."""
        return self.rank

    def keep(self, serial: int, leaf: int, value: Any) -> None:
        """Restores a leaf of an earlier step's result, which was lost with this replica's process.

        Args:
          serial: The number of that step.
          leaf: The number of the leaf in its result.
          value: The leaf.
        """
        self._keep((serial, leaf), value)


def current_env() -> ReplicaEnv | None:
    """The replica that the calling thread runs, or None outside replica programs."""
    return _current.env


def current_step() -> ReplicaStep | None:
    """The step that the calling thread runs, or None outside replica programs."""
    env = _current.env
    if env is not None and _current.step is None:
        _current.step = ReplicaStep(getattr(env, "first_rank", env.rank))
    return _current.step


def set_current_env(env: ReplicaEnv | None) -> None:
    """Marks the calling thread as running `env`. Only for the executor."""
    _current.env = env
    if env is None and _current.step is not None:
        _current.step.ended = True
        _current.step = None
