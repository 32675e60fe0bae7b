"""Replicas of one process on simulated GPUs, and what they do in tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.communicators.simulated_gpu import SimArray, SimulatedGpus
from workbench.communicators import Bootstrap, Gpus, Member, Reduction, Topology
from workbench.communicators.gpu.communicator import GpuCommunicator
from workbench.errors import (
    WorkbenchError,
)
from workbench.telemetry.recording.ring import Ring

DEADLINE_SECONDS = 30.0


class Replicas:
    """Replicas in this process, each on a simulated GPU of its own (or all on the first)."""

    def __init__(self, size: int, *, shared: bool = False, uuids: Any = None, generation: int = 0) -> None:
        self.gpus = SimulatedGpus(uuids or [f"gpu-{rank}" for rank in range(size)])
        self.stuck: list[str] = []
        self.rings = {rank: Ring(replica=rank) for rank in range(size)}
        ordinals = {rank: 0 if shared else rank for rank in range(size)}
        bootstrap = Bootstrap(
            Topology([Member(rank, "a", "p") for rank in range(size)]),
            "p",
            generation=generation,
            rings=self.rings,
            gpus=Gpus(ordinals, self.gpus, on_stuck=self.stuck.append),
        )
        self.communicators = bootstrap.connect({"p": bootstrap.address})

    def run(self, body: Callable[[GpuCommunicator, SimulatedGpus], Any]) -> list[Any]:
        """What each replica returns or raises."""
        outcomes: dict[int, Any] = {}

        def work(rank: int) -> None:
            communicator = self.communicators[rank]
            assert isinstance(communicator, GpuCommunicator)
            try:
                communicator.begin(0)
                outcomes[rank] = body(communicator, self.gpus)
            except WorkbenchError as error:
                outcomes[rank] = error

        threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in self.communicators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_SECONDS)
            assert not thread.is_alive(), "hang"
        return [outcomes[rank] for rank in sorted(outcomes)]

    def close(self) -> None:
        for communicator in self.communicators.values():
            communicator.close()


def put(c: GpuCommunicator, gpus: SimulatedGpus, array: Any) -> SimArray:
    return gpus.put(array, c._ordinal)


def summed(c: GpuCommunicator, gpus: SimulatedGpus) -> float:
    (total,) = c.all_reduce([put(c, gpus, np.ones(3))], Reduction("sum", site="train.py:9"))
    value = float(gpus.get(total)[0])
    c.finish()
    return value
