"""The checks, each a function of "quick or not" that gives rows; `ALL` names them in the order in which they run."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.gpu import programs
from tests.gpu.results import Row, Skip, held
from workbench.backends import cuda_source
from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend
from workbench.collectives import Bootstrap, Gpus, Member, Topology
from workbench.telemetry.ring import Ring

Check = Callable[[bool], Iterable[Row]]
OPS = ("sum", "mean", "min", "max", "prod")
DEADLINE_SECONDS = 60.0


def hardware() -> dict[str, Any]:
    """What the results belong to."""
    cupy = gpu.namespace()
    memory = gpu.memory(0)
    try:
        nccl = gpu.accelerator.nccl.get_version()
    except Exception as error:
        nccl = f"none ({error})"
    return {
        "gpus": [gpu.accelerator.identity(i).name for i in range(cupy.cuda.runtime.getDeviceCount())],
        "memory_bytes": memory.total,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "nccl": nccl,
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
    }


def dtypes() -> list[np.dtype]:
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    )
    found = [np.dtype(name) for name in names.split()]
    try:
        import ml_dtypes

        gpu.array(np.ones(2, ml_dtypes.bfloat16))
    except Exception as error:
        print(f"bfloat16 is left out: {error}")
        return found
    return [*found, np.dtype(ml_dtypes.bfloat16)]


def values(seed: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Small integers, which every order of combining treats alike; a NaN among floats."""
    found = ((np.arange(count) * 7 + seed * 3) % 5).astype(dtype)
    if dtype.kind in "fcV" and count > 3:
        found[seed % count] = np.nan
    return found


def expected(op: str, arrays: list[np.ndarray]) -> np.ndarray:
    wide = backend.accumulator(arrays[0].dtype, op)
    total = arrays[0].astype(wide)
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            total = backend.ufunc(op)(total, array.astype(wide))
        total = total / wide.type(len(arrays)) if op == "mean" else total
        return total.astype(backend.mean_dtype(arrays[0].dtype) if op == "mean" else arrays[0].dtype)


def same(found: Any, want: np.ndarray) -> bool:
    host = gpu.to_host(found)
    if host.dtype != want.dtype or host.shape != want.shape:
        return False
    if want.dtype.kind == "c":
        return bool(
            (np.isnan(host) == np.isnan(want)).all()
            and np.allclose(host[~np.isnan(want)], want[~np.isnan(want)])
        )
    wide = np.float64 if want.dtype.kind in "fV" else want.dtype
    return bool(np.array_equal(host.astype(wide), want.astype(wide), equal_nan=want.dtype.kind in "fV"))


# -- the fused kernel


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
        found, want = gpu.summary(gpu.array(host)), backend.summary(host)
        exact = ("zeros", "nan", "inf", "shape", "dtype")
        wrong += [f"{dtype.name}.{name}" for name in exact if getattr(found, name) != getattr(want, name)]
        wrong += [
            f"{dtype.name}.{name}"
            for name in ("mean", "std", "min", "max", "l2")
            if not np.isclose(getattr(found, name), getattr(want, name), rtol=1e-5, equal_nan=True)
        ]
    yield held("summaries against NumPy", not wrong, f"wrong: {', '.join(wrong[:5]) or 'none'}")


# -- NCCL


def nccl_one_rank(quick: bool) -> Iterator[Row]:
    """A real communicator of one rank: every call that we make, every dtype; it shows signatures and constants."""
    from workbench.collectives.gpu_work import Work
    from workbench.collectives.nccl import NcclOps, wire_dtype

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
    ops.close()  # a second abort must do nothing
    other = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
    other.destroy()
    yield held("NCCL abort and destroy", True, "both returned")


def nccl_two_ranks(quick: bool) -> Iterator[Row]:
    """Two processes on the one GPU, which NCCL allows since 2.30 when asked."""
    version = gpu.accelerator.nccl.get_version()
    if version < 23000:
        raise Skip(f"NCCL {version} refuses two ranks on one GPU; 2.30 and later can")
    yield from _two_processes({"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, "two ranks on one GPU")


def nccl_two_gpus(quick: bool) -> Iterator[Row]:
    """A process per GPU."""
    count = gpu.namespace().cuda.runtime.getDeviceCount()
    if count < 2:
        raise Skip(f"needs 2 GPUs, this machine has {count}")
    yield from _two_processes({}, "a process per GPU")


def _two_processes(environment: dict[str, str], name: str) -> Iterator[Row]:
    command = [sys.executable, "-m", "tests.gpu.two_ranks", "shared" if environment else "own"]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=180, check=False
    )
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]
    yield held(f"NCCL, {name}", done.returncode == 0, last[:100])


def grouped_gpus(quick: bool) -> Iterator[Row]:
    """Replicas of one process on GPUs of their own."""
    count = gpu.namespace().cuda.runtime.getDeviceCount()
    if count < 2:
        raise Skip(f"needs 2 GPUs, this machine has {count}")
    wrong = _threads(2, {0: 0, 1: 1})
    yield held("grouped NCCL, one process", not wrong, f"wrong: {wrong[:3] or 'none'}")


# -- replicas that share the GPU


def _threads(size: int, ordinals: dict[int, int]) -> list[str]:
    """Collectives of all kinds between threads of this process; what was wrong."""
    bootstrap = Bootstrap(
        Topology([Member(rank, "a", "p") for rank in range(size)]), "p", gpus=Gpus(ordinals, gpu.accelerator)
    )
    communicators = bootstrap.connect({"p": bootstrap.address})
    wrong: list[str] = []

    def work(rank: int) -> None:
        try:
            gpu.use(ordinals[rank])
            wrong.extend(programs.collectives(communicators[rank], dtypes(), values, expected, same))
        except Exception as error:
            wrong.append(f"replica {rank}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        if thread.is_alive():
            wrong.append("hang")
    for communicator in communicators.values():
        communicator.close()
    return wrong


def shared_gpu(quick: bool) -> Iterator[Row]:
    """Logical replicas against NumPy."""
    for size in (1, 2, 4):
        wrong = _threads(size, dict.fromkeys(range(size), 0))
        yield held(f"{size} replicas on one GPU", not wrong, f"wrong: {wrong[:3] or 'none'}")


# -- telemetry


def _alone(ring: Ring | None) -> Any:
    rings = {} if ring is None else {0: ring}
    bootstrap = Bootstrap(
        Topology([Member(0, "a", "p")]), "p", rings=rings, gpus=Gpus({0: 0}, gpu.accelerator)
    )
    return bootstrap.connect({"p": bootstrap.address})[0]


def event_timing(quick: bool) -> Iterator[Row]:
    """Times in the telemetry against the clock around a synchronised call."""
    cupy, ring = gpu.namespace(), Ring(replica=0)
    communicator = _alone(ring)
    array = cupy.ones(min(1 << 28, gpu.memory(0).free // 16) // 4, np.float32)
    ratios = []
    for step in range(8):
        communicator.begin(step)
        cupy.cuda.Device().synchronize()
        began = time.monotonic_ns()
        communicator.all_reduce([array], "sum")
        cupy.cuda.Device().synchronize()
        ended = time.monotonic_ns()
        communicator.finish()
        record = ring.recent()[-1]
        # The clock also sees the launch; the record's own end is what must not be off.
        ratios.append((record.t_end_ns - began) / (ended - began))
    communicator.close()
    middle = statistics.median(ratios[2:])
    found = f"the record ends at {middle:.1%} of the clock's time"
    yield held("event timing against the clock", 0.95 <= middle <= 1.02, found, "95 to 102 %")


def telemetry_overhead(quick: bool) -> Iterator[Row]:
    """Steps with and without telemetry, in turns."""
    cupy = gpu.namespace()
    array = cupy.ones(25_000_000, np.float32)  # 100 MB of gradients
    pairs = {"on": _alone(Ring(replica=0)), "off": _alone(None)}
    times: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(10 if quick else 60):
        for name, communicator in pairs.items():
            began = time.perf_counter()
            communicator.begin(turn)
            communicator.all_reduce([array], "sum")
            communicator.finish()
            times[name].append(time.perf_counter() - began)
    for communicator in pairs.values():
        communicator.close()
    on, off = (statistics.median(times[name][3:]) for name in ("on", "off"))
    found = f"{on * 1e6:,.0f} µs with, {off * 1e6:,.0f} µs without: {on / off - 1:+.1%}"
    yield held("overhead of telemetry", quick or on <= 1.02 * off, found, "<= 1 % (2 % noise)")


# -- other libraries, training


def torch_tensors(quick: bool) -> Iterator[Row]:
    """Tensors on the GPU go in without a copy and come back as tensors."""
    try:
        import torch
    except ImportError as error:
        raise Skip("PyTorch is not installed") from error
    if not torch.cuda.is_available():
        raise Skip("this PyTorch has no CUDA")
    communicator = _alone(None)
    wrong = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.complex64):
        tensor = torch.arange(10, device="cuda").to(dtype)
        (result,) = communicator.all_reduce([tensor], "sum")
        if type(result) is not torch.Tensor or result.dtype != dtype or not torch.equal(result, tensor):
            wrong.append(str(dtype))
        if result.data_ptr() == tensor.data_ptr():
            wrong.append(f"{dtype} is not owned")
    weight = torch.ones(3, device="cuda", requires_grad=True)
    (weight**2).sum().backward()
    (gradient,) = communicator.all_reduce([weight.grad], "mean")
    if gradient.tolist() != [2.0, 2.0, 2.0]:
        wrong.append("gradient")
    communicator.close()
    yield held("PyTorch tensors on the GPU", not wrong, f"wrong: {wrong or 'none'}")


def jax_arrays(quick: bool) -> Iterator[Row]:
    """Arrays of JAX on the GPU, in a process of their own: JAX must not take all memory."""
    code = (
        "import jax, numpy as np; from tests.gpu import checks\n"
        "assert jax.devices()[0].platform == 'gpu', jax.devices()\n"
        "c = checks._alone(None); x = jax.numpy.arange(10.0)\n"
        "(y,) = c.all_reduce([x], 'sum'); c.finish(); c.close()\n"
        "assert isinstance(y, jax.Array) and (np.asarray(y) == np.arange(10.0)).all(); print('right')"
    )
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise Skip("JAX is not installed") from error
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if "assert jax.devices()" in done.stderr:
        raise Skip("this JAX has no CUDA")
    yield held("JAX arrays on the GPU", done.returncode == 0, (done.stdout or done.stderr[-80:]).strip())


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


ALL: dict[str, Check] = {
    "fused-correctness": fused_correctness,
    "fused-bandwidth": fused_bandwidth,
    "summaries": summaries,
    "nccl-one-rank": nccl_one_rank,
    "nccl-two-ranks": nccl_two_ranks,
    "nccl-two-gpus": nccl_two_gpus,
    "grouped-gpus": grouped_gpus,
    "shared-gpu": shared_gpu,
    "event-timing": event_timing,
    "telemetry-overhead": telemetry_overhead,
    "torch": torch_tensors,
    "jax": jax_arrays,
    "training": training,
    "errors": errors,
}
assert cuda_source.MOST_BUFFERS < 19, "fused_correctness must take more buffers than a launch does"
