"""Two processes that talk over real NCCL: `python -m tests.gpu.two_ranks own|shared`, started by the cases."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection

from tests.gpu import cases, programs
from workbench.backends import cupy as gpu
from workbench.communicators import Bootstrap, Gpus, Member, Reduction, Topology
from workbench.errors import CollectiveAborted, ReplicaLost, WorkbenchError

DEADLINE_SECONDS = 120.0


def replica(rank: int, pipe: Connection) -> None:
    """One process: its only replica does every collective, then one of them ends while the other waits for it."""
    topology = Topology([Member(0, "a", "p0"), Member(1, "a", "p1")])
    bootstrap = Bootstrap(topology, f"p{rank}", gpus=Gpus({rank: 0}, gpu.accelerator))
    pipe.send(bootstrap.address)
    communicator = bootstrap.connect(pipe.recv())[rank]
    wrong = programs.collectives(communicator, cases.dtypes(), cases.values, cases.expected, cases.same)
    if rank == 1:
        pipe.send(wrong)
        os._exit(9)
    try:
        communicator.begin(1)
        communicator.all_reduce([gpu.array(cases.values(0, 9, cases.dtypes()[0]))], Reduction("sum"))
        communicator.finish()
        wrong.append("the end of the other process was not noticed")
    except (ReplicaLost, CollectiveAborted):
        pass
    except WorkbenchError as error:
        wrong.append(f"unexpected {type(error).__name__}: {error}")
    communicator.close()
    pipe.send(wrong)


def main() -> int:
    """Returns how many results were wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.two_ranks",
        description="Runs collectives of two processes over real NCCL, and compares the results.",
    )
    parser.add_argument("gpus", choices=("own", "shared"), help="one GPU for each process, or one for both")
    gpus = parser.parse_args().gpus
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    visible = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0,1").split(",")
    for rank in range(2):
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[0 if gpus == "shared" else rank]
        ours, theirs = context.Pipe()
        process = context.Process(target=replica, args=(rank, theirs), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    addresses = {}
    for pipe in pipes:
        assert pipe.poll(DEADLINE_SECONDS), "a process does not start"
        address = pipe.recv()
        addresses[address.process] = address
    for pipe in pipes:
        pipe.send(addresses)
    wrong = []
    for pipe in pipes:
        assert pipe.poll(DEADLINE_SECONDS), "a replica hangs"
        wrong += pipe.recv()
    print(f"wrong: {wrong[:3] or 'none'}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
