"""The replicas of a group: their devices, which ones take part, and their progress."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.device_names import Device
from workbench.runtime.comm.messages import ABORT, INTERRUPT
from workbench.runtime.deploy.worker_link import WorkerEnd, WorkerLink
from workbench.runtime.driver.group_state import GroupState, Phase

if TYPE_CHECKING:
    from workbench.runtime.driver.gang.gang import Gang

_ids = itertools.count(1)


class Replicas(ABC):
    """An ordered set of replicas, and the facts about them that errors, events and recovery need.

    Its only concrete class is `Group`, which runs steps on them.

    Attributes:
      gang: The workers.
      id: Its number in this process.
      devices: One per replica, in rank order.
      size: Number of replicas.
      label: The user's name for the group.
      state: What must happen before the next step, and the progress of the steps.
      nesting: Number of merge functions that are running.
      links: worker name -> the link to the stores of its replicas.
      ends: worker name -> how its last process ended, if it was replaced.
      seats: (worker name, device index there) of each replica, even if it does not take part now.
      taken: The seats that take part, by rank; see `membership`.
      places: One per rank, in the form of `seats`; a new tuple when the set of replicas changes.
      worker_names: The workers of these places.
      absent: Worker name -> why its replicas do not take part.
      may_grow: Whether all absent workers are back.
      resized: Whether the set of replicas has changed since the callbacks of `Group.on_resize` were last called.
    """

    def __init__(self, gang: Gang[Any], devices: Sequence[Device], *, label: str) -> None:
        self.gang = gang
        self.id = next(_ids)
        self.label = label
        self.state = GroupState()
        self.nesting = 0
        self.links: dict[str, WorkerLink] = {}
        self.ends: dict[str, WorkerEnd] = {}
        self.seats = tuple(_places(gang, devices))
        self._seat_devices = tuple(devices)
        self.absent: dict[str, str] = {}
        self.may_grow = False
        self.take(range(len(self.seats)))
        self.resized = False

    @property
    def name(self) -> str:
        """Its name in telemetry, unique in the gang: "MirroredStrategy/1"."""
        return f"{self.label}/{self.id}"

    @property
    def stale(self) -> bool:
        """Whether something failed since they were connected, so that the next step reconnects them."""
        return self.state.phase is not Phase.READY

    @property
    def generation(self) -> int:
        """How often they were reconnected after a failure."""
        return self.state.generation

    @property
    def number(self) -> int:
        """Number of the user's steps submitted so far."""
        return self.state.number

    @property
    def committed_step(self) -> int:
        """The user's number of the last step that succeeded everywhere, -1 before the first."""
        return self.state.committed_step

    @property
    def in_flight(self) -> int:
        """Steps that were sent and have not ended."""
        return self.state.in_flight

    def place(self, rank: int) -> tuple[WorkerLink, int]:
        """The worker of a replica, and the index of its device there."""
        name, index = self.places[rank]
        return self.gang.workers[name], index

    def ranks_of(self, worker_name: str) -> dict[int, int]:
        """Rank -> device index, of the replicas on one worker."""
        return {rank: index for rank, (name, index) in enumerate(self.places) if name == worker_name}

    def take(self, seats: Sequence[int]) -> None:
        """Lets these replicas take part from the next connection on."""
        self.taken = tuple(seats)
        self.places = tuple(self.seats[number] for number in self.taken)
        self.devices = tuple(self._seat_devices[number] for number in self.taken)
        self.size = len(self.taken)
        self.worker_names = tuple(dict.fromkeys(name for name, _ in self.places))
        self.resized = True

    def abort(self, serial: int, reason: str) -> None:
        """Wakes every replica that waits for others, and makes them skip the steps after `serial`."""
        for name in self.worker_names:
            self.gang.signal(self.gang.workers[name], (ABORT, self.id, self.state.epoch, serial, reason))

    def interrupt(self) -> None:
        """Raises RunInterrupted in every replica that runs."""
        for name in self.worker_names:
            self.gang.signal(self.gang.workers[name], (INTERRUPT, self.id, self.state.epoch))

    @property
    def committed_text(self) -> str:
        """Up to which step state is kept, for errors."""
        last = self.committed_step
        return "No step is committed yet" if last < 0 else f"State committed at step {last}"

    @abstractmethod
    def make_ready(self) -> None:
        """Recovers from earlier failures now, so that lost values that can be made again exist again."""


def _places(gang: Gang[Any], devices: Sequence[Device]) -> list[tuple[str, int]]:
    """(worker name, device index there) of each device. A restarted worker keeps its name."""
    first_index: dict[str, int] = {}
    on_host: dict[str, int] = {}
    by_address = {}
    for worker in gang.workers.values():
        first_index[worker.name] = on_host.get(worker.host, 0)
        on_host[worker.host] = first_index[worker.name] + worker.device_count
        by_address[worker.address] = worker
    owners = [(by_address[device.worker], device) for device in devices]
    return [(worker.name, device.index - first_index[worker.name]) for worker, device in owners]
