"""Checks of times in the telemetry, and of what it costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.gpu.kernels import milliseconds
from tests.gpu.replicas import alone
from tests.gpu.results import Row, held
from tests.telemetry.reading import records
from workbench.backends import cupy as gpu
from workbench.communicators import Reduction
from workbench.telemetry.recording.ring import Ring


def event_timing(quick: bool) -> Iterator[Row]:
    """Times in the telemetry against the clock around a synchronised call."""
    cupy, ring = gpu.namespace(), Ring(replica=0)
    communicator = alone(ring)
    # Milliseconds, because launching and waiting take some 20 µs, which the record must leave out.
    array = cupy.ones(min(1 << 32, gpu.memory(0).free // 16) // 4, np.float32)
    ratios, durations = [], []
    for step in range(8):
        communicator.begin(step)
        cupy.cuda.Device().synchronize()
        began = time.monotonic_ns()
        communicator.all_reduce([array], Reduction("sum"))
        cupy.cuda.Device().synchronize()
        ended = time.monotonic_ns()
        communicator.finish()
        record = records(ring)[-1]
        # The clock includes the launch; the record's own end must be exact.
        ratios.append((record.t_end_ns - began) / (ended - began))
        durations.append((record.t_end_ns - record.t_start_ns) / 1e6)
    communicator.close()
    middle = statistics.median(ratios[2:])
    found = f"the record ends at {middle:.1%} of the clock's time"
    yield held("event timing against the clock", 0.95 <= middle <= 1.02, found, "95 to 102 %")
    target = gpu.accelerator.empty(array.size, array.dtype)
    kernel = milliseconds(partial(gpu.accelerator.combine, "sum", [array], [target]), 5)
    found = f"{statistics.median(durations[2:]):.3f} ms in the record, {kernel:.3f} ms the kernel alone"
    yield Row("duration in the telemetry", "noted", found)


def nothing_waits(quick: bool) -> Iterator[Row]:
    """A collective behind much work returns before that is done, although it is timed."""
    cupy = gpu.namespace()
    communicator = alone(Ring(replica=0))
    array = cupy.ones(1 << 20, np.float32)
    source = cupy.ones(min(1 << 28, gpu.memory(0).free // 16), np.uint8)
    target = cupy.empty_like(source)
    for step in range(2):  # the first call compiles, and fills the pool
        communicator.begin(step)
        before = cupy.cuda.Event()
        for _ in range(400 if step else 0):
            cupy.copyto(target, source)
        before.record()
        communicator.all_reduce([array], Reduction("sum"))
        waited = bool(before.done)
        communicator.finish()
    communicator.close()
    found = "returned after the work before it" if waited else "returned while earlier work was still running"
    yield held("a collective is queued, not waited for", not waited, found)


def telemetry_overhead(quick: bool) -> Iterator[Row]:
    """Steps with and without telemetry, in turns: a dense layer of 25 million weights, of which 100 MB are reduced."""
    cupy = gpu.namespace()
    rows, weights = cupy.ones((1024, 5000), np.float32), cupy.ones((5000, 5000), np.float32)
    pairs = {"on": alone(Ring(replica=0)), "off": alone(None)}
    times: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(10 if quick else 300):
        for name, communicator in pairs.items():
            began = time.perf_counter()
            communicator.begin(turn)
            (rows @ weights) @ weights.T  # forward, and back to the layer below
            communicator.all_reduce([rows.T @ rows], Reduction("sum"))
            communicator.finish()
            times[name].append(time.perf_counter() - began)
    for communicator in pairs.values():
        communicator.close()
    on, off = (statistics.median(times[name][3:]) * 1e6 for name in ("on", "off"))
    found = f"{on:,.0f} µs with, {off:,.0f} µs without: {on - off:+.0f} µs, {on / off - 1:+.1%}"
    yield held("overhead of telemetry", quick or on <= 1.02 * off, found, "<= 1 % (2 % noise)")
