"""Checks of the fused kernel and of the kernel behind summaries."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tests.gpu.cases import OPS, dtypes, expected, same, values
from tests.gpu.results import Row, held
from workbench.backends import cuda_source, cupy_contents
from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.backends.summary import summary


def fused_correctness(quick: bool) -> Iterator[Row]:
    """Every op and dtype, odd sizes, pointers off 16-byte boundaries, more buffers than one launch takes."""
    wrong, tried = [], 0
    for dtype in dtypes():
        for op in OPS:
            for buffers, count, shift in ((1, 7, 0), (3, 1001, 0), (5, 1001, 1), (19, 257, 0), (2, 0, 0)):
                hosts = [values(k, count + shift, dtype)[shift:] for k in range(buffers)]
                sources = [
                    gpu.array(np.concatenate([host[:1].repeat(shift), host]))[shift:] for host in hosts
                ]
                want = expected(op, hosts)
                targets = [gpu.accelerator.empty(count, want.dtype) for _ in range(2)]
                gpu.accelerator.combine(op, sources, targets, mean_over=buffers if op == "mean" else 0)
                tried += 1
                if not all(same(target, want) for target in targets):
                    wrong.append(f"{op} {dtype.name} {buffers}x{count}+{shift}")
    yield held(
        "fused kernel against NumPy", not wrong, f"{tried} cases, wrong: {', '.join(wrong[:4]) or 'none'}"
    )
    sources = [
        gpu.array(np.random.default_rng(k).standard_normal(100_003).astype(np.float32)) for k in range(8)
    ]
    digests = set()
    for _ in range(20):
        target = gpu.accelerator.empty(100_003, np.dtype(np.float32))
        gpu.accelerator.combine("sum", sources, [target])
        digests.add(gpu.to_host(target).tobytes())
    yield held(
        "fused kernel is deterministic", len(digests) == 1, f"{len(digests)} different results of 20 runs"
    )


def milliseconds(work: Callable[[], None], rounds: int) -> float:
    """Median time of `work` on the GPU."""
    cupy = gpu.namespace()
    times = []
    for _ in range(3):
        work()
    for _ in range(rounds):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        work()
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last))
    return statistics.median(times)


def fused_bandwidth(quick: bool) -> Iterator[Row]:
    """Bytes read and written per second, against a copy of as many bytes in the same process."""
    cupy = gpu.namespace()
    total = (1 << 28) if quick else min(4 << 30, gpu.memory(0).free // 4)
    rounds = 5 if quick else 20
    copied = _copy_speed(total, rounds)
    yield Row("copy bandwidth", "noted", f"{copied:,.0f} GB/s ({total >> 20:,} MiB read and written)")
    bars = {"float32": 0.90, "float64": 0.90, "float16": 0.85, "bfloat16": 0.85, "int8": 0.85}
    for name, bar in bars.items():
        dtype = backend.dtype_named(name)
        if dtype not in dtypes():
            continue
        for buffers, written in ((2, 1), (8, 1), (8, 8)):
            speed = _combine_speed(dtype, buffers, written, total, rounds)
            cupy.get_default_memory_pool().free_all_blocks()
            found = f"{speed:,.0f} GB/s, {speed / copied:.0%} of a copy"
            fine = quick or speed >= bar * copied
            yield held(f"fused sum {name} {buffers} to {written}", fine, found, f">= {bar:.0%}")


def _copy_speed(total: int, rounds: int) -> float:
    cupy = gpu.namespace()
    source, target = cupy.zeros(total // 2, np.uint8), cupy.zeros(total // 2, np.uint8)
    return total / milliseconds(partial(cupy.copyto, target, source), rounds) / 1e6


def _combine_speed(dtype: np.dtype, buffers: int, written: int, total: int, rounds: int) -> float:
    count = total // (buffers + written) // dtype.itemsize // 16 * 16
    sources = [gpu.namespace().zeros(count, dtype) for _ in range(buffers)]
    targets = [gpu.accelerator.empty(count, dtype) for _ in range(written)]
    moved = (buffers + written) * count * dtype.itemsize
    return moved / milliseconds(partial(gpu.accelerator.combine, "sum", sources, targets), rounds) / 1e6


def summaries(quick: bool) -> Iterator[Row]:
    """The summary kernel against NumPy."""
    wrong: list[str] = []
    for dtype in dtypes():
        host = values(1, 100_003, dtype)
        found, want = cupy_contents.summary(gpu.array(host)), summary(host)
        exact = ["zeros", "nan", "inf", "first_bad", "shape", "dtype"]
        if dtype.kind != "c":  # NumPy computes absolute values in the precision of the parts
            exact.append("histogram")
        wrong += [f"{dtype.name}.{name}" for name in exact if getattr(found, name) != getattr(want, name)]
        wrong += [
            f"{dtype.name}.{name}"
            for name in ("mean", "std", "min", "max", "l2")
            if not np.isclose(getattr(found, name), getattr(want, name), rtol=1e-5, equal_nan=True)
        ]
    yield held("summaries against NumPy", not wrong, f"wrong: {', '.join(wrong[:5]) or 'none'}")


assert cuda_source.MOST_BUFFERS < 19, "fused_correctness must take more buffers than a launch does"
