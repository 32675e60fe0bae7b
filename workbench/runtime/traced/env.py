"""TracedEnv: the runtime from the point of view of a program that is traced once for all replicas of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NoReturn

from workbench.errors import TracingError

if TYPE_CHECKING:
    from workbench.communicators import Communicator
    from workbench.device_names import Device


class TracedStore(dict[Hashable, Any]):
    """The variables of a replica as values of the program; records which ones are used.

    Attributes:
      read: Keys of variables that were read.
      written: New values of variables that were set.
    """

    def __init__(self, values: dict[Hashable, Any]) -> None:
        super().__init__(values)
        self.read: set[Hashable] = set()
        self.written: dict[Hashable, Any] = {}

    def __getitem__(self, key: Hashable) -> Any:
        value = super().__getitem__(key)
        self.read.add(key)
        return value

    def __setitem__(self, key: Hashable, value: Any) -> None:
        self.written[key] = value
        super().__setitem__(key, value)


class TracedEnv:
    """Stands for all replicas of a group at once; values that differ by replica are traced.

    Attributes:
      rank: Replica id, a traced integer.
      first_rank: The first replica of this process.
      size: Number of replicas.
      group_id: The group.
      devices: The devices of all replicas.
      communicator: Collectives, as operations of the program.
      store: Variables, as values of the program.
      choose: `choose(condition, a, b)`, elementwise.
      xp: The array namespace.
      valid_rows: (argument, number of rows with data) for each padded argument; see `ReplicaContext.row_mask`.
    """

    generation = 0
    step = -1
    serial = -1
    traced = True

    def __init__(
        self,
        devices: tuple[Device, ...],
        *,
        first_rank: int,
        group_id: int,
        communicator: Communicator,
        store: TracedStore,
        choose: Callable[[Any, Any, Any], Any],
        xp: Any,
    ) -> None:
        self.rank = communicator.rank
        self.first_rank = first_rank
        self.size = len(devices)
        self.devices = devices
        self.group_id = group_id
        self.communicator = communicator
        self.store = store
        self.choose = choose
        self.xp = xp
        self.valid_rows: Any = None

    @property
    def device(self) -> NoReturn:
        """A program has no device, because it differs by replica.

        Raises:
          TracingError: always.
        """
        raise TracingError(
            "the device differs by replica, and a traced function runs once for all of them; look at "
            "strategy.extended.worker_devices outside of the replica function"
        )

    def rank_of_output(self, stream: str) -> int:
        """The replica for which warnings are shown; they apply to all.

        Raises:
          TracingError: if the function prints.
        """
        if stream == "stdout":
            raise TracingError(
                "print in a traced function would show its trace, once, and no values; use jax.debug.print('{}', x), "
                "or return the value and look at it outside"
            )
        return self.first_rank
