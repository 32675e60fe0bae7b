"""Arrays on NVIDIA GPUs through CuPy: the only file that imports it, and only when a GPU is used.

Anything that a machine lacks raises `BackendUnavailable`, which says what to install. Collectives use `accelerator`,
replicas the functions of this module.
"""

from __future__ import annotations

import ctypes
import re
import socket
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.backends import cuda_source, torch_tensors
from workbench.backends.accelerator import GpuIdentity
from workbench.backends.flags import FLAG, WORDS, Flags
from workbench.backends.numpy import accumulator
from workbench.errors import BackendUnavailable, LibraryMissing, OutOfDeviceMemory
from workbench.extras import install_command

DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 bfloat16 float32 float64 complex64 complex128".split()
)
"""Names of the dtypes that CuPy supports; it rejects float8, extended precision, dates and texts."""
_flags: list[Flags] = []  # never freed: kernels that nothing waits for may still write to them
_flags_lock = threading.Lock()
_SLOWEST_BYTES_PER_NS = 100.0  # some virtual GPUs report no clock rate
BLOCK = 256
"""Threads in a block of a kernel."""
_BLOCKS_PER_PROCESSOR = 8


def is_gpu_array(x: Any) -> bool:
    """Whether `x` is in GPU memory; imports nothing."""
    module = type(x).__module__.partition(".")[0]
    if module == "cupy":
        return True
    if module == "torch":
        return bool(getattr(x, "is_cuda", False))
    if module in ("jax", "jaxlib"):
        devices = getattr(x, "devices", None)
        return callable(devices) and any(device.platform in ("gpu", "cuda") for device in devices())
    return hasattr(x, "__cupy_get_ndarray__")


@lru_cache(maxsize=1)
def namespace() -> Any:
    """The module `cupy`, after checking that it can work here.

    Raises:
      BackendUnavailable: if CuPy, a driver, a GPU or the compiler of kernels is missing, or CUDA versions do not fit.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CuPy warns about libraries that workbench does not use
            import cupy
    except ImportError as error:
        what = "is not installed" if error.name == "cupy" else f"cannot be imported ({error})"
        raise LibraryMissing(f"CuPy {what}: {_remedy()}") from error
    _check_driver(cupy)
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # a RuntimeError or an ImportError, depending on what is missing
        raise BackendUnavailable(
            f"CuPy finds no NVRTC, the compiler of kernels, which a driver alone does not bring: {_remedy()}, whose "
            f"[ctk] packages contain it ({error})"
        ) from error
    return cupy


def in_use() -> bool:
    """Whether this process has started computing on GPUs."""
    return namespace.cache_info().currsize > 0


def _check_driver(cupy: Any) -> None:
    try:
        ctypes.CDLL("libcuda.so.1" if sys.platform != "win32" else "nvcuda.dll")
    except OSError as error:
        raise BackendUnavailable(
            "there is no NVIDIA driver on this machine (no libcuda); use CPU devices, or install the driver"
        ) from error
    built = int(cupy.cuda.runtime.runtimeGetVersion())
    try:
        driver = int(cupy.cuda.runtime.driverGetVersion())
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        driver, count, reason = locals().get("driver", 0), 0, str(error)
        if 0 < driver < built // 1000 * 1000:
            raise BackendUnavailable(_wrong_major(driver, built)) from error
        raise BackendUnavailable(
            f"the NVIDIA driver does not work: {reason}; `nvidia-smi` shows its state, and "
            f"`workbench doctor` what is found"
        ) from error
    if driver < built // 1000 * 1000:
        raise BackendUnavailable(_wrong_major(driver, built))
    if count == 0:
        raise BackendUnavailable(
            "the driver shows no GPU to this process; CUDA_VISIBLE_DEVICES may hide them: unset it, or use CPU devices"
        )


def _remedy() -> str:
    return f"{install_command('gpu13')} (for drivers of CUDA 12: gpu12)"


def _wrong_major(driver: int, built: int) -> str:
    return (
        f"CuPy was built for CUDA {built // 1000}, the driver supports CUDA {driver // 1000}.{driver % 1000 // 10}: "
        f"{install_command(f'gpu{max(12, driver // 1000)}')} in place of the present CuPy, or update the driver"
    )


def use(ordinal: int) -> None:
    """Makes a device the current one of the calling thread until the thread ends."""
    namespace().cuda.Device(ordinal).use()


def check_ordinal(ordinal: int) -> None:
    """Rejects the number of a missing GPU.

    Raises:
      BackendUnavailable: if the GPU is missing, or CuPy cannot work here.
    """
    count = int(namespace().cuda.runtime.getDeviceCount())
    if not 0 <= ordinal < count:
        raise BackendUnavailable(f"there is no GPU:{ordinal}; this process sees GPU:0 to GPU:{count - 1}")


def on_device(value: Any, ordinal: int) -> Any:
    """A new array on a device, with the elements of a NumPy array; the current device does not change."""
    cupy = namespace()
    with cupy.cuda.Device(ordinal):
        return cupy.array(value)


def array(value: Any) -> Any:
    """A new array on the current device, with the elements of any array."""
    return namespace().array(accelerator.view(value) if is_gpu_array(value) else value)


def to_host(x: Any) -> np.ndarray:
    """The elements of a GPU array as a NumPy array; waits for the device."""
    host: np.ndarray = namespace().asnumpy(accelerator.view(x))
    return host


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a GPU, in bytes.

    Attributes:
      total: All memory of the device.
      free: Memory that no process uses.
      used: Memory of this process's arrays.
      kept: Memory that CuPy's pool keeps for this process's next arrays.
    """

    total: int
    free: int
    used: int
    kept: int


def memory(ordinal: int = 0) -> Memory:
    """The memory of a device, and this process's share."""
    cupy = namespace()
    with cupy.cuda.Device(ordinal):
        free, total = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        return Memory(int(total), int(free), int(pool.used_bytes()), int(pool.free_bytes()))


def out_of_memory(error: BaseException, replica: int = -1) -> OutOfDeviceMemory | None:
    """The error to raise instead of CuPy's or PyTorch's out-of-memory error; None if `error` is another one."""
    library = type(error).__module__.partition(".")[0]
    if type(error).__name__ != "OutOfMemoryError" or library not in ("cupy", "torch"):
        return None
    if library == "torch" and not in_use():  # CuPy does not know the GPU that PyTorch uses
        return None
    wanted = int(getattr(error, "_size", 0))
    told = re.search(r"Tried to allocate ([\d.]+ \w+)", str(error))  # PyTorch has it only in the text
    there = memory(namespace().cuda.Device().id)
    size = f"{wanted:,} bytes were wanted" if wanted else f"{told[1]} were wanted" if told else f"{error}"
    who = f"replica {replica}: " if replica >= 0 else ""
    return OutOfDeviceMemory(
        f"{who}the GPU is out of memory: {size}, {there.free + there.kept:,} of {there.total:,} bytes are free; use "
        f"smaller batches, fewer replicas per GPU, or `cupy.get_default_memory_pool().free_all_blocks()`",
        replica=replica,
    )


@lru_cache(maxsize=512)
def compiled(text: str, name: str) -> Any:
    """A kernel of `cuda_source`, compiled at its first launch."""
    return namespace().RawKernel(text, name, options=("--std=c++17",))


@lru_cache(maxsize=64)
def _processors(ordinal: int) -> int:
    return int(namespace().cuda.runtime.getDeviceProperties(ordinal)["multiProcessorCount"])


def _pinned_words() -> np.ndarray:
    """Zeros in pinned host memory that kernels can set; empty, so no flags, if the machine has none."""
    try:
        words = np.frombuffer(namespace().cuda.alloc_pinned_memory(WORDS * FLAG.itemsize), FLAG, WORDS)
    except Exception:  # CuPy raises its own class
        return np.zeros(0, FLAG)
    words[:] = 0
    return words


def grid(items: int) -> tuple[int]:
    """How many blocks of `BLOCK` threads a kernel over `items` items gets on the current device."""
    most = _processors(namespace().cuda.Device().id) * _BLOCKS_PER_PROCESSOR
    return (max(1, min(most, -(-items // BLOCK))),)


class _OnStream:
    """Selects a device and one of its streams. A generator would take longer to enter than the work inside."""

    __slots__ = ("_device", "_stream")

    def __init__(self, device: Any, stream: Any) -> None:
        self._device = device
        self._stream = stream

    def __enter__(self) -> None:
        self._device.__enter__()
        self._stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)
        self._device.__exit__(*error)


class CupyAccelerator:
    """Implements `Accelerator` with CuPy; the methods are described there."""

    @property
    def nccl(self) -> Any:
        """CuPy's binding of NCCL."""
        namespace()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CuPy prints its own hint; ours follows
            from cupy.cuda import nccl
        if not nccl.available:
            raise BackendUnavailable(
                f"CuPy finds no libnccl, which connects GPUs: {_remedy()}, or pip install nvidia-nccl-cu13 (cu12)"
            )
        return nccl

    @property
    def flags(self) -> Flags:
        """Words in pinned memory, which has the same address for the host and every GPU."""
        with _flags_lock:
            if not _flags:
                _flags.append(Flags(_pinned_words()))
        return _flags[0]

    def bytes_per_ns(self, ordinal: int) -> float:
        """Computed from the memory's clock, with two transfers per cycle, and the width of its bus."""
        cuda = namespace().cuda.runtime
        try:
            clock_khz = int(cuda.deviceGetAttribute(cuda.cudaDevAttrMemoryClockRate, ordinal))
            width_bits = int(cuda.deviceGetAttribute(cuda.cudaDevAttrGlobalMemoryBusWidth, ordinal))
        except Exception:  # CuPy raises its own class; a missing attribute is no reason to fail
            return _SLOWEST_BYTES_PER_NS
        return max(_SLOWEST_BYTES_PER_NS, 2 * clock_khz * width_bits / 8 / 1e6)

    def owns(self, x: Any) -> bool:
        """Whether `x` is in the memory of a GPU."""
        return is_gpu_array(x)

    def view(self, x: Any) -> Any:
        """`x` as a `cupy.ndarray`; PyTorch tensors are detached."""
        cupy = namespace()
        if isinstance(x, cupy.ndarray):
            return x
        own = getattr(x, "__cupy_get_ndarray__", None)
        if own is not None:
            return own()
        return torch_tensors.as_array(x, cupy) if torch_tensors.is_tensor(x) else cupy.from_dlpack(x)

    def described(self, x: Any) -> Any:
        """PyTorch tensors wait for `handed_over`, which converts all of them together."""
        if isinstance(x, namespace().ndarray) or not torch_tensors.is_tensor(x):
            return self.view(x)
        return torch_tensors.described(x, DTYPES)

    def handed_over(self, described: Sequence[Any]) -> Sequence[Any]:
        """PyTorch tensors as one array, if they have the same dtype."""
        if not any(type(each) is torch_tensors.Described for each in described):
            return described
        return [self.view(each) for each in torch_tensors.joined(described)]

    def like(self, array: Any, original: Any) -> Any:
        """`array` as a PyTorch tensor or JAX array if `original` is one."""
        if isinstance(original, namespace().ndarray):
            return array
        if torch_tensors.is_tensor(original):
            return torch_tensors.as_tensor(array)
        if type(original).__module__.partition(".")[0] in ("jax", "jaxlib"):
            return sys.modules["jax"].dlpack.from_dlpack(array)
        return array

    def ordinal(self, array: Any) -> int:
        """Number of the device that holds `array`."""
        if type(array) is torch_tensors.Described:
            return int(array.tensor.get_device())
        return int(array.data.device_id)  # `array.device` creates an object

    def identity(self, ordinal: int) -> GpuIdentity:
        """Its UUID, PCI address and name."""
        cupy = namespace()
        properties = cupy.cuda.runtime.getDeviceProperties(ordinal)
        name = properties["name"]
        pci = str(cupy.cuda.Device(ordinal).pci_bus_id)
        uuid = bytes(properties.get("uuid", b"")).hex() or f"{socket.gethostname()}/{pci}"
        return GpuIdentity(uuid, pci, name.decode() if isinstance(name, bytes) else str(name))

    def on(self, ordinal: int, stream: Any = None) -> AbstractContextManager[Any]:
        """Sets the device and the stream."""
        device = namespace().cuda.Device(ordinal)
        return device if stream is None else _OnStream(device, stream)

    def stream(self) -> Any:
        """A non-blocking stream, which does not wait for the default stream."""
        return namespace().cuda.Stream(non_blocking=True)

    def stream_pointer(self, stream: Any) -> int:
        """The `cudaStream_t`."""
        return int(stream.ptr)

    def event(self, *, timed: bool = True) -> Any:
        """An event for polling, not for blocking waits."""
        return namespace().cuda.Event(disable_timing=not timed)

    def record(self, event: Any) -> None:
        """Records the event on the current stream."""
        event.record()

    def wait(self, event: Any) -> None:
        """Makes the current stream wait for the event."""
        namespace().cuda.get_current_stream().wait_event(event)

    def done(self, event: Any) -> bool:
        """Checks without waiting."""
        return bool(event.done)

    def elapsed_ns(self, first: Any, second: Any) -> int:
        """CUDA counts in float32 milliseconds: about 1 µs of resolution within ten seconds."""
        return int(namespace().cuda.get_elapsed_time(first, second) * 1e6)

    def empty(self, count: int, dtype: np.dtype) -> Any:
        """A new array from CuPy's pool."""
        try:
            return namespace().empty(count, dtype)
        except MemoryError as error:
            raise out_of_memory(error) or error from error

    def flat(self, arrays: Sequence[Any], dtype: np.dtype) -> Any:
        """Copies all arrays with one kernel if CuPy can."""
        cupy = namespace()
        if len(arrays) == 1:
            return cupy.ascontiguousarray(arrays[0]).reshape(-1).astype(dtype, copy=False)
        parts = [cupy.ravel(part if part.dtype == dtype else part.astype(dtype)) for part in arrays]
        return cupy.concatenate(parts) if parts else self.empty(0, dtype)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenates on the current stream."""
        return namespace().concatenate(list(parts), axis=axis)

    def pointer(self, array: Any) -> int:
        """The device address."""
        return int(array.data.ptr)

    def copy(self, source: Any, target: Any) -> None:
        """Copies on the current stream."""
        namespace().copyto(target, source)

    def combine(
        self,
        op: str,
        sources: Sequence[Any],
        targets: Sequence[Any],
        *,
        mean_over: int = 0,
        flags: int = 0,
    ) -> None:
        """Launches the fused kernel on at most `MOST_BUFFERS` arrays at once; partial results stay in the wide dtype.

        Args:
          op: "sum", "mean", "min", "max" or "prod".
          sources: Arrays of one size and dtype.
          targets: Arrays of the same size for the result.
          mean_over: Number by which a mean is divided; 0 for other operations.
          flags: Address of a word for each source, set to 1 if the source is not finite; 0 for none.
        """
        most = cuda_source.MOST_BUFFERS
        dtype, out = sources[0].dtype, targets[0].dtype
        wide = accumulator(dtype, op)
        first, chunk, done = dtype, list(sources[:most]), min(most, len(sources))
        continued = False
        while done < len(sources):
            partial = self.empty(sources[0].size, wide)
            self._launch(op, (first, dtype, wide, wide), chunk, [partial], continued=continued, flags=flags)
            # The flags of the next chunk start one before its first array: that place belongs to the partial result.
            flags += (len(chunk) - 1) * FLAG.itemsize if flags else 0
            first, chunk = wide, [partial, *sources[done : done + most - 1]]
            done, continued = done + len(chunk) - 1, True
        self._launch(
            op,
            (first, dtype, wide, out),
            chunk,
            targets[:most],
            mean_over=mean_over,
            continued=continued,
            flags=flags,
        )
        for target in targets[most:]:
            self.copy(targets[0], target)

    def _launch(
        self,
        op: str,
        dtypes: Any,
        sources: Sequence[Any],
        targets: Sequence[Any],
        *,
        mean_over: int = 0,
        continued: bool = False,
        flags: int = 0,
    ) -> None:
        count = int(targets[0].size)
        if count == 0:
            return
        pointers = [self.pointer(array) for array in (*sources, *targets)]
        aligned = not any(pointer % 16 for pointer in pointers)
        vectors = count // cuda_source.lanes(dtypes[1]) if aligned else 0
        text = cuda_source.combine(
            op,
            dtypes,
            sources=len(sources),
            targets=len(targets),
            mean_over=mean_over,
            continued=continued,
        )
        arguments = (*map(np.uint64, pointers), np.int64(vectors), np.int64(count), np.uint64(flags))
        compiled(text, "combine")(grid(vectors or count), (BLOCK,), arguments)

    def flag_not_finite(self, array: Any, flag: int) -> None:
        """Launches one kernel."""
        if array.size:
            pointer, count = self.pointer(array), int(array.size)
            vectors = count // cuda_source.lanes(array.dtype) if pointer % 16 == 0 else 0
            arguments = (np.uint64(pointer), np.int64(vectors), np.int64(count), np.uint64(flag))
            kernel = compiled(cuda_source.not_finite(array.dtype), "not_finite")
            kernel(grid(vectors or count), (BLOCK,), arguments)

    def divide(self, array: Any, by: int) -> None:
        """Divides in place, in the array's own dtype."""
        namespace().divide(array, array.dtype.type(by), out=array)

    def ordered(self, array: Any, op: str) -> Any:
        """Launches one kernel."""
        integers = self.empty(array.size, np.dtype(f"i{array.dtype.itemsize}"))
        if array.size:
            arguments = (np.uint64(array.data.ptr), np.uint64(integers.data.ptr), np.int64(array.size))
            kernel = compiled(cuda_source.ordered(array.dtype, op), "ordered")
            kernel(grid(array.size), (BLOCK,), arguments)
        return integers

    def unordered(self, array: Any, op: str) -> None:
        """Launches one kernel, in place."""
        if array.size:
            text = cuda_source.ordered(np.dtype(f"f{array.dtype.itemsize}"), op)
            arguments = (np.uint64(array.data.ptr), np.int64(array.size))
            compiled(text, "unordered")(grid(array.size), (BLOCK,), arguments)


accelerator = CupyAccelerator()
