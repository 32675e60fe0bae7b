"""The process and the host of each replica of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """One replica.

    Attributes:
      rank: Position in the group.
      host: Name of its host; replicas with equal names can share memory.
      process: Name of its process, unique over all hosts.
    """

    rank: int
    host: str
    process: str


@dataclass(frozen=True, slots=True)
class Topology:
    """The replicas of a group, ordered by rank.

    Attributes:
      members: One per rank, 0 first.

    Raises:
      ValueError: if ranks are not 0, 1, 2, … or one process is on two hosts.
    """

    members: tuple[Member, ...]

    def __init__(self, members: Sequence[Member]) -> None:
        object.__setattr__(self, "members", tuple(members))
        ranks = [member.rank for member in self.members]
        if not ranks or ranks != list(range(len(ranks))):
            raise ValueError(f"members must be ordered by rank 0, 1, 2, …, got ranks {ranks}")
        hosts: dict[str, str] = {}
        for member in self.members:
            if hosts.setdefault(member.process, member.host) != member.host:
                raise ValueError(
                    f"process {member.process} is said to be on {hosts[member.process]} and {member.host}"
                )

    @property
    def size(self) -> int:
        """Number of replicas."""
        return len(self.members)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts, in the order of their first rank."""
        return tuple(dict.fromkeys(member.host for member in self.members))

    def host(self, process: str) -> str:
        """The host that `process` runs on.

        Raises:
          ValueError: if no member is in that process.
        """
        for member in self.members:
            if member.process == process:
                return member.host
        raise ValueError(f"no replica of this group is in process {process!r}")

    def processes(self, host: str) -> tuple[str, ...]:
        """Processes on `host`, in the order of their first rank; the first one speaks for the host."""
        return tuple(dict.fromkeys(member.process for member in self.members if member.host == host))

    def ranks(self, process: str) -> tuple[int, ...]:
        """Ranks in `process`, ascending."""
        return tuple(member.rank for member in self.members if member.process == process)
