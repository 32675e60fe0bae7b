"""The replicas of a group: which devices they run on, who takes part, and how far they have come."""

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

    `Group` is the one class that is made of it: it runs steps on them.

    Attributes:
      gang: The workers.
      id: Its number in this process.
      devices: One per replica, in rank order.
      size: Number of replicas.
      label: What the user calls it.
      state: What the next step has to do first, and how far the steps have come.
      nesting: Merge functions that run now.
      links: worker name -> the link behind which the stores of its replicas are.
      ends: worker name -> how its last process ended, where another one has taken its place.
      seats: (worker name, device index there) of each replica, whether it takes part now or not.
      taken: The seats that take part, by rank; see `membership`.
      places: One for each rank, in the form of `seats`; another tuple as soon as others take part.
      worker_names: The workers that those are on.
      absent: Worker name -> why its replicas do not take part.
      may_grow: All of these are back.
      resized: Others take part than when the callbacks of `Group.on_resize` were called last.
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
        """Whether something failed since they were connected: the next step connects them anew."""
        return self.state.phase is not Phase.READY

    @property
    def generation(self) -> int:
        """How often they were connected again after a failure."""
        return self.state.generation

    @property
    def number(self) -> int:
        """Steps of the user's submitted so far."""
        return self.state.number

    @property
    def committed_step(self) -> int:
        """Number of the last step that succeeded everywhere, as the user counts, -1 before the first."""
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
        """Has these replicas take part from the next connection on."""
        self.taken = tuple(seats)
        self.places = tuple(self.seats[number] for number in self.taken)
        self.devices = tuple(self._seat_devices[number] for number in self.taken)
        self.size = len(self.taken)
        self.worker_names = tuple(dict.fromkeys(name for name, _ in self.places))
        self.resized = True

    def abort(self, serial: int, reason: str) -> None:
        """Wakes every replica that waits for others, and has the steps after `serial` skipped."""
        for name in self.worker_names:
            self.gang.signal(self.gang.workers[name], (ABORT, self.id, self.state.epoch, serial, reason))

    def interrupt(self) -> None:
        """Raises RunInterrupted in every replica that runs."""
        for name in self.worker_names:
            self.gang.signal(self.gang.workers[name], (INTERRUPT, self.id, self.state.epoch))

    @property
    def committed_text(self) -> str:
        """Up to where errors say that state is kept."""
        last = self.committed_step
        return "No step is committed yet" if last < 0 else f"State committed at step {last}"

    @abstractmethod
    def make_ready(self) -> None:
        """Recovers now from what has failed, if anything has, so that what can be made again is there again."""


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
