"""Checks that NaN on the GPU are found: the line that makes one, and dumps of what collectives and variables got."""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.gpu.results import Row, held
from workbench.debugging.dump.options import MODES


def lines(quick: bool) -> Iterator[Row]:
    """`enable_check_numerics` over real operations of CuPy, on one of two replicas, at one of several steps."""
    import workbench as wb

    with wb.connect(gpu_replicas=2):
        yield from lines_on(wb)
    with wb.connect(gpu_replicas=1):  # as where each replica has a GPU
        yield from _costs(wb, wb.MirroredStrategy())


def lines_on(wb: Any) -> Iterator[Row]:
    """The same on the devices that are connected."""
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        w = wb.Variable(np.ones((4, 4), np.float32), name="w")
    wb.debugging.enable_check_numerics()
    try:
        for function, wanted in _programs(w).items():
            said = _stops(strategy, function)
            text, _, line = wanted.partition(" | ")
            where = f"numerics.py:{_line_of(function, line)}" if line else ""
            fine = all(part in said for part in (text, "on replica 1 at step", where))
            yield held(f"check_numerics: {function.__name__}", fine, said[:160])
        fine_loss = strategy.run(_fine, args=(w,)).values
        yield held("check_numerics: finite steps run", len(fine_loss) == 2, str(fine_loss[0])[:60])
    finally:
        wb.debugging.disable_check_numerics()
    yield from _costs(wb, strategy)


def _costs(wb: Any, strategy: Any) -> Iterator[Row]:
    """What the checks add to a training step with two layers and 256 rows."""
    random = np.random.default_rng(1)
    with strategy.scope():
        weights = [
            wb.Variable((0.01 * random.standard_normal(shape)).astype(np.float32), aggregation="SUM")
            for shape in ((784, 512), (512, 10))
        ]
    images = random.random((256, 784), np.float32)

    @wb.function
    def train(images: Any) -> Any:
        xp, _ = _place(0)
        first, second = (xp.asarray(w.read_value()) for w in weights)
        x = xp.asarray(images)
        hidden = xp.tanh(x @ first)
        error = (hidden @ second - 1) / len(x)
        gradient = x.T @ (error @ second.T * (1 - hidden * hidden)), hidden.T @ error
        totals = wb.distribute.get_replica_context().all_reduce("sum", gradient)
        for w, total in zip(weights, totals, strict=True):
            w.assign_sub(np.float32(0.01) * total)
        return (error * error).sum()

    def milliseconds() -> float:
        times = []
        for _ in range(25):
            began = time.perf_counter()
            strategy.local_results(strategy.run(train, args=(images,)))
            times.append(time.perf_counter() - began)
        return 1e3 * float(np.median(times[5:]))

    plain = milliseconds()
    wb.debugging.enable_check_numerics()
    try:
        checked = milliseconds()
    finally:
        wb.debugging.disable_check_numerics()
    found = f"{checked:.2f} ms, {plain:.2f} ms without: {checked / plain:.1f} ×"
    replicas = strategy.num_replicas_in_sync
    shared = f"{replicas} replicas share the GPU" if replicas > 1 else "a replica has the GPU"
    yield Row(f"check_numerics: a training step, {shared}", "noted", found, "<= 2 ×")


def _programs(w: Any) -> dict[Callable[..., Any], str]:
    """Functions that go wrong on replica 1 in the fourth step; the error, and the line that it names."""

    def of_a_function(k: int) -> Any:
        xp, bad = _place(k)
        x = xp.ones(5, np.float32)
        x[2] = -1.0 if bad else 1.0
        loss = xp.log(x)
        return loss.sum()

    def of_a_matmul(k: int) -> Any:
        xp, bad = _place(k)
        big = xp.full((8, 8), 3e38 if bad else 1.0, np.float32)
        product = big @ big
        return product.sum()

    def of_a_view(k: int) -> Any:
        xp, bad = _place(k)
        table = xp.ones((6, 6), np.float32)
        column = table.T[::2]
        column /= xp.float32(0.0 if bad else 1.0)
        return table.sum()

    def in_half_precision(k: int) -> Any:
        xp, bad = _place(k)
        x = xp.full(9, 6e4 if bad else 1.0, np.float16)
        x *= 4
        return x.sum()

    def in_a_collective(k: int) -> Any:
        import workbench as wb

        xp, bad = _place(k)
        return wb.distribute.get_replica_context().all_reduce("sum", xp.ones(3) * (np.nan if bad else 1.0))

    def in_a_variable(k: int) -> Any:
        xp, bad = _place(k)
        w.assign_add(xp.ones((4, 4), np.float32) * xp.float32(np.nan if bad else 0.0))

    return {
        of_a_function: "a NaN | loss = xp.log(x)",
        of_a_matmul: "an infinity | product = big @ big",
        of_a_view: "an infinity | column /= ",
        in_half_precision: "an infinity | x *= 4",
        in_a_collective: "is not finite",
        in_a_variable: "is not finite",
    }


def _place(k: int) -> tuple[Any, bool]:
    import workbench as wb

    context: Any = wb.distribute.get_replica_context()
    return context.xp, (context.replica_id_in_sync_group, k) == (1, 3)


def _fine(w: Any) -> Any:
    xp, _ = _place(0)
    mask = xp.zeros(4, np.float32)
    with np.errstate(all="ignore"):
        mask[1:] = -np.inf
    weights = xp.exp(mask)
    return (xp.asarray(w.read_value()) @ weights).sum()


def _stops(strategy: Any, function: Callable[..., Any]) -> str:
    import workbench as wb

    for k in range(5):
        try:
            strategy.run(function, args=(k,))
        except wb.errors.InvalidArgumentError as error:
            return f"{error}" if k == 3 else f"in step {k} already: {error}"
    return "nothing was noticed"


def _line_of(function: Callable[..., Any], text: str) -> int:
    source, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(source) if text in line)


def dumps(quick: bool) -> Iterator[Row]:
    """Every debug mode of dumps over a step whose collective and variable get a NaN on the GPU."""
    import workbench as wb

    with wb.connect(gpu_replicas=2):
        yield from dumps_on(wb)


def dumps_on(wb: Any) -> Iterator[Row]:
    """The same on the devices that are connected."""
    wrong, said = [], ""
    strategy = wb.MirroredStrategy()
    with strategy.scope():
        w = wb.Variable(np.zeros(4, np.float32), name="w")

    def step(k: int) -> None:
        context: Any = wb.distribute.get_replica_context()
        xp, bad = _place(k)
        w.assign(context.all_reduce("sum", xp.ones(4, np.float32) * (np.nan if bad else 1.0)))

    for mode in MODES:
        with tempfile.TemporaryDirectory() as folder:
            wb.debugging.experimental.enable_dump_debug_info(folder, tensor_debug_mode=mode)
            for k in range(5):
                strategy.run(step, args=(k,))
            wb.debugging.experimental.disable_dump_debug_info()
            said = str(wb.open_dump(folder))
        if "all_reduce" not in said or ("HEALTH" in mode and "first NaN" not in said):
            wrong.append(f"{mode}: {said[:200]}")
    yield held("dumps of GPU arrays", not wrong, f"{len(MODES)} modes, wrong: {wrong[:1] or 'none'}")
