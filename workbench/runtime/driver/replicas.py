"""The replicas of a group: which devices they run on, who takes part, and how far they have come."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from workbench.device_names import Device
from workbench.runtime.comm.messages import ABORT, INTERRUPT
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.driver.gang import Gang

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
      generation: How often its communicators were rebuilt after a failure.
      epoch: Steps of older epochs are refused by the workers.
      stale: Something failed since the last rebuild: the next step rebuilds first.
      number: User steps submitted so far.
      committed: Number of the last message that succeeded everywhere, and all before it.
      committed_step: The same as the user counts steps.
      nesting: Merge functions that run now.
      links: worker name -> the link behind which the stores of its replicas are.
      seats: (worker name, device index there) of each replica, whether it takes part now or not.
      taken: The seats that take part, by rank; see `membership`.
      places: Of each rank, as `seats`; another tuple as soon as others take part.
      worker_names: The workers that those are on.
      absent: Worker name -> why its replicas do not take part.
      may_grow: All of these are back.
      resized: Others take part than when the callbacks of `Group.on_resize` were called last.
    """

    def __init__(self, gang: Gang[Any], devices: Sequence[Device], *, label: str) -> None:
        self.gang = gang
        self.id = next(_ids)
        self.label = label
        self.generation = 0
        self.epoch = 0
        self.stale = True
        self.number = 0
        self.committed = 0
        self.committed_step = -1
        self.nesting = 0
        self.links: dict[str, WorkerLink] = {}
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
            self.gang.signal(self.gang.workers[name], (ABORT, self.id, self.epoch, serial, reason))

    def interrupt(self) -> None:
        """Raises RunInterrupted in every replica that runs."""
        for name in self.worker_names:
            self.gang.signal(self.gang.workers[name], (INTERRUPT, self.id, self.epoch))

    @property
    def committed_text(self) -> str:
        """Up to where errors say that state is kept."""
        last = self.committed_step
        return "No step is committed yet" if last < 0 else f"State committed at step {last}"

    @abstractmethod
    def make_ready(self) -> None:
        """Recovers now from what has failed, if anything has, so that what can be made again is there again."""


def _places(gang: Gang[Any], devices: Sequence[Device]) -> list[tuple[str, int]]:
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
