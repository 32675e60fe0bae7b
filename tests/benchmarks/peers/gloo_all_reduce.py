"""torch.distributed with gloo: in-place all_reduce of float32 between processes of this machine."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.measure import SIZES, Script, time_in_step
from tests.benchmarks.peers.ranks import rank, run_ranks


def measure(script: Script) -> None:
    """One rank."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    replicas, me = dist.get_world_size(), dist.get_rank()
    script.silent = me != 0

    def operation(nbytes: int) -> Any:
        tensor = torch.full((nbytes // 4,), float(me + 1))
        dist.all_reduce(tensor)
        assert float(tensor[-1]) == replicas * (replicas + 1) / 2
        tensor.fill_(0)  # sums of sums would overflow
        return lambda: dist.all_reduce(tensor)

    for what, nbytes in SIZES.items():
        if script.wants(what):
            with script.case("gloo (torch.distributed)", what, replicas=replicas) as case:
                case.samples = time_in_step(operation(nbytes), dist.barrier, nbytes, script.options.scale)
    dist.destroy_process_group()


def main() -> None:
    """Starts the ranks, or is one."""
    script = Script("all_reduce", __doc__, replicas=2)
    if rank() is None:
        run_ranks("tests.benchmarks.peers.gloo_all_reduce", script.options.replicas)
    else:
        measure(script)


if __name__ == "__main__":
    main()
