"""Memory of large collectives goes back to the system once it has not been used for a while."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from workbench.communicators import Reduction
from workbench.distribute import get_replica_context
from workbench.runtime.worker.host import IDLE_SECONDS, ReplicaHost

NBYTES = 100_000_000


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _reduced() -> float:
    context = get_replica_context()
    communicator = context._env.communicator
    array = np.ones(NBYTES // 4, np.float32)
    total = context.all_reduce("SUM", array)[-1]
    total += context.all_reduce("SUM", [array, array[:10]])[0][-1]
    total += communicator.all_reduce([array], Reduction("sum", site="here", shared=True))[0][-1]
    own = communicator.empty(NBYTES // 4, np.float32)
    own[:] = 1
    return float(total + communicator.all_reduce([own], Reduction("sum", site="here"))[0][-1])


def test_idle_memory_is_given_back_and_needed_memory_is_there_again(strategy: Any) -> None:
    def step(before: float) -> tuple[int, float]:
        context = get_replica_context()
        context._env.communicator.give_back(before)
        context._env.communicator.barrier()
        size = _resident_bytes()
        context._env.communicator.barrier()
        return size, _reduced()

    first = strategy.local_results(strategy.run(_reduced))
    kept = strategy.local_results(strategy.run(step, (0.0,)))
    given_back = strategy.local_results(strategy.run(step, (monotonic() + 1,)))
    assert first == (8.0, 8.0)
    assert [part[1] for part in (*kept, *given_back)] == [8.0] * 4
    for before, after in zip(kept, given_back, strict=True):
        assert after[0] < before[0] - NBYTES


def test_a_host_gives_back_what_all_its_replicas_have_left_idle(monkeypatch: Any) -> None:
    asked: list[float] = []

    class Communicator:
        def give_back(self, before: float) -> None:
            asked.append(before)

    class Holder:
        communicator = Communicator()

    class Group:
        envs = {0: Holder(), 1: Holder()}  # noqa: RUF012 - read only

    host = object.__new__(ReplicaHost)
    host.groups = {1: Group()}  # type: ignore[dict-item]
    earliest = monotonic() - IDLE_SECONDS
    host.give_back()
    assert len(asked) == 2
    assert earliest <= asked[0] <= monotonic() - IDLE_SECONDS
