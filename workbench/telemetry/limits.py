"""The limit that the bus bandwidth of a group is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limit:
    """Measured bandwidths of one group of CPU replicas, GB/s.

    On one host, memory is the limit: all replicas copy a buffer at the same time; the slowest replica counts, in the
    fastest of a few rounds. Buffers that fit the caches are copied faster, so there is a figure for each of a few
    sizes, and a message is compared with that of the nearest size. Replicas that read each other's memory in place save
    copies, and may exceed 100 %.

    Between hosts, no such simple measure includes the group's connections and their encryption; there, the limit is the
    best busbw of a few large all_reduces.

    Attributes:
      copy: Bytes of a buffer -> rate at which a replica copies it.
      between_hosts: That busbw; None on one host.
    """

    copy: Mapping[int, float] = field(default_factory=dict)
    between_hosts: float | None = None

    def of(self, size_bytes: int) -> float | None:
        """The limit of busbw of a collective that moves S = `size_bytes`; None if it was not measured."""
        if self.between_hosts is not None or not self.copy:
            return self.between_hosts
        nearest = min(self.copy, key=lambda size: abs(size.bit_length() - size_bytes.bit_length()))
        return self.copy[nearest]
