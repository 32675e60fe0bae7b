"""OpenMPI through mpi4py: all_reduce of float32 between processes of this machine, into another array and in place."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np

from tests.benchmarks.measure import SIZES, Script, time_in_step


def measure(script: Script) -> None:
    """One rank."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    script.silent = world.rank != 0
    want = world.size * (world.size + 1) / 2

    def operation(nbytes: int, in_place: bool) -> Any:
        source, result = np.full(nbytes // 4, world.rank + 1, np.float32), np.zeros(nbytes // 4, np.float32)
        world.Allreduce(source, result)
        assert result[-1] == want
        result[:] = 0  # sums of sums would overflow
        return lambda: world.Allreduce(MPI.IN_PLACE if in_place else source, result)

    for what, nbytes in SIZES.items():
        for who, in_place in (("OpenMPI (mpi4py)", False), ("OpenMPI in place", True)):
            if script.wants(who, what):
                with script.case(who, what, replicas=world.size) as case:
                    call = operation(nbytes, in_place)
                    case.samples = time_in_step(call, world.Barrier, nbytes, script.options.scale)


def main() -> None:
    """Starts the ranks, or is one."""
    script = Script("all_reduce", __doc__, replicas=2)
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        measure(script)
        return
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(script.options.replicas)]
    module = [sys.executable, "-m", "tests.benchmarks.peers.mpi_all_reduce"]
    subprocess.run([*mpirun, *module, *sys.argv[1:]], check=True, timeout=300)


if __name__ == "__main__":
    main()
