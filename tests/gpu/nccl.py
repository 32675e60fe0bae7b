"""Checks of real NCCL: alone, between processes, between GPUs of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from tests.gpu.cases import OPS, dtypes, same, values
from tests.gpu.hardware import count_gpus
from tests.gpu.replicas import threads_of
from tests.gpu.results import Row, Skip, held
from workbench.backends import cupy as gpu

ON_ONE_GPU = "NCCL, two ranks on one GPU"
PER_GPU = "NCCL, a process per GPU"
GROUPED = "grouped NCCL, one process"
SHARING_NCCL = 23000
"""The first version that allows several processes on one GPU, when asked."""
_SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"


def allow_sharing() -> None:
    """Asks NCCL for that, before the first process starts; but not where two processes on one GPU would be a fault."""
    if count_gpus() == 1:
        os.environ[_SHARING] = "1"


def no_sharing() -> str:
    """Why several processes cannot be on one GPU here, "" if they can."""
    version = gpu.accelerator.nccl.get_version()
    if version < SHARING_NCCL:
        return f"NCCL {version} refuses two ranks on one GPU; 2.30 and later can"
    return "" if os.environ.get(_SHARING) == "1" else "each process has a GPU of its own here"


def nccl_one_rank(quick: bool) -> Iterator[Row]:
    """A real communicator of one rank: every call that we make, every dtype; it shows signatures and constants."""
    from workbench.communicators.gpu.nccl import NcclOps, wire_dtype
    from workbench.communicators.gpu.work import Work

    accelerator = gpu.accelerator
    nccl = accelerator.nccl
    communicator = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
    ops = NcclOps(accelerator, {0: communicator}, {0: 0}, order=[0])
    stream = accelerator.stream()
    wrong, tried = [], 0
    for dtype in dtypes():
        for op in OPS:
            host = values(0, 1000, dtype).astype(wire_dtype(dtype, op))
            for kind in ("all_reduce", "reduce", "reduce_scatter"):
                source, target = gpu.array(host), accelerator.empty(1000, host.dtype)
                gpu.namespace().cuda.get_current_stream().synchronize()
                work = Work(0, None, 0, 0, 0, None, [source], [target], stream)  # type: ignore[arg-type]
                if kind == "all_reduce":
                    ops.all_reduce(op, [work])
                elif kind == "reduce":
                    ops.reduce(op, [work], 0)
                else:
                    ops.reduce_scatter(op, [work], [0, 1000])
                stream.synchronize()
                tried += 1
                if not same(target, host):
                    wrong.append(f"{kind} {op} {dtype.name}")
    byte = np.dtype(np.uint8)
    source, target = gpu.array(np.arange(200, dtype=np.uint8)), accelerator.empty(200, byte)
    gpu.namespace().cuda.get_current_stream().synchronize()
    for kind in ("all_gather", "broadcast"):
        work = Work(0, None, 0, 0, 0, None, [source], [target], stream)  # type: ignore[arg-type]
        ops.all_gather([work], [200]) if kind == "all_gather" else ops.broadcast([work], 0)
        stream.synchronize()
        tried += 1
        if not same(target, np.arange(200, dtype=np.uint8)):
            wrong.append(kind)
    error = ops.error()
    found = f"{tried} calls, wrong: {', '.join(wrong[:3]) or 'none'} {error}"
    yield held("NCCL, one rank, all ops and dtypes", not wrong and not error, found)
    ops.close()
    ops.close()  # the second time must do nothing
    other = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
    other.destroy()
    yield held("NCCL abort and destroy", True, "both returned")


def nccl_two_ranks(quick: bool) -> Iterator[Row]:
    """Two processes on the one GPU, which NCCL allows since 2.30 when asked."""
    if reason := no_sharing():
        raise Skip(reason, ON_ONE_GPU)
    yield from _two_processes("shared", ON_ONE_GPU)


def nccl_two_gpus(quick: bool) -> Iterator[Row]:
    """A process per GPU."""
    count = count_gpus()
    if count < 2:
        raise Skip(f"needs 2 GPUs, this machine has {count}", PER_GPU)
    yield from _two_processes("own", PER_GPU)


def _two_processes(gpus: str, name: str) -> Iterator[Row]:
    command = [sys.executable, "-m", "tests.gpu.two_ranks", gpus]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]
    yield held(name, done.returncode == 0, last[:100])


def grouped_gpus(quick: bool) -> Iterator[Row]:
    """Replicas of one process on GPUs of their own."""
    count = count_gpus()
    if count < 2:
        raise Skip(f"needs 2 GPUs, this machine has {count}", GROUPED)
    wrong = threads_of(2, {0: 0, 1: 1})
    yield held(GROUPED, not wrong, f"wrong: {wrong[:3] or 'none'}")
