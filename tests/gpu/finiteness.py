"""Checks that collectives of GPU arrays tell which replica gave what is not finite, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.gpu import programs
from tests.gpu.cases import dtypes
from tests.gpu.kernels import milliseconds
from tests.gpu.results import Row, held
from workbench.backends import cupy as gpu
from workbench.backends.numpy import can_be_infinite


def flags_of_kernels(quick: bool) -> Iterator[Row]:
    """Each source that has NaN or infinity is flagged, and no other, wherever the number is."""
    wrong, tried = [], 0
    for dtype in dtypes():
        for buffers, count, shift in ((1, 7, 0), (3, 1001, 0), (5, 1001, 1), (19, 257, 0)):
            for value in (np.nan, np.inf, -np.inf) if can_be_infinite(dtype) else (1,):
                for bad in {0, buffers // 2, buffers - 1}:
                    place = (bad * 7 + 3) % count
                    wanted = [int(k == bad and can_be_infinite(dtype)) for k in range(buffers)]
                    found = _flagged(dtype, buffers, count, shift=shift, at=(bad, place), value=value)
                    tried += 1
                    if any(flags != wanted for flags in found.values()):
                        wrong.append(f"{dtype.name} {buffers}x{count}+{shift} {value}: {found}")
    yield held("not finite, by source", not wrong, f"{tried} cases, wrong: {', '.join(wrong[:3]) or 'none'}")


def _flagged(
    dtype: np.dtype, buffers: int, count: int, *, shift: int, at: tuple[int, int], value: float
) -> dict[str, list[int]]:
    """The flags that each kernel sets for buffers of ones with `value` at one place."""
    host = np.ones((buffers, count + shift), dtype)
    host[at[0], at[1] + shift] = value
    sources = [gpu.array(row)[shift:] for row in host]
    found = {}
    for op in ("sum", "max") if dtype.kind != "c" else ("sum",):
        found[op] = gpu.accelerator.flags.take(buffers)
        target = gpu.accelerator.empty(count, dtype)
        gpu.accelerator.combine(op, sources, [target], flags=_address(found[op]))
    if can_be_infinite(dtype):
        found["alone"] = gpu.accelerator.flags.take(buffers)
        for source, flag in zip(sources, range(buffers), strict=True):
            gpu.accelerator.flag_not_finite(source, _address(found["alone"]) + 4 * flag)
    gpu.to_host(target)  # waits for the last kernel's stream, which all kernels use
    lists = {name: taken.words.tolist() for name, taken in found.items()}
    for taken in found.values():
        gpu.accelerator.flags.give_back(taken)
    return lists


def _address(taken: Any) -> int:
    assert taken is not None, "there are no free words"
    return int(taken.address)


def looking_costs(quick: bool) -> Iterator[Row]:
    """The fused kernel where all sources are finite and where all are full of NaN; the kernel that only looks."""
    cupy = gpu.namespace()
    total = (1 << 28) if quick else min(4 << 30, gpu.memory(0).free // 4)
    rounds = 5 if quick else 20
    for buffers, written in ((2, 1), (8, 1), (8, 8)):
        count = total // (buffers + written) // 4 // 16 * 16
        targets = [gpu.accelerator.empty(count, np.dtype(np.float32)) for _ in range(written)]
        taken = gpu.accelerator.flags.take(buffers)
        times = {}
        for name, value in (("finite", 0.0), ("NaN", np.nan)):
            sources = [cupy.full(count, value, np.float32) for _ in range(buffers)]
            work = partial(gpu.accelerator.combine, "sum", sources, targets, flags=_address(taken))
            times[name] = milliseconds(work, rounds)
        gpu.accelerator.flags.give_back(taken)
        cupy.get_default_memory_pool().free_all_blocks()
        found = ", ".join(f"{name} {time:.3f} ms" for name, time in times.items())
        fine = quick or times["NaN"] < 2 * times["finite"]
        yield held(f"sum of NaN, {buffers} to {written}", fine, found, "<= twice as long")
    array = cupy.zeros(total // 4, np.float32)
    taken = gpu.accelerator.flags.take(1)
    time = milliseconds(partial(gpu.accelerator.flag_not_finite, array, _address(taken)), rounds)
    gpu.accelerator.flags.give_back(taken)
    peak, found_speed = gpu.accelerator.bytes_per_ns(0), array.nbytes / time / 1e6
    text = f"{found_speed:,.0f} GB/s; the device says at most {peak:,.0f}"
    yield held("reading for NaN, alone", quick or found_speed > 0.6 * peak, text, ">= 60 % of that")


def first_nan(quick: bool) -> Iterator[Row]:
    """One replica's NaN, which all copies have afterwards: text and line are those of the same program on CPUs."""
    import workbench as wb

    said = {}
    for name, options in {"NumPy": {"replicas": 2, "gpus": 0}, "CuPy": {"gpu_replicas": 2}}.items():
        with wb.connect(**options):
            said[name] = programs.spoilt_by_one(wb)
    fine = said["NumPy"] == said["CuPy"] and "replica 1 gave it to all_reduce" in said["CuPy"]
    yield held("the first NaN, NumPy and CuPy", fine, f"{said['CuPy']!r}, on CPUs {said['NumPy']!r}")
