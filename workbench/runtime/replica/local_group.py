"""LocalGroup: one host's part of a group of replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from workbench.communicators import Bootstrap
from workbench.device_names import Device
from workbench.runtime.comm.messages import JoinGroup
from workbench.runtime.replica.env import ReplicaEnv


@dataclass(slots=True)
class LocalGroup:
    """This host's replicas of one group.

    Attributes:
      join: The driver's description of the group.
      rank_of_device: device index -> rank.
      envs: rank -> its environment, once the communicators are connected.
      epoch: Steps of an older epoch are refused.
      failed_serial: Steps with a larger serial are skipped, because this one failed. This step itself is not skipped: a
        replica that reaches it later may have its own error to report.
      busy: rank -> id of the thread that runs it, 0 while idle.
      shielded_ranks: Replicas at a point where an interrupt must wait, such as within a message.
      aborted: Whether the driver has stopped the current epoch.
    """

    join: JoinGroup
    rank_of_device: dict[int, int]
    devices: tuple[Device, ...]
    bootstrap: Bootstrap
    epoch: int
    envs: dict[int, ReplicaEnv] = field(default_factory=dict)
    failed_serial: int = 1 << 62
    busy: dict[int, int] = field(default_factory=dict)
    shielded_ranks: set[int] = field(default_factory=set)
    aborted: bool = False

    @contextlib.contextmanager
    def shielded(self, rank: int) -> Iterator[None]:
        """Delays interrupts of a replica's thread; one that was sent before is raised on entry."""
        self.shielded_ranks.add(rank)
        try:
            yield
        finally:
            self.shielded_ranks.discard(rank)
