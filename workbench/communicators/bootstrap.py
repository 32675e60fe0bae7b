"""Connects the replicas of a group: every process makes a `Bootstrap`, all exchange addresses, then all `connect`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.backends.accelerator import Accelerator
from workbench.communicators.communicator import Communicator
from workbench.communicators.core.link import Link
from workbench.communicators.core.remote_roll_call import Host, OtherHosts
from workbench.communicators.core.replica_communicator import ReplicaCommunicator
from workbench.communicators.core.roll_call import RollCall
from workbench.communicators.core.tcp import TcpListener, Tls, ring_neighbours
from workbench.communicators.core.topology import Topology
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.communicators.gpu.plane import GpuPlane
from workbench.communicators.ring.link import RingLink
from workbench.communicators.shm.handshake import Hello, Listener
from workbench.communicators.shm.link import SharedMemoryLink
from workbench.communicators.threads.rendezvous import Rendezvous, ThreadLink
from workbench.communicators.threads.solo import SoloLink
from workbench.telemetry.recording.ring import Ring, SharedRing


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that the replicas of one process run on.

    Attributes:
      ordinals: Device of each local rank, by this process's numbering.
      accelerator: The library that drives them.
      on_stuck: Called with the reason when a replica's thread is stuck inside NCCL after a failure. Only ending the
        process frees such a thread.
    """

    ordinals: Mapping[int, int]
    accelerator: Accelerator
    on_stuck: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a process of the group listens; picklable. Give it only to members, because its token grants access.

    Attributes:
      process: Name of the process.
      token: Secret that each connecting process must show.
      path: Path of its Unix socket, "" if no other process of the group is on its host.
      tcp: Host name and port for other hosts; None if there are none, or if it does not speak for its host.
    """

    process: str
    token: str = field(repr=False)
    path: str = ""
    tcp: tuple[str, int] | None = None


class Bootstrap:
    """One process's part in connecting a group.

    Attributes:
      address: To be sent to all processes of the group over a channel that is private to them.
    """

    def __init__(
        self,
        topology: Topology,
        process: str,
        *,
        generation: int = 0,
        group: str = "",
        rings: Mapping[int, Ring] | None = None,
        directory: Path | None = None,
        bind_host: str = "127.0.0.1",
        tls: Tls | None = None,
        gpus: Gpus | None = None,
    ) -> None:
        """Starts to listen if other processes will connect.

        Args:
          topology: The topology of the whole group.
          process: Name of this process.
          generation: How often the group has been rebuilt.
          group: Name of the group, for telemetry.
          rings: Telemetry ring of each local rank whose collectives are recorded.
          directory: Parent of the Unix socket's owner-only directory; None for the system's default.
          bind_host: Address to listen on, as other hosts reach it.
          tls: TLS contexts for connections between hosts; required off loopback.
          gpus: The GPUs of this process's replicas. If one process of the group uses GPUs, all must.

        Raises:
          UnsafeBind: if other hosts would connect to an address off loopback without TLS.
        """
        self._topology = topology
        self._process = process
        self._generation = generation
        self._group = group
        self._name = f"group {group!r} generation {generation}"
        self._rings: dict[int, Ring | SharedRing] = dict(rings or {})
        self._gpus = gpus
        self._neighbours = topology.processes(topology.host(process))
        self._listener = Listener(directory) if len(self._neighbours) > 1 else None
        speaks = len(topology.hosts) > 1 and self._neighbours[0] == process
        self._tls = tls
        self._tcp = TcpListener(bind_host, tls) if speaks else None
        self._roll_call = RollCall(topology.size, generation=generation)
        self.address = Address(
            process,
            secrets.token_hex(16),
            path=self._listener.path if self._listener else "",
            tcp=self._tcp.address if self._tcp else None,
        )

    def connect(
        self, addresses: Mapping[str, Address], deadline_seconds: float = 30.0
    ) -> dict[int, Communicator]:
        """Connects to all other processes of the group, which must do the same; then stops listening.

        Args:
          addresses: The addresses of each process of the topology, by its name.
          deadline_seconds: Longest time to wait for the others.

        Returns:
          The communicator of each rank of this process.

        Raises:
          DeadlineExceededError: if processes did not connect in time; it names them.
        """
        deadline = time.monotonic() + deadline_seconds
        try:
            link = self._connected(addresses, deadline)
        finally:
            self.close()
        links = self._links(self._topology.ranks(self._process), link)
        if self._gpus is None:
            return {rank: self._communicator(rank, link) for rank, link in links.items()}
        return self._on_gpus(self._gpus, links)

    def _on_gpus(self, gpus: Gpus, links: Mapping[int, Link]) -> dict[int, Communicator]:
        rings = {rank: SharedRing(ring) for rank, ring in self._rings.items() if isinstance(ring, Ring)}
        self._rings = dict(rings)
        plane = GpuPlane(
            gpus.accelerator,
            self._topology,
            gpus.ordinals,
            link=next(iter(links.values())),
            generation=self._generation,
            group=self._group,
            rings=rings,
            on_stuck=gpus.on_stuck,
        )
        return {rank: GpuCommunicator(self._communicator(rank, link), plane) for rank, link in links.items()}

    def close(self) -> None:
        """Stops listening; connected communicators stay open."""
        if self._listener is not None:
            self._listener.close()
        if self._tcp is not None:
            self._tcp.close()

    def _connected(self, addresses: Mapping[str, Address], deadline: float) -> Link | None:
        host = self._on_host(addresses, deadline)
        if len(self._topology.hosts) == 1:
            return host
        try:
            ring = self._between_hosts(addresses, deadline)
            self._roll_call.ask(self._other_hosts(addresses))
        except BaseException:
            if host is not None:
                host.close()
            raise
        if host is None:
            return ring
        host.between_hosts(ring)
        return host

    def _between_hosts(self, addresses: Mapping[str, Address], deadline: float) -> RingLink | None:
        if self._tcp is None:
            return None
        topology = self._topology
        hosts = topology.hosts
        index = hosts.index(topology.host(self._process))
        following = addresses[topology.processes(hosts[(index + 1) % len(hosts)])[0]]
        assert following.tcp is not None
        preceding, forward = ring_neighbours(
            self._tcp,
            following.tcp,
            accept_first=index == 0,
            group=self._name,
            own_token=self.address.token,
            next_token=following.token,
            tls=self._tls,
            deadline=deadline,
        )
        return RingLink(
            index,
            preceding,
            forward,
            hosts=len(hosts),
            size=topology.size,
            generation=self._generation,
            roll_call=self._roll_call,
        )

    def _other_hosts(self, addresses: Mapping[str, Address]) -> OtherHosts:
        topology = self._topology
        others = []
        for name in topology.hosts:
            if name != topology.host(self._process):
                processes = topology.processes(name)
                first = addresses[processes[0]]
                assert first.tcp is not None
                ranks = [rank for process in processes for rank in topology.ranks(process)]
                others.append(Host(ranks, first.tcp, first.token))
        listener, self._tcp = self._tcp, None  # it keeps listening while the group lives
        return OtherHosts(
            others, group=self._name, own_token=self.address.token, listener=listener, tls=self._tls
        )

    def _on_host(self, addresses: Mapping[str, Address], deadline: float) -> SharedMemoryLink | None:
        if self._listener is None:
            return None
        known = [addresses[process] for process in self._neighbours]
        return SharedMemoryLink(
            Hello(self._process, self._name, self.address.token),
            self._listener,
            [(address.process, address.path, address.token) for address in known],
            ranks=[self._topology.ranks(process) for process in self._neighbours],
            size=self._topology.size,
            generation=self._generation,
            deadline=deadline,
            roll_call=self._roll_call,
        )

    def _links(self, ranks: tuple[int, ...], outer: Link | None) -> dict[int, Link]:
        if len(ranks) == 1:
            return {ranks[0]: outer or SoloLink()}
        rendezvous = Rendezvous(
            ranks,
            size=self._topology.size,
            generation=self._generation,
            outer=outer,
            roll_call=self._roll_call,
        )
        return {rank: ThreadLink(rendezvous, seat) for seat, rank in enumerate(ranks)}

    def _communicator(self, rank: int, link: Link) -> ReplicaCommunicator:
        return ReplicaCommunicator(
            rank,
            self._topology.size,
            link,
            roll_call=self._roll_call,
            generation=self._generation,
            group=self._group,
            ring=self._rings.get(rank),
        )
