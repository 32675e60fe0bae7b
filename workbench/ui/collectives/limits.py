"""Measures the limits for the bandwidth of collectives, once per gang, when a view needs them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from workbench.communicators import Reduction
from workbench.runtime import Cluster
from workbench.telemetry.limits import Limit
from workbench.telemetry.records import bandwidth

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.replica.env import ReplicaEnv

PURPOSE: Final = "limit"
COPIED_BYTES: Final = (1 << 16, 1 << 20, 1 << 24)
_LARGE_BYTES: Final = 1 << 24
_ROUND_BYTES: Final = 1 << 24  # small buffers are copied so often that a round takes long enough to measure
_ROUNDS: Final = 4


def measure_limits(cluster: Cluster, only: str = "") -> None:
    """Measures the groups of a cluster whose limit is unknown, except for busy or broken ones.

    It takes some hundredths of a second per group, once. It never waits: a view must work even while a step hangs in
    another thread.

    Args:
      cluster: The cluster to measure; its feed gets the results.
      only: Name of one group, "" for all.
    """
    gang = cluster.gang
    for group in list(gang.groups.values()):
        name = group.name
        if only not in ("", name) or cluster.feed.limit(name) is not None or not gang.lock.acquire(False):
            continue
        try:
            if _is_free(group):
                cluster.feed.set_limit(name, measured(group))
        finally:
            gang.lock.release()


def _is_free(group: Group) -> bool:
    # On other devices, the limit is not the memory's bandwidth.
    cpus = all(device.kind == "CPU" for device in group.devices)
    return cpus and group.size > 1 and group.status == "live" and not (group.in_flight or group.nesting)


def measured(group: Group) -> Limit:
    """Measures; the replicas of `group` must be idle."""
    spans_hosts = len({device.host for device in group.devices}) > 1
    handle = group.run(group.prepare(all_reduce_seconds if spans_hosts else copy_seconds))
    # The slowest replica's time counts, in the best round.
    seconds = np.max(handle.values(), axis=0).min(axis=-1)
    if spans_hosts:
        return Limit(
            between_hosts=bandwidth("all_reduce", _LARGE_BYTES, 1e9 * float(seconds), group.size).busbw
        )
    rates = (size / float(each) / 1e9 for size, each in zip(COPIED_BYTES, seconds, strict=True))
    return Limit(copy=dict(zip(COPIED_BYTES, rates, strict=True)))


def copy_seconds(env: ReplicaEnv) -> np.ndarray:
    """Seconds to copy a buffer of each size while all other replicas also copy; shape `(sizes, rounds)`."""
    return np.array([[_copy(env, size) for _ in range(_ROUNDS)] for size in COPIED_BYTES])


def _copy(env: ReplicaEnv, nbytes: int) -> float:
    source, target = np.ones(nbytes, np.uint8), np.empty(nbytes, np.uint8)
    np.copyto(target, source)  # allocates the pages before the clock starts
    times = math.ceil(_ROUND_BYTES / nbytes)
    with env.communicator.internal(PURPOSE):
        env.communicator.barrier(site=PURPOSE)
    begin = time.perf_counter()
    for _ in range(times):
        np.copyto(target, source)
    return (time.perf_counter() - begin) / times


def all_reduce_seconds(env: ReplicaEnv) -> np.ndarray:
    """Seconds of each of a few large all_reduces; shape `(rounds,)`."""
    array = np.ones(_LARGE_BYTES // 4, np.float32)
    seconds = []
    with env.communicator.internal(PURPOSE):
        for _ in range(_ROUNDS):
            env.communicator.barrier(site=PURPOSE)
            begin = time.perf_counter()
            env.communicator.all_reduce([array], Reduction("sum", site=PURPOSE, shared=True))
            seconds.append(time.perf_counter() - begin)
    return np.array(seconds)
