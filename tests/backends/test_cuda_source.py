"""Our CUDA kernels, compiled as C++ and run on the CPU thread by thread: their arithmetic, not their speed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends import cuda_source
from workbench.backends import numpy as backend
from workbench.backends.cupy_contents import digest_of
from workbench.backends.summary import BINS, PARTIAL, merged, spacing, summary

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="there is no g++, which runs CUDA source on the CPU: apt-get install g++"
)

DTYPES = [
    *(np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32")),
    *(np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")),
    np.dtype(ml_dtypes.bfloat16),
]
# Replaces what CUDA's compiler provides, with one GPU of 3 blocks of 4 threads that run one after another.
SHIM = """
#include <cmath>
#include <cstring>
using std::hypot;
#define __global__
#define __device__
#define __shared__ static
#define __syncthreads()
struct Index { int x; };
static Index blockIdx, threadIdx, blockDim, gridDim;
template <class T> static void atomicAdd(T* at, T more) { *at += more; }
static unsigned int __float_as_uint(float x) { unsigned int y; memcpy(&y, &x, 4); return y; }
static float __uint_as_float(unsigned int x) { float y; memcpy(&y, &x, 4); return y; }
"""
HALF = (
    (
        'float y;\n    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));\n    return y;',
        "_Float16 h; memcpy(&h, &x.bits, 2); return (float)h;",
    ),
    (
        'f16 y;\n    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));\n    return y;',
        "_Float16 h = (_Float16)x; f16 y; memcpy(&y.bits, &h, 2); return y;",
    ),
)


class Compiled:
    """Kernels of one source text."""

    def __init__(self, text: str, kernel: str, folder: Path) -> None:
        for device, host in HALF:
            assert device in text
            text = text.replace(device, host)
        count = text.partition(f"{kernel}(")[2].partition(")")[0].count(",") + 1
        names = [f"a{i}" for i in range(count)]
        driver = f"""
extern "C" void run(int blocks, int threads, {", ".join(f"unsigned long long {name}" for name in names)}) {{
  gridDim.x = blocks; blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
      {kernel}({", ".join(names)});
}}"""
        source, library = folder / f"{kernel}.cpp", folder / f"{kernel}.so"
        source.write_text(SHIM + text + driver)
        command = [
            str(COMPILER),
            "-std=c++14",
            "-O1",
            "-w",
            "-shared",
            "-fPIC",
            str(source),
            "-o",
            str(library),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        self._run = ctypes.CDLL(str(library)).run
        self._count = count

    def __call__(self, *arguments: int, blocks: int = 3, threads: int = 4) -> None:
        assert len(arguments) == self._count, f"the kernel takes {self._count} arguments"
        self._run(blocks, threads, *(ctypes.c_uint64(argument) for argument in arguments))


def inputs(dtype: np.dtype, buffers: int, count: int) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    arrays = []
    for _ in range(buffers):
        array = random.integers(-4, 5, count) * (1.0 if dtype.kind in "iub" else 0.37)
        if dtype.kind == "c":
            array = array + 1j * random.integers(-4, 5, count)
        if dtype.kind in "fcV":
            array[random.integers(0, count, 2)] = np.nan
        with np.errstate(invalid="ignore"):
            arrays.append(array.astype(dtype))
    return arrays


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def want(op: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    wide = backend.accumulator(arrays[0].dtype, op)
    total = arrays[0].astype(wide)
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            total = backend.ufunc(op)(total, array.astype(wide))
        if op == "mean":
            total = total / wide.type(len(arrays))
        return total.astype(backend.mean_dtype(arrays[0].dtype) if op == "mean" else arrays[0].dtype)


@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "prod"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_combining_agrees_with_numpy(dtype: np.dtype, op: str, tmp_path: Path) -> None:
    count = 101
    arrays = inputs(dtype, 5, count)
    expected = want(op, arrays)
    targets = [np.zeros(count, expected.dtype) for _ in range(2)]
    wide = backend.accumulator(dtype, op)
    text = cuda_source.combine(
        op, (dtype, dtype, wide, expected.dtype), sources=5, targets=2, mean_over=5 if op == "mean" else 0
    )
    kernel = Compiled(text, "combine", tmp_path)

    for vectors in (0, count // cuda_source.lanes(dtype)):
        for target in targets:
            target[:] = 0
        aligned = [aligned_copy(array) for array in (*arrays, *targets)]
        flags = np.zeros(5, np.uint32)
        kernel(*(address(array) for array in aligned), vectors, count, address(flags))
        for found in aligned[5:]:
            assert_same(found, expected)
        assert flags.tolist() == [int(dtype.kind in "fcV")] * 5  # each has its own NaN


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_means_of_complex_numbers_have_the_bits_of_numpys(dtype: Any, tmp_path: Path) -> None:
    parts = [1.0, -7.3, 0.0, -0.0, 5e-40, np.inf, -np.inf, np.nan]
    first = np.array([complex(re, im) for re in parts for im in parts], dtype)
    arrays = [first, np.roll(first, 3), np.zeros_like(first)]
    expected, found = want("mean", arrays), np.zeros_like(first)
    kind = np.dtype(dtype)
    text = cuda_source.combine("mean", (kind, kind, kind, kind), sources=3, targets=1, mean_over=3)

    flags = np.zeros(3, np.uint32)
    Compiled(text, "combine", tmp_path)(*map(address, (*arrays, found)), 0, len(found), address(flags))

    real = expected.real.dtype
    np.testing.assert_array_equal(found.view(real), expected.view(real))
    assert flags.tolist() == [1, 1, 0]


def aligned_copy(array: np.ndarray) -> np.ndarray:
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 16
    copy = room[start : start + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    if expected.dtype.kind == "c":
        assert (np.isnan(found) == np.isnan(expected)).all()
        np.testing.assert_allclose(found[~np.isnan(found)], expected[~np.isnan(found)], rtol=1e-6)
        return
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_chunks_pass_on_partial_results_in_the_wide_dtype(tmp_path: Path) -> None:
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    count = 33
    arrays = [aligned_copy(array) for array in inputs(half, 4, count)]
    partial, total = aligned_copy(np.zeros(count, single)), aligned_copy(np.zeros(count, half))
    first = cuda_source.combine("sum", (half, half, single, single), sources=2, targets=1)
    second = cuda_source.combine("sum", (single, half, single, half), sources=3, targets=1, continued=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    vectors = count // 8
    for array in arrays[2:]:
        array[np.isnan(array)] = 0
    flags = np.zeros(4, np.uint32)
    one = address(flags)
    Compiled(first, "combine", tmp_path / "a")(*map(address, (*arrays[:2], partial)), vectors, count, one)
    Compiled(second, "combine", tmp_path / "b")(
        *map(address, (partial, *arrays[2:], total)), vectors, count, one + flags.itemsize
    )

    assert_same(total, want("sum", arrays))
    assert flags.tolist() == [1, 1, 0, 0]  # no other replica has the NaNs of the partial result


FLOATS = [dtype for dtype in DTYPES if dtype.kind in "fcV"]


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_a_source_is_flagged_for_each_number_that_is_not_finite_and_for_nothing_else(
    dtype: np.dtype, op: str, tmp_path: Path
) -> None:
    count, buffers = 33, 3
    wide = backend.accumulator(dtype, op)
    text = cuda_source.combine(op, (dtype, dtype, wide, dtype), sources=buffers, targets=1)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    fused = Compiled(text, "combine", tmp_path / "a")
    alone = Compiled(cuda_source.not_finite(dtype), "not_finite", tmp_path / "b")
    part = np.finfo(dtype) if dtype.kind in "fc" else ml_dtypes.finfo(dtype)
    bad = [np.nan, np.inf, -np.inf, *([complex(0, np.inf)] if dtype.kind == "c" else [])]
    # Values whose sum is infinite, and values close to zero, are finite.
    fine = [float(part.max), -float(part.max), float(part.smallest_subnormal), 0.0]
    target = aligned_copy(np.zeros(count, dtype))
    for value in (*bad, *fine):
        for source in range(buffers):
            for place in (0, 20, count - 1):
                arrays = [aligned_copy(np.full(count, float(part.max)).astype(dtype)) for _ in range(buffers)]
                arrays[source][place] = value
                expected = [int(k == source and value in bad) for k in range(buffers)]
                for vectors in (0, count // cuda_source.lanes(dtype)):
                    flags = np.zeros(2 * buffers, np.uint32)
                    fused(*map(address, (*arrays, target)), vectors, count, address(flags))
                    for k in range(buffers):
                        alone(address(arrays[k]), vectors, count, address(flags) + (buffers + k) * 4)
                    assert flags.tolist() == expected * 2, (value, source, place)


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=lambda dtype: dtype.name)
def test_integers_in_the_order_of_floats_and_back(dtype: np.dtype, op: str, tmp_path: Path) -> None:
    values = np.array([-np.inf, -2.5, -1e-30, 0.0, 1e-30, 3.0, np.inf, np.nan], dtype)
    integers = np.zeros(len(values), f"i{dtype.itemsize}")
    text = cuda_source.ordered(dtype, op)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    Compiled(text, "ordered", tmp_path / "a")(address(values), address(integers), len(values))
    assert (np.diff(integers[:7]) > 0).all()
    assert integers[7] == (integers.max() if op == "max" else integers.min())
    Compiled(text, "unordered", tmp_path / "b")(address(integers), len(values))
    np.testing.assert_array_equal(integers.view(dtype), values)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_summary_of_one_thread_per_block(dtype: np.dtype, tmp_path: Path) -> None:
    (values,) = inputs(dtype, 1, 97)
    parts = np.zeros(3, PARTIAL)
    # Threads of a block meet at barriers, which is impossible one after another; a block of one thread needs no
    # barrier.
    text = cuda_source.summary(dtype).replace(f"BLOCK {cuda_source.SUMMARY_BLOCK}", "BLOCK 1")
    Compiled(text, "summary", tmp_path)(address(values), address(parts), len(values), threads=1)

    found, expected = merged(parts), summary(values)
    for name in ("zeros", "nan", "inf", "first_bad"):
        assert found[name] == getattr(expected, name), name
    for name in ("mean", "std", "min", "max", "l2"):
        close = 1e-6 if dtype.name == "complex64" else 1e-9  # NumPy computes absolute values in float32 there
        assert found[name] == pytest.approx(getattr(expected, name), rel=close, nan_ok=True), name


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_histograms_are_those_of_the_cpu(dtype: np.dtype, tmp_path: Path) -> None:
    (values,) = inputs(dtype, 1, 997)
    expected = summary(values)
    bounds, counts = np.array([expected.min, expected.max]), np.zeros(BINS, np.uint64)
    kernel = Compiled(cuda_source.histogram(dtype), "histogram", tmp_path)

    kernel(address(values), address(bounds), address(counts), len(values), 1)
    assert tuple(counts.tolist()) == expected.histogram
    kernel(address(values), address(bounds), address(counts), len(values), spacing(1 << 20))
    assert counts.sum() == sum(expected.histogram) + np.isfinite(values[:: spacing(1 << 20)]).sum()


def test_summaries_tell_arrays_apart(tmp_path: Path) -> None:
    dtype = np.dtype(np.float32)
    text = cuda_source.summary(dtype).replace(f"BLOCK {cuda_source.SUMMARY_BLOCK}", "BLOCK 1")
    kernel = Compiled(text, "summary", tmp_path)

    def digest(values: np.ndarray, blocks: int) -> str:
        parts = np.zeros(blocks, PARTIAL)
        kernel(address(values), address(parts), len(values), blocks=blocks, threads=1)
        return digest_of(parts, values.shape, dtype)

    values = np.arange(50, dtype=np.float32)
    swapped = values.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    assert digest(values, 3) == digest(values, 5)
    assert digest(values, 3) != digest(swapped, 3)
    assert digest(np.zeros(2, np.float32), 1) != digest(np.array([0.0, -0.0], np.float32), 1)
