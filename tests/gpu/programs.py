"""What replicas run in these checks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.backends import cupy as gpu
from workbench.communicators import Reduction


def collectives(
    c: Any,
    dtypes: list[np.dtype],
    values: Callable[[int, int, np.dtype], np.ndarray],
    expected: Callable[[str, list[np.ndarray]], np.ndarray],
    same: Callable[[Any, np.ndarray], bool],
) -> list[str]:
    """Every collective of one replica against NumPy; what was wrong."""
    wrong: list[str] = []
    c.begin(0)
    for dtype in dtypes:
        for op in ("sum", "mean", "min", "max", "prod"):
            for count in (0, 1, 1001):
                everyones = [values(rank, count, dtype) for rank in range(c.size)]
                (found,) = c.all_reduce([gpu.array(everyones[c.rank])], Reduction(op))
                if not same(found, expected(op, everyones)):
                    wrong.append(f"all_reduce {op} {dtype.name}[{count}]")
            part = c.reduce_scatter(gpu.array(everyones[c.rank]), op)
            if not same(part, np.array_split(expected(op, everyones), c.size)[c.rank]):
                wrong.append(f"reduce_scatter {op} {dtype.name}")
        uneven = [values(rank, 3 * rank + 1, dtype) for rank in range(c.size)]
        if not same(c.all_gather(gpu.array(uneven[c.rank]), 0), np.concatenate(uneven)):
            wrong.append(f"all_gather {dtype.name}")
        for root in range(c.size):
            sent = values(root, 100, dtype)
            if not same(c.broadcast(gpu.array(sent) if c.rank == root else None, root), sent):
                wrong.append(f"broadcast {dtype.name}")
    many = [gpu.array(np.full(n, c.rank + 1.0, np.float32)) for n in (3, 1000, 1, 50_000)]
    total = float(sum(range(1, c.size + 1)))
    wrong += [
        "packed"
        for found, mine in zip(c.all_reduce(many, Reduction("sum")), many, strict=True)
        if not same(found, np.full(mine.shape, total, np.float32))
    ]
    c.finish()
    return wrong


def train(wb: Any, steps: int) -> list[float]:
    """Losses of a linear model, trained by all replicas of a new strategy."""
    strategy = wb.MirroredStrategy()
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 8)).astype(np.float32)
    y = (x @ random.standard_normal((8, 1))).astype(np.float32)
    with strategy.scope():
        w = wb.Variable(np.zeros((8, 1), np.float32), name="w")

    def step() -> Any:
        ctx = wb.distribute.get_replica_context()
        xp, share = ctx.xp, slice(ctx.replica_id_in_sync_group, None, ctx.num_replicas_in_sync)
        mine, wanted = xp.asarray(x[share]), xp.asarray(y[share])
        weights = xp.asarray(w.read_value())
        error = mine @ weights - wanted
        gradient = 2 * mine.T @ error / len(mine)
        w.assign_sub(0.05 * ctx.all_reduce("mean", gradient))
        return ctx.all_reduce("mean", (error**2).mean())

    return [float(strategy.reduce("mean", strategy.run(step), axis=None)) for _ in range(steps)]


LAYERS = (784, 128, 128, 64, 10)


def layers(xp: Any) -> list[Any]:
    """Weights and biases of a small network."""
    shapes = [shape for rows, width in pairwise(LAYERS) for shape in ((rows, width), (width,))]
    return [xp.full(shape, 0.01, np.float32) for shape in shapes]


def batch(xp: Any) -> tuple[Any, Any]:
    """Rows for the network, and what it should make of them."""
    return xp.ones((32, LAYERS[0]), np.float32), xp.ones((32, LAYERS[-1]), np.float32)


def gradients(xp: Any, weights: list[Any], x: Any, wanted: Any) -> tuple[Any, list[Any]]:
    """Loss of the network for a batch, and its gradient by each weight and bias."""
    seen = [x]
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        seen.append(xp.maximum(seen[-1] @ weight + bias, 0))
    error = seen.pop() - wanted
    loss = (error * error).mean()
    found: list[Any] = []
    for weight in weights[-2::-2]:
        found = [seen[-1].T @ error, error.sum(axis=0), *found]
        error = (error @ weight.T) * (seen.pop() > 0)
    return loss, found


def lose_one(wb: Any) -> str:
    """Kills the process of replica 1 in a step while the other one waits for it; what is wrong then, "" if nothing."""
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        w = wb.Variable(np.arange(4, dtype=np.float32), name="w")

    def step(deadly: bool) -> int:
        ctx = wb.distribute.get_replica_context()
        if deadly and ctx.replica_id_in_sync_group == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        w.assign_add(ctx.all_reduce("sum", ctx.xp.ones(4, np.float32)))
        return os.getpid()

    def processes(deadly: bool) -> tuple[int, ...]:
        return strategy.experimental_local_results(strategy.run(step, args=(deadly,)))

    before = processes(False)
    try:
        processes(True)
        return "the end of replica 1 was not noticed"
    except wb.errors.ReplicaLost as error:
        if error.replica != 1:
            return f"{error!r} names the wrong replica"
    after = processes(False)
    if len({*before, *after}) != 3 or before[0] != after[0]:
        return f"replicas in processes {before}, then {after}: one of each and a new one were expected"
    wanted = np.arange(4) + 4  # two steps of two replicas: the failed one changed nothing
    copies = strategy.experimental_local_results(w)
    wrong = [copy for copy in copies if not np.array_equal(np.asarray(copy), wanted)]
    return f"w is {wrong[0]} instead of {wanted}" if wrong else ""


def too_much() -> Any:
    """More than any GPU has."""
    import cupy

    return cupy.empty(1 << 45, np.uint8)


def spoilt_by_one(wb: Any) -> str:
    """Where, as `wb.inspect` says, the NaN came from that replica 1 gives to the 24th of 40 steps."""
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        w = wb.Variable(np.zeros(8, np.float32), name="w")

    def step(k: int) -> None:
        ctx = wb.distribute.get_replica_context()
        gradient = ctx.xp.ones(8, np.float32)
        if (ctx.replica_id_in_sync_group, k) == (1, 23):
            gradient[5] = np.nan
        w.assign_sub(0.1 * ctx.all_reduce("mean", gradient))

    for k in range(40):
        strategy.run(step, args=(k,))
    text = " ".join(str(wb.inspect(w)).split())
    return text[text.find("The first NaN") :]
