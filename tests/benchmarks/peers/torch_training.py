"""The network in PyTorch: DistributedDataParallel on gloo with two processes, or one process alone on all cores."""

from __future__ import annotations

import os
from typing import Any

from tests.benchmarks import network
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.ranks import rank, run_ranks


def measure(script: Script) -> None:
    """Trains on one rank of `--replicas`."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    replicas = script.options.replicas
    torch.set_num_threads(1 if replicas > 1 else len(os.sched_getaffinity(0)))
    model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    if replicas > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
        script.silent = dist.get_rank() != 0
    images, labels = map(torch.from_numpy, network.data(rank() or 0))
    optimizer = torch.optim.SGD(model.parameters(), network.RATE)
    cross_entropy, size = torch.nn.CrossEntropyLoss(), network.BATCH // replicas

    def step(number: int) -> Any:
        low = number % network.BATCHES * size
        optimizer.zero_grad()
        loss = cross_entropy(model(images[low : low + size]), labels[low : low + size])
        loss.backward()
        optimizer.step()
        return loss.detach()

    who = "PyTorch DDP, gloo" if replicas > 1 else "PyTorch alone"
    with script.case(who, network.WHAT, unit="steps/s", scale=1, replicas=0) as case:
        case.samples = _same_count(step, script.options.scale)
    if replicas > 1:
        dist.destroy_process_group()


def _same_count(step: Any, scale: float) -> list[float]:
    """Five rates over a fixed number of steps, because all ranks must stop at the same step."""
    import time

    for number in range(50):
        step(number % 3)
    rates, count = [], max(20, int(400 * scale))
    for _ in range(5):
        start = time.perf_counter()
        for number in range(count):
            result = step(number)
        float(result)
        rates.append(count / (time.perf_counter() - start))
    return rates


def main() -> None:
    """Starts the ranks, or is one."""
    script = Script("training", __doc__, replicas=2)
    if script.options.replicas > 1 and rank() is None:
        run_ranks("tests.benchmarks.peers.torch_training", script.options.replicas)
    else:
        measure(script)


if __name__ == "__main__":
    main()
