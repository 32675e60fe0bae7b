"""TracedEnv: what a program sees of the runtime while it is traced, once, for all replicas of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NoReturn

from workbench.errors import TracingError

if TYPE_CHECKING:
    from workbench.communicators import Communicator
    from workbench.device_names import Device


class TracedStore(dict[Hashable, Any]):
    """The variables of a replica as values of the program; notes which ones are used.

    Attributes:
      read: Keys that were looked at.
      written: New values of those that were set.
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
    """Stands for every replica of a group at once; what differs by replica is a traced value.

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
      valid_rows: (argument, number of its rows that are data) of padded arguments; see `ReplicaContext.row_mask`.
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
        """Differs by replica, so a program has none.

        Raises:
          TracingError: always.
        """
        raise TracingError(
            "the device differs by replica, and a traced function runs once for all of them; look at "
            "strategy.extended.worker_devices outside of the replica function"
        )

    def rank_of_output(self, stream: str) -> int:
        """The replica that warnings are shown for, which hold for all.

        Raises:
          TracingError: if the function prints.
        """
        if stream == "stdout":
            raise TracingError(
                "print in a traced function would show its trace, once, and no values; use jax.debug.print('{}', x), "
                "or return the value and look at it outside"
            )
        return self.first_rank
