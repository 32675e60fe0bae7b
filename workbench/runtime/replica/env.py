"""What a program sees of the runtime while it runs on a replica."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.device_names import Device
from workbench.runtime.replica.replica_store import ReplicaStore

if TYPE_CHECKING:
    from workbench.communicators import Communicator


class ReplicaStep:
    """A step of one replica, for the threads that it starts.

    Attributes:
      rank: The replica; of a traced function, which runs for all of them, the first one of the process.
      ended: It does not run any more. Any thread.
    """

    __slots__ = ("ended", "rank")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.ended = False


class _Thread(threading.local):
    """What the calling thread runs."""

    env: ReplicaEnv | None = None
    step: ReplicaStep | None = None  # created on first use


_current = _Thread()


class ReplicaEnv:
    """One replica of one group, on its worker. Used by the replica's thread only.

    Attributes:
      traced: False: the program runs here and now (see `TracedEnv`).
      rank: Replica id in the group, 0 to size - 1.
      size: Number of replicas of the group.
      group_id: The group.
      generation: How often the group was rebuilt.
      step: Number of the user's step that runs, from 0; -1 before the first.
      serial: Number of the message that runs: steps and internal work of the whole gang, increasing.
      device: The replica's device.
      devices: The devices of all replicas of the group, in rank order.
      communicator: Collectives with the other replicas.
      store: What the replica keeps between steps; undone when a step fails.
      operations: The collectives of the last traced program, by their name in it; known to the first replica of a
        process.
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
          args: Its arguments on this replica; `fn` gets those of all replicas as distributed values.
          kwargs: Keyword arguments, treated alike.

        Returns:
          This replica's component of the result.

        Raises:
          WorkbenchError: the error of `fn`, or an error because not every replica asked for a merge.
        """
        return self._merge(self, fn, args, kwargs or {})

    def rank_of_output(self, stream: str) -> int:
        """The replica whose output a line on "stdout" or "stderr" is that the program writes now."""
        return self.rank

    def keep(self, serial: int, leaf: int, value: Any) -> None:
        """Keeps a leaf of the result of an earlier step, which was lost with this replica's process.

        Args:
          serial: The number of that step.
          leaf: The number of the leaf in its result.
          value: The leaf.
        """
        self._keep((serial, leaf), value)


def current_env() -> ReplicaEnv | None:
    """The replica that the calling thread runs, or None outside of replica programs."""
    return _current.env


def current_step() -> ReplicaStep | None:
    """What stands for the step that the calling thread runs, or None outside of replica programs."""
    env = _current.env
    if env is not None and _current.step is None:
        _current.step = ReplicaStep(getattr(env, "first_rank", env.rank))
    return _current.step


def set_current_env(env: ReplicaEnv | None) -> None:
    """Marks the calling thread as running `env`; the executor's business only."""
    _current.env = env
    if env is None and _current.step is not None:
        _current.step.ended = True
        _current.step = None
