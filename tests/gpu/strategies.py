"""Checks through a whole strategy: training, what a step costs, and errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from tests.gpu import programs
from tests.gpu.nccl import no_sharing
from tests.gpu.results import Row, Skip, held, median
from workbench.backends import cupy as gpu

TWO_WORKERS = "training by two workers on one GPU"


def training(quick: bool) -> Iterator[Row]:
    """The same replica function on CPUs and on replicas that share the GPU, through a whole strategy."""
    import workbench as wb

    steps = 5 if quick else 30
    losses = {}
    for name, options in {"NumPy": {"replicas": 2, "gpus": 0}, "CuPy": {"gpu_replicas": 2}}.items():
        with wb.connect(**options):
            losses[name] = programs.train(wb, steps)
    gap = float(np.max(np.abs(np.subtract(losses["NumPy"], losses["CuPy"]))))
    fell = losses["CuPy"][-1] < losses["CuPy"][0]
    yield held("training, NumPy and CuPy", gap < 1e-4 and fell, f"losses differ by {gap:.1e}", "< 1e-4")


def two_workers(quick: bool) -> Iterator[Row]:
    """A worker process for each of two replicas, both on the one GPU, which NCCL allows since 2.30 when asked."""
    import workbench as wb

    if reason := no_sharing():
        raise Skip(reason, TWO_WORKERS)
    steps = 5 if quick else 30
    with wb.connect(replicas=2, gpus=0):
        on_cpus = programs.train(wb, steps)
    with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="0,0"), wb.connect(gpus=2):
        on_gpu = programs.train(wb, steps)
        gap = float(np.max(np.abs(np.subtract(on_cpus, on_gpu))))
        yield held(TWO_WORKERS, gap < 1e-4, f"losses differ from NumPy's by {gap:.1e}", "< 1e-4")
        wrong = programs.lose_one(wb)
        yield held(
            "a killed worker beside NCCL", not wrong, wrong or "named, replaced, and the step repeated"
        )


def step_costs(quick: bool) -> Iterator[Row]:
    """A step of a small network, which returns its loss, by CuPy alone and through `strategy.run` with one replica."""
    import workbench as wb

    cupy, rounds = gpu.namespace(), 20 if quick else 500
    weights = programs.layers(cupy)
    x, wanted = programs.batch(cupy)
    plain = median(rounds, lambda: float(programs.gradients(cupy, weights, x, wanted)[0]))
    yield Row("step of a small network, CuPy alone", "noted", f"{plain * 1e6:,.0f} µs")
    for where, processes in (("a process", True), ("a thread", False)):
        with wb.connect(gpu_replicas=1, processes=processes):
            yield Row(f"step through strategy.run, {where}", "noted", parts_of_a_step(wb, rounds))


def parts_of_a_step(wb: Any, rounds: int) -> str:
    """What a step of the network takes with one thing more each time."""
    strategy = wb.MirroredStrategy()
    weights = strategy.distribute_values_from_function(lambda context: programs.layers(np))
    batch = strategy.distribute_values_from_function(lambda context: programs.batch(np))
    gradients = programs.gradients

    def nothing(*arguments: Any) -> None:
        pass

    def alone(weights: Any, batch: Any) -> Any:
        return gradients(wb.distribute.get_replica_context().xp, weights, *batch)[0]

    def reduced(weights: Any, batch: Any) -> Any:
        context = wb.distribute.get_replica_context()
        loss, found = gradients(context.xp, weights, *batch)
        context.all_reduce("mean", found)
        return loss

    def step(function: Any, *arguments: Any) -> list[float]:
        losses = strategy.local_results(strategy.run(function, arguments))
        return [float(loss) for loss in losses if loss is not None]

    assert step(alone, weights, batch) == step(reduced, weights, batch)
    kinds = {
        "empty": (nothing,),
        "with its arguments": (nothing, weights, batch),
        "with gradients": (alone, weights, batch),
        "with all_reduce": (reduced, weights, batch),
    }
    taken = {name: median(rounds, lambda call=call: step(*call)) for name, call in kinds.items()}
    return ", ".join(f"{name} {seconds * 1e6:,.0f} µs" for name, seconds in taken.items())


def errors(quick: bool) -> Iterator[Row]:
    """More memory than there is: the error names the replica and what is free."""
    import workbench as wb

    with wb.connect(gpu_replicas=1):
        strategy = wb.MirroredStrategy()
        try:
            strategy.run(programs.too_much)
        except MemoryError as error:
            text = str(error)
        else:
            text = ""
    fine = "replica 0" in text and "bytes were wanted" in text and "are free" in text
    yield held("out of memory is told", fine, text[:90])
