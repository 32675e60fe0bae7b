"""Replicas of this process, for the checks."""

from __future__ import annotations

import threading
from typing import Any

from tests.gpu import programs
from tests.gpu.cases import DEADLINE_SECONDS, dtypes, expected, same, values
from workbench.backends import cupy as gpu
from workbench.communicators import Bootstrap, Gpus, Member, Topology
from workbench.telemetry.recording.ring import Ring


def threads_of(size: int, ordinals: dict[int, int]) -> list[str]:
    """Collectives of all kinds between threads of this process; what was wrong."""
    bootstrap = Bootstrap(
        Topology([Member(rank, "a", "p") for rank in range(size)]), "p", gpus=Gpus(ordinals, gpu.accelerator)
    )
    communicators = bootstrap.connect({"p": bootstrap.address})
    wrong: list[str] = []

    def work(rank: int) -> None:
        try:
            gpu.use(ordinals[rank])
            wrong.extend(programs.collectives(communicators[rank], dtypes(), values, expected, same))
        except Exception as error:
            wrong.append(f"replica {rank}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        if thread.is_alive():
            wrong.append("hang")
    for communicator in communicators.values():
        communicator.close()
    return wrong


def alone(ring: Ring | None) -> Any:
    rings = {} if ring is None else {0: ring}
    bootstrap = Bootstrap(
        Topology([Member(0, "a", "p")]), "p", rings=rings, gpus=Gpus({0: 0}, gpu.accelerator)
    )
    return bootstrap.connect({"p": bootstrap.address})[0]
