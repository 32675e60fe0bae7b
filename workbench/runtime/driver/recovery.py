"""Connects the replicas of a group, for the first time and after failures."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from workbench.errors import BackendUnavailable, ClusterClosed, ReplicaLost, UnsafeBind, WorkbenchError
from workbench.faults import fault
from workbench.runtime.comm.messages import CONNECT, JOIN, JoinGroup
from workbench.runtime.driver.group_state import Change
from workbench.runtime.driver.membership import seat
from workbench.runtime.driver.replicas import Replicas

_ATTEMPTS = 4
_JOIN_SECONDS = 20.0
_CONNECT_SECONDS = 40.0


def rebuild_group(group: Replicas) -> list[int]:
    """Replaces lost workers and connects all replicas again; returns the seats with lost state.

    If a worker dies meanwhile, it starts over, a few times.

    Raises:
      ReplicaLost: if a worker does not come back, or they keep dying.
      UnsafeBind: if they are on several hosts, which would listen without TLS.
      BackendUnavailable: if a library for their devices is missing.
      ClusterClosed: if another thread closes the cluster meanwhile.
    """
    for attempt in range(_ATTEMPTS):
        _end_together(group)
        seat(group)
        fault("recovery.replaced")
        try:
            _connect(group)
        except (UnsafeBind, BackendUnavailable, ClusterClosed):
            raise  # nothing was lost, and a second attempt would not help
        except WorkbenchError as error:
            if attempt == _ATTEMPTS - 1 or not any(
                group.gang.workers[name].lost for name in group.worker_names
            ):
                raise ReplicaLost(
                    f"the replicas of {group.label} could not be connected: {error}", run=group.gang.run_id
                ) from error
            continue
        break
    lost = []
    for name in group.worker_names:
        link = group.gang.workers[name]
        if group.links.get(name, link) is not link:
            # Another worker has different stores, even in the same process.
            lost += [number for number in group.taken if group.seats[number][0] == name]
            if (end := group.links[name].lost) is not None:
                group.ends[name] = end
        group.links[name] = link
    group.state.after(Change.CONNECTED)
    return sorted(lost)


def _end_together(group: Replicas) -> None:
    """Restarts all workers if one is lost, because JAX connects its processes only once."""
    links = [group.gang.workers[name] for name in group.worker_names]
    if len(links) > 1 and any(worker.lost for worker in links) and links[0].device_kind == "TPU":
        for worker in links:
            if not worker.lost:
                group.gang.kill(worker, "was ended because JAX cannot continue without a host that was lost")


def _connect(group: Replicas) -> None:
    gang = group.gang
    workers = [gang.workers[name] for name in group.worker_names]
    places = [group.place(rank) for rank in range(group.size)]
    processes: list[str] = []
    if workers[0].device_kind == "TPU":  # all take part in starting JAX, even without replicas
        workers = [worker for worker in gang.workers.values() if worker.device_kind == "TPU"]
        processes = [worker.address for worker in workers]
    addresses = {rank: group.place(rank)[0].address for rank in range(group.size)}
    group.devices = tuple(
        replace(device, worker=addresses[rank]) for rank, device in enumerate(group.devices)
    )
    group.state.begin_to_connect()
    requests = []
    for worker in workers:
        join = JoinGroup(
            group=group.id,
            generation=group.generation,
            epoch=group.state.epoch,
            devices=group.devices,
            local=group.ranks_of(worker.name),
            run_id=gang.run_id,
            name=group.name,
            processes=tuple(processes),
            places=tuple((processes.index(link.address), index) for link, index in places)
            if processes
            else (),
        )
        requests.append(gang.requests.ask(worker, JOIN, join))
    ends = time.monotonic() + _JOIN_SECONDS
    listening: dict[str, Any] = {}
    refused: WorkbenchError | None = None
    for worker, request in zip(workers, requests, strict=True):
        try:
            listening[worker.address] = gang.requests.answer(
                worker, request, max(0.1, ends - time.monotonic())
            )
        except WorkbenchError as error:  # all have answered, or never will, before the next message
            refused = refused or error
    if refused is not None:
        raise refused
    requests = [gang.requests.ask(worker, CONNECT, group.id, listening) for worker in workers]
    try:
        for worker, request in zip(workers, requests, strict=True):
            gang.requests.answer(worker, request, _CONNECT_SECONDS)
    finally:
        gang.requests.forget(requests)
    gang.flights.find(workers, gang.groups)
