"""Our all_reduce between bare processes: communicators alone, without Dask, driver or replica functions.

"own" takes and gives ordinary arrays; "empty" takes arrays made by `Communicator.empty`; "shared" gives one read-only
result for the host.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tests.benchmarks.measure import SIZES, Script, time_in_step
from workbench.communicators import Bootstrap, Communicator, Member, Reduction, Topology

VARIANTS = ("own", "shared", "empty", "empty, shared")


def operation(communicator: Communicator, nbytes: int, variant: str) -> Callable[[], Any]:
    """One all_reduce, checked beforehand."""
    count = nbytes // 4
    array = communicator.empty(count, np.float32) if "empty" in variant else np.empty(count, np.float32)
    array[:] = communicator.rank + 1
    arrays, shared = [array], "shared" in variant

    def call() -> Any:
        return communicator.all_reduce(arrays, Reduction("sum", site="benchmark", shared=shared))[0]

    for _ in range(3):
        result = call()
        assert result[0] == result[-1] == communicator.size * (communicator.size + 1) / 2
        assert result.size == count
    return call


def serve(rank: int, replicas: int, pipe: Connection) -> None:
    """One process: measures each (bytes, variant, scale) that it is sent, until None."""
    topology = Topology([Member(r, "here", str(r)) for r in range(replicas)])
    bootstrap = Bootstrap(topology, str(rank))
    pipe.send(bootstrap.address)
    communicator = bootstrap.connect(pipe.recv())[rank]
    communicator.begin(0)
    while (asked := pipe.recv()) is not None:
        nbytes, variant, scale = asked
        pipe.send(time_in_step(operation(communicator, nbytes, variant), communicator.barrier, nbytes, scale))
    communicator.close()


def main() -> None:
    """Measures all sizes and variants."""
    script = Script("all_reduce", __doc__, replicas=2)
    replicas, context = script.options.replicas, multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(replicas):
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(rank, replicas, theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    addresses = {str(rank): pipe.recv() for rank, pipe in enumerate(pipes)}
    for pipe in pipes:
        pipe.send(addresses)
    for what, nbytes in SIZES.items():
        for variant in VARIANTS:
            who = f"communicator alone, {variant}"
            if script.wants(who, what):
                with script.case(who, what, replicas=replicas) as case:
                    for pipe in pipes:
                        pipe.send((nbytes, variant, script.options.scale))
                    case.samples, *_ = [pipe.recv() for pipe in pipes]
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join(30)


if __name__ == "__main__":
    main()
