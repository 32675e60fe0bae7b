"""GPUs made of threads: arrays that only a stream may touch, FIFO streams, events with times of their own.

It takes the place of `backends/cupy.py` behind the `Accelerator` seam. What is queued runs later, on the stream's own
thread, so code that forgets to order two streams reads garbage here too: memory is filled with it when it is made.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.communicators import simulated_nccl
from workbench.backends import numpy as backend
from workbench.backends.accelerator import GpuIdentity
from workbench.backends.cupy import DTYPES
from workbench.backends.flags import FLAG, Flags
from workbench.backends.numpy import can_be_infinite

DEADLINE_SECONDS = 60.0
_live: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""Device memory in use, by address."""


class DeviceError(RuntimeError):
    """What CuPy would call a CUDARuntimeError."""


class Stream:
    """Runs what is queued in order, on its own thread, which ends when nothing is left and nobody asks."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.running = False
        self.ptr = id(self)
        simulated_nccl.STREAMS[self.ptr] = self

    def submit(self, job: Callable[[], None]) -> None:
        with self.lock:
            self.jobs.put(job)
            if not self.running:
                self.running = True
                threading.Thread(target=self._run, name="simulated-stream", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self.lock:
                if self.jobs.empty():
                    self.running = False
                    return
                job = self.jobs.get_nowait()
            with np.errstate(all="ignore"):  # GPUs do not warn
                job()

    def synchronize(self) -> None:
        done = threading.Event()
        self.submit(done.set)
        assert done.wait(DEADLINE_SECONDS), "a simulated stream hangs"


class Event:
    """Happens when a stream gets to where it was recorded."""

    def __init__(self) -> None:
        self.happened = threading.Event()
        self.happened.set()
        self.at_ns = 0

    def happen(self, flag: threading.Event) -> None:
        self.at_ns = time.monotonic_ns()
        flag.set()


class SimArray:
    """An array in "device memory": a view of it is another; its elements are out of reach but for `get`."""

    def __init__(self, data: np.ndarray, ordinal: int) -> None:
        self.data = data
        self.device = ordinal

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self.data.shape)
    size = property(lambda self: self.data.size)
    ndim = property(lambda self: self.data.ndim)
    nbytes = property(lambda self: self.data.nbytes)

    def reshape(self, *shape: Any) -> SimArray:
        assert self.data.flags.c_contiguous
        return SimArray(self.data.reshape(*shape), self.device)

    def view(self, dtype: Any) -> SimArray:
        assert self.data.flags.c_contiguous
        return SimArray(self.data.reshape(-1).view(dtype), self.device)

    def __getitem__(self, key: slice) -> SimArray:
        return SimArray(self.data[key], self.device)


class SimulatedGpus:
    """`Accelerator` over such arrays. Each thread has a default stream of its own per device.

    Args of the constructor:
      uuids: The GPU behind each ordinal; the same twice is one GPU that is seen as two.
    """

    def __init__(self, uuids: Sequence[str] = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")) -> None:
        self.uuids = tuple(uuids)
        self.nccl = simulated_nccl
        self.fails = False  # every query raises, as after a sticky error
        self.free_bytes = 1 << 40
        self.local = threading.local()
        self.flags = Flags(np.zeros(256, FLAG))
        self.reads: list[int] = []  # sizes of what kernels have read only to find values that are not finite

    # -- what a test does --------------------------------------------------------------------------------------

    def put(self, array: Any, ordinal: int) -> SimArray:
        """A copy in device memory, there at once."""
        host = np.asarray(backend.view(array))
        _refuse_foreign(host.dtype.newbyteorder("="))
        return SimArray(_tracked(np.array(host, host.dtype.newbyteorder("="), order="K")), ordinal)

    def get(self, array: SimArray) -> np.ndarray:
        """A copy, once the thread's current stream has got here."""
        stream = self.current(array.device)
        stream.synchronize()
        return np.array(array.data)

    # -- Accelerator -------------------------------------------------------------------------------------------

    def owns(self, x: Any) -> bool:
        return isinstance(x, SimArray)

    def view(self, x: Any) -> Any:
        return x

    def described(self, x: Any) -> Any:
        return x

    def handed_over(self, described: Sequence[Any]) -> Sequence[Any]:
        return described

    def like(self, array: Any, original: Any) -> Any:
        return array

    def ordinal(self, array: Any) -> int:
        return int(array.device)

    def identity(self, ordinal: int) -> GpuIdentity:
        # The PCI order differs from that of the ordinals, because nothing may rely on it.
        return GpuIdentity(self.uuids[ordinal], f"0000:{99 - ordinal:02x}:00.0", "Simulated")

    @contextmanager
    def on(self, ordinal: int, stream: Any = None) -> Iterator[None]:
        before = self.place()
        self.local.place = (ordinal, stream)
        try:
            yield
        finally:
            self.local.place = before

    def place(self) -> tuple[int, Stream | None]:
        here: tuple[int, Stream | None] = getattr(self.local, "place", (0, None))
        return here

    def current(self, ordinal: int | None = None) -> Stream:
        here, stream = self.place()
        if stream is not None and ordinal in (None, here):
            return stream
        defaults = self.local.__dict__.setdefault("defaults", {})
        number = here if ordinal is None else ordinal
        if number not in defaults:
            defaults[number] = Stream(number)
        return defaults[number]

    def stream(self) -> Stream:
        return Stream(self.place()[0])

    def stream_pointer(self, stream: Any) -> int:
        return int(stream.ptr)

    def event(self, *, timed: bool = True) -> Event:
        return Event()

    def record(self, event: Event) -> None:
        flag = event.happened = threading.Event()
        self.current().submit(lambda: event.happen(flag))

    def wait(self, event: Event) -> None:
        flag = event.happened
        stream = self.current()
        stream.submit(lambda: simulated_nccl.wait_on_stream(flag))

    def done(self, event: Event) -> bool:
        if self.fails:
            raise DeviceError("an illegal memory access was encountered")
        return event.happened.is_set()

    def elapsed_ns(self, first: Event, second: Event) -> int:
        assert first.happened.is_set()
        assert second.happened.is_set()
        return second.at_ns - first.at_ns

    def empty(self, count: int, dtype: np.dtype) -> SimArray:
        _refuse_foreign(np.dtype(dtype))
        ordinal = self.place()[0]
        data = _tracked(np.empty(count, dtype))
        data.reshape(-1).view(np.uint8)[:] = 0xA5
        return SimArray(data, ordinal)

    def flat(self, arrays: Sequence[SimArray], dtype: np.dtype) -> SimArray:
        first = arrays[0]
        if len(arrays) == 1 and first.data.flags.c_contiguous and first.dtype == dtype:
            return SimArray(first.data.reshape(-1), first.device)
        whole = self.empty(sum(array.size for array in arrays), np.dtype(dtype))

        def fill() -> None:
            at = 0
            for array in arrays:
                whole.data[at : at + array.size] = array.data.reshape(-1).astype(dtype)
                at += array.size

        self.current().submit(fill)
        return whole

    def concatenate(self, parts: Sequence[SimArray], axis: int) -> SimArray:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        whole = self.empty(int(np.prod(shape)), parts[0].dtype).reshape(shape)
        self.current().submit(lambda: np.concatenate([part.data for part in parts], axis, out=whole.data))
        return whole

    def pointer(self, array: SimArray) -> int:
        assert array.data.flags.c_contiguous
        return array.data.ctypes.data

    def copy(self, source: SimArray, target: SimArray) -> None:
        self.current().submit(lambda: np.copyto(target.data, source.data, casting="same_kind"))

    def combine(
        self,
        op: str,
        sources: Sequence[SimArray],
        targets: Sequence[SimArray],
        *,
        mean_over: int = 0,
        flags: int = 0,
    ) -> None:
        def run() -> None:
            for k, source in enumerate(sources):
                if flags and not _is_finite(source):
                    _set(flags + k * FLAG.itemsize)
            wide = backend.accumulator(sources[0].dtype, op)
            total = sources[0].data.astype(wide)
            for source in sources[1:]:
                total = backend.ufunc(op)(total, source.data.astype(wide))
            if mean_over:
                total = total / wide.type(mean_over)
            for target in targets:
                target.data[...] = total.astype(target.dtype)

        self.current().submit(run)

    def flag_not_finite(self, array: SimArray, flag: int) -> None:
        self.reads.append(array.size)

        def run() -> None:
            if not _is_finite(array):
                _set(flag)

        self.current().submit(run)

    def bytes_per_ns(self, ordinal: int) -> float:
        return 1000.0

    def divide(self, array: SimArray, by: int) -> None:
        self.current().submit(lambda: np.divide(array.data, array.dtype.type(by), out=array.data))

    def ordered(self, array: SimArray, op: str) -> SimArray:
        integers = self.empty(array.size, np.dtype(f"i{array.dtype.itemsize}"))

        def run() -> None:
            info = np.iinfo(integers.dtype)
            bits = array.data.reshape(-1).view(integers.dtype)
            encoded = np.where(bits < 0, bits ^ info.max, bits)
            integers.data[:] = np.where(np.isnan(array.data), info.max if op == "max" else info.min, encoded)

        self.current().submit(run)
        return integers

    def unordered(self, array: SimArray, op: str) -> None:
        def run() -> None:
            floats = array.data.reshape(-1).view(f"f{array.dtype.itemsize}")
            bits = floats.view(f"i{array.dtype.itemsize}")
            info = np.iinfo(bits.dtype)
            lost = bits == (info.max if op == "max" else info.min)
            bits[:] = np.where(bits < 0, bits ^ info.max, bits)
            floats[lost] = np.nan

        self.current().submit(run)


def _is_finite(array: SimArray) -> bool:
    return not can_be_infinite(array.dtype) or bool(np.isfinite(array.data).all())


def _set(flag: int) -> None:
    """Kernels get only an address."""
    ctypes.c_uint32.from_address(flag).value = 1


def _refuse_foreign(dtype: np.dtype) -> None:
    """CuPy has no other dtypes."""
    if dtype.name not in DTYPES or not dtype.isnative:
        raise ValueError(f"Unsupported dtype {dtype}")


def _tracked(data: np.ndarray) -> np.ndarray:
    """`data`, whose memory NCCL may be given while something refers to it."""
    _live[data.ctypes.data] = data
    return data


def memory_at(pointer: int, nbytes: int) -> np.ndarray:
    """The bytes at an address: NCCL gets nothing else. Of memory that is not in use any more it gets garbage."""
    for address, owner in list(_live.items()):
        if address <= pointer and pointer + nbytes <= address + owner.nbytes:
            flat = owner.reshape(-1, order="A").view(np.uint8)
            return flat[pointer - address : pointer - address + nbytes]
    return np.full(nbytes, 0x5A, np.uint8)
