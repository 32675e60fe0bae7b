"""What CuPy's backend says where something is missing, with a CuPy that is made up; nothing here computes."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.backends import cupy as gpu
from workbench.backends import cupy_contents
from workbench.backends import numpy as backend
from workbench.backends.flags import FLAG, Flags
from workbench.backends.from_gpu import described_error, fetched
from workbench.errors import BackendUnavailable, OutOfDeviceMemory


class DriverError(Exception):
    """As CUDARuntimeError."""


class OutOfMemoryError(MemoryError):
    """As `cupy.cuda.memory.OutOfMemoryError`."""

    _size = 1 << 40


OutOfMemoryError.__module__ = "cupy.cuda.memory"


class Fake(ModuleType):
    """A CuPy for CUDA 13 on a machine whose driver and libraries a test chooses."""

    def __init__(
        self, *, driver: int = 13000, devices: int = 1, nvrtc: bool = True, nccl: bool = True
    ) -> None:
        super().__init__("cupy")

        def count() -> int:
            if driver < 13000:
                raise DriverError("cudaErrorInsufficientDriver")
            return devices

        def version() -> tuple[int, int]:
            if not nvrtc:
                raise RuntimeError("CuPy failed to load libnvrtc.so.13")
            return 13, 0

        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                runtimeGetVersion=lambda: 13000,
                driverGetVersion=lambda: driver,
                getDeviceCount=count,
                memGetInfo=lambda: (10_000, 80_000),
            ),
            nvrtc=SimpleNamespace(getVersion=version),
            nccl=SimpleNamespace(available=nccl),
            Device=Device,
        )
        self.ndarray = type("ndarray", (), {"__module__": "cupy"})

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(used_bytes=lambda: 69_000, free_bytes=lambda: 1_000)


class Device:
    """The only one."""

    id = 0

    def __init__(self, ordinal: int = 0) -> None:
        pass

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    gpu.namespace.cache_clear()

    def installed(fake: Fake | None, *, library: bool = True) -> None:
        def load(name: str) -> None:
            if not library:
                raise OSError(f"{name}: cannot open shared object file")

        monkeypatch.setattr(gpu.ctypes, "CDLL", load)
        monkeypatch.setitem(sys.modules, "cupy", fake)
        if fake is not None:
            monkeypatch.setitem(sys.modules, "cupy.cuda", fake.cuda)

    yield installed
    gpu.namespace.cache_clear()


def test_without_cupy_it_says_what_to_install(install: Any) -> None:
    install(None)
    with pytest.raises(BackendUnavailable, match=r"CuPy is not installed: pip install -e \S+\[gpu13\]"):
        gpu.namespace()


def test_a_cupy_that_lacks_something_of_its_own(
    install: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(None)
    monkeypatch.delitem(sys.modules, "cupy")
    (tmp_path / "cupy.py").write_text("import cuda_pathfinder_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        BackendUnavailable, match=r"CuPy cannot be imported \(No module named 'cuda_path.*gpu13"
    ):
        gpu.namespace()


def test_without_a_driver(install: Any) -> None:
    install(Fake(), library=False)
    with pytest.raises(BackendUnavailable, match="no NVIDIA driver on this machine"):
        gpu.namespace()


def test_a_driver_of_an_older_cuda(install: Any) -> None:
    install(Fake(driver=12040))
    with pytest.raises(BackendUnavailable, match=r"built for CUDA 13, the driver supports CUDA 12\.4.*gpu12"):
        gpu.namespace()


def test_gpus_that_are_hidden(install: Any) -> None:
    install(Fake(devices=0))
    with pytest.raises(BackendUnavailable, match="CUDA_VISIBLE_DEVICES may hide them"):
        gpu.namespace()


def test_a_driver_without_the_compiler(install: Any) -> None:
    install(Fake(nvrtc=False))
    with pytest.raises(BackendUnavailable, match=r"finds no NVRTC.*\[ctk\]"):
        gpu.namespace()


def test_without_nccl(install: Any) -> None:
    install(Fake(nccl=False))
    with pytest.raises(BackendUnavailable, match="finds no libnccl"):
        _ = gpu.accelerator.nccl


def test_nothing_is_remembered_of_a_failure(install: Any) -> None:
    install(Fake(devices=0))
    with pytest.raises(BackendUnavailable):
        gpu.namespace()
    install(Fake())
    assert gpu.namespace().__name__ == "cupy"


def test_lack_of_memory_names_replica_bytes_wanted_and_free(install: Any) -> None:
    install(Fake())
    error = described_error(OutOfMemoryError("Out of memory allocating"), 3)

    assert isinstance(error, OutOfDeviceMemory)
    assert isinstance(error, MemoryError)
    assert (
        "replica 3: the GPU is out of memory: 1,099,511,627,776 bytes were wanted, 11,000 of 80,000"
        in str(error)
    )
    assert error.replica == 3


def test_lack_of_memory_of_pytorch_is_told_alike_where_replicas_compute_on_gpus(install: Any) -> None:
    """It is no MemoryError, and `torch.cat` raises it where a collective joins tensors."""
    kind = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})
    lack = kind(
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 3.10 GiB is "
        "free. Including non-PyTorch memory, this process has 1.00 GiB in use."
    )
    install(Fake())
    assert described_error(lack, 3) is lack  # CuPy was not requested, so nothing here knows the GPU

    gpu.namespace()
    error = described_error(lack, 3)

    assert isinstance(error, OutOfDeviceMemory)
    assert error.replica == 3
    assert "replica 3: the GPU is out of memory: 20.00 GiB were wanted, 11,000 of 80,000 bytes are" in str(
        error
    )
    bare = described_error(kind("no room"), 3)
    assert "replica 3: the GPU is out of memory: no room, 11,000 of 80,000 bytes are free" in str(bare)


@pytest.mark.parametrize(
    "lack", [OutOfMemoryError("Out of memory allocating"), OutOfDeviceMemory("the GPU is out of memory")]
)
def test_lack_of_memory_keeps_the_line_that_it_was_raised_on(install: Any, lack: Exception) -> None:
    install(Fake())
    with pytest.raises(MemoryError) as caught:
        raise lack

    error = described_error(lack, 3)

    assert error is not lack
    assert error.__traceback__ is caught.value.__traceback__ is not None


def test_lack_of_memory_in_a_collective_names_the_replica_too(install: Any) -> None:
    fake = Fake()
    install(fake)

    def full(count: int, dtype: Any) -> None:
        raise OutOfMemoryError("Out of memory allocating")

    fake.empty = full  # type: ignore[attr-defined]
    with pytest.raises(OutOfDeviceMemory) as caught:
        gpu.accelerator.empty(1 << 38, np.dtype(np.float32))
    error = described_error(caught.value, 2)

    assert str(error).startswith("replica 2: the GPU is out of memory: 1,099,511,627,776 bytes were wanted")
    assert isinstance(error, OutOfDeviceMemory)
    assert error.replica == 2
    assert described_error(error, 0) is error


def test_other_errors_stay_as_they_are() -> None:
    error = MemoryError("of the host")
    assert described_error(error, 0) is error


def test_memory_statistics(install: Any) -> None:
    install(Fake())
    assert gpu.memory() == gpu.Memory(total=80_000, free=10_000, used=69_000, kept=1_000)


def test_arrays_of_the_host_are_no_gpu_arrays() -> None:
    for value in (np.ones(3), 1.0, None, "text"):
        assert not gpu.is_gpu_array(value)
        assert fetched(value) is value


def test_gpu_arrays_are_recognised_without_importing_anything() -> None:
    made_up = type("ndarray", (), {"__module__": "cupy"})()
    tensor = type("Tensor", (), {"__module__": "torch", "is_cuda": True})()
    on_host = type("Tensor", (), {"__module__": "torch", "is_cuda": False})()

    assert [gpu.is_gpu_array(x) for x in (made_up, tensor, on_host)] == [True, True, False]


def test_a_cpu_replica_refuses_a_gpu_array() -> None:
    with pytest.raises(BackendUnavailable, match=r"this replica's device is a CPU.*cupy\.asnumpy"):
        backend.view(type("ndarray", (), {"__module__": "cupy"})())


@pytest.mark.parametrize("buffers", [1, 16, 17, 40])
def test_more_buffers_than_a_launch_takes_are_combined_in_order(
    monkeypatch: pytest.MonkeyPatch, buffers: int
) -> None:
    launches: list[tuple[tuple[str, ...], int, int]] = []

    said: dict[int, float] = {}  # the content at the address of each word

    def launch(
        self: Any,
        op: str,
        dtypes: Any,
        sources: Any,
        targets: Any,
        *,
        mean_over: int = 0,
        continued: bool = False,
        flags: int = 0,
    ) -> None:
        launches.append((tuple(dtype.name for dtype in dtypes), len(sources), mean_over))
        for k, source in enumerate(sources):
            if not (continued and k == 0):  # a partial result
                assert flags + 4 * k not in said
                said[flags + 4 * k] = float(source[1])
        total = np.sum([source.astype(np.float32) for source in sources], axis=0)
        for target in targets:
            target[:] = total / mean_over if mean_over else total

    monkeypatch.setattr(gpu.CupyAccelerator, "_launch", launch)
    monkeypatch.setattr(gpu.CupyAccelerator, "empty", lambda self, count, dtype: np.empty(count, dtype))
    monkeypatch.setattr(gpu.CupyAccelerator, "copy", lambda self, source, target: np.copyto(target, source))
    sources = [np.array([1.0, rank, 1.0], np.float16) for rank in range(buffers)]
    targets = [np.zeros(3, np.float16) for _ in range(buffers)]

    gpu.accelerator.combine("mean", sources, targets, mean_over=buffers, flags=1000)

    assert all((target[[0, 2]] == 1.0).all() for target in targets)
    assert said == {1000 + 4 * rank: rank for rank in range(buffers)}
    assert max(count for _, count, _ in launches) <= 16
    assert [mean_over for _, _, mean_over in launches] == [0] * (len(launches) - 1) + [buffers]
    for number, (dtypes, _, _) in enumerate(launches):
        first, last = number == 0, number == len(launches) - 1
        assert dtypes == (
            "float16" if first else "float32",
            "float16",
            "float32",
            "float16" if last else "float32",  # partial results stay wide
        )


class OnDevice(np.ndarray):
    device = Device()


@pytest.fixture
def marking(install: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[str]]:
    """Arrays of NumPy as those of a device: the streams on which was waited, and the dtypes of what was checked."""
    waits: list[int] = []
    fake: Any = Fake()
    fake.ascontiguousarray = np.ascontiguousarray
    streams = itertools.cycle(
        SimpleNamespace(ptr=k, synchronize=functools.partial(waits.append, k)) for k in (1, 1, 2)
    )
    fake.cuda.get_current_stream = lambda: next(streams)
    install(fake)
    words: Flags = Flags(np.zeros(64, FLAG))
    marked: list[str] = []

    def mark(self: Any, array: Any, flag: int) -> None:
        marked.append(array.dtype.name)
        if not np.isfinite(array).all():
            words._words[(flag - words._address) // FLAG.itemsize] = 1

    monkeypatch.setattr(gpu.CupyAccelerator, "flags", words)
    monkeypatch.setattr(gpu.CupyAccelerator, "view", lambda self, x: x)
    monkeypatch.setattr(gpu.CupyAccelerator, "flag_not_finite", mark)
    return waits, marked


def test_many_arrays_are_looked_at_with_one_wait_for_each_32(marking: tuple[list[int], list[str]]) -> None:
    waits, marked = marking
    arrays = [np.ones(3, np.float32).view(OnDevice) for _ in range(40)]
    arrays[35][1] = np.inf
    arrays[7] = np.ones(3, np.int32).view(OnDevice)

    assert cupy_contents.finite(arrays) == [k != 35 for k in range(40)]
    assert cupy_contents.finite(arrays[:2]) == [True, True]  # the words are clear again
    assert waits[:4] == [1, 2] * 2, "on each stream that was the current one"
    assert len(waits) == 5
    assert "int32" not in marked


def test_queued_checks_tell_what_they_found_without_waiting_and_begin_anew_after_a_wait(
    marking: tuple[list[int], list[str]],
) -> None:
    waits, _ = marking
    fine, bad = np.ones(3, np.float32).view(OnDevice), np.full(3, np.nan, np.float32).view(OnDevice)
    checks = cupy_contents.QueuedChecks()
    checks.add(fine)
    assert not checks.found_any()
    checks.add(bad)
    checks.add(bad)
    assert checks.found_any()
    assert not waits
    assert checks.wait() == [1, 2]
    assert not checks.found_any()
    checks.add(bad)
    for _ in range(31):
        assert not checks.full
        checks.add(fine)
    assert checks.full
    assert checks.wait() == [0]
    checks.close()
