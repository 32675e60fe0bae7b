"""CUDA C++ source of our kernels: compiled by CuPy on the machine with the GPU (and as C++ by the tests).

The text needs no headers: float16 and bfloat16 are converted here, so that a driver with NVRTC is enough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from workbench.backends.numpy import can_be_infinite
from workbench.backends.summary import BINS, NONE_BAD

MOST_BUFFERS = 16
"""The most buffers that one launch combines; more are combined in chunks, in order."""

_INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long long"}

_PRELUDE = """
struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
struct c64 { float re, im; };
struct c128 { double re, im; };
typedef long long index_t;

template <class T, int LANES> struct alignas(16) Vector { T lane[LANES]; };

__device__ inline unsigned int bits_of(float x) { return __float_as_uint(x); }
__device__ inline float float_of(unsigned int bits) { return __uint_as_float(bits); }

template <class A, class T> struct Convert {
  static __device__ inline A widen(T x) { return (A)x; }
  static __device__ inline T narrow(A x) { return (T)x; }
};
template <> struct Convert<float, f16> {
  static __device__ inline float widen(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
  }
  static __device__ inline f16 narrow(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <> struct Convert<float, bf16> {
  static __device__ inline float widen(bf16 x) { return float_of((unsigned int)x.bits << 16); }
  static __device__ inline bf16 narrow(float x) {
    unsigned int b = bits_of(x);
    bf16 y;
    if ((b & 0x7fffffffu) > 0x7f800000u) y.bits = (unsigned short)((b >> 16) | 0x40);  // stays a NaN
    else y.bits = (unsigned short)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);            // to nearest even
    return y;
  }
};

// Zero of what is finite, NaN of everything else: added up, one instruction per number tells whether all are.
__device__ inline float doubt(float x) { return x * 0; }
__device__ inline double doubt(double x) { return x * 0; }
__device__ inline float doubt(c64 x) { return x.re * 0 + x.im * 0; }
__device__ inline double doubt(c128 x) { return x.re * 0 + x.im * 0; }

// Minimum and maximum keep a NaN of either side; the first one wins.
template <class A> __device__ inline A add(A a, A b) { return a + b; }
template <class A> __device__ inline A multiply(A a, A b) { return a * b; }
template <class A> __device__ inline A least(A a, A b) { return (a != a) ? a : ((b != b || b < a) ? b : a); }
template <class A> __device__ inline A greatest(A a, A b) { return (a != a) ? a : ((b != b || b > a) ? b : a); }
template <class A> __device__ inline A any(A a, A b) { return (A)(a | b); }
template <class A> __device__ inline A all(A a, A b) { return (A)(a & b); }
template <class A> __device__ inline A over(A a, int n) { return a / (A)n; }

#define COMPLEX(C, F)                                                                                        \\
  template <> __device__ inline C add(C a, C b) { C c = {a.re + b.re, a.im + b.im}; return c; }               \\
  template <> __device__ inline C multiply(C a, C b) {                                                        \\
    C c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return c; }                                 \\
  __device__ inline bool is_nan(C a) { return a.re != a.re || a.im != a.im; }                                 \\
  __device__ inline bool before(C a, C b) { return a.re < b.re || (a.re == b.re && a.im < b.im); }            \\
  template <> __device__ inline C least(C a, C b) {                                                           \\
    return is_nan(a) ? a : ((is_nan(b) || before(b, a)) ? b : a); }                                           \\
  template <> __device__ inline C greatest(C a, C b) {                                                        \\
    return is_nan(a) ? a : ((is_nan(b) || before(a, b)) ? b : a); }                                           \\
  /* As NumPy divides by n + 0j: times 1 / n, and an infinite part makes the other one NaN. */                 \\
  template <> __device__ inline C over(C a, int n) {                                                          \\
    F scale = (F)1 / (F)n; C c = {(a.re + a.im * (F)0) * scale, (a.im - a.re * (F)0) * scale}; return c; }
COMPLEX(c64, float)
COMPLEX(c128, double)
"""

_DOUBTFUL = """
typedef decltype(DOUBT(ACC())) Doubt;

template <class T> __device__ inline bool doubtful(const T* at, int count) {
  Doubt doubts = 0;
#pragma unroll 1
  for (int i = 0; i < count; i++) doubts += DOUBT((Convert<ACC, T>::widen(at[i])));
  return doubts != 0;
}
"""

_COMBINE = """
extern "C" __global__ void combine(__PARAMETERS__, index_t vectors, index_t count, unsigned long long flags) {
  // Every pointer arrives by value, so the loops over buffers unroll into registers and constant memory.
  const FIRST* const first = (const FIRST*)s0;
  const IN* const source[__SOURCES__] = {__SOURCE_POINTERS__};
  OUT* const target[__TARGETS__] = {__TARGET_POINTERS__};
  const index_t start = (index_t)blockIdx.x * blockDim.x + threadIdx.x;
  const index_t stride = (index_t)gridDim.x * blockDim.x;
  unsigned int bad = 0;  // a bit for each source
  for (index_t i = start; i < vectors; i += stride) {
    Vector<FIRST, LANES> head = ((const Vector<FIRST, LANES>*)first)[i];
    Vector<IN, LANES> part[__SOURCES__];
#pragma unroll
    for (int k = 1; k < __SOURCES__; k++) part[k] = ((const Vector<IN, LANES>*)source[k])[i];
    Vector<OUT, LANES> result;
    Doubt doubts = 0;
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
      ACC total = Convert<ACC, FIRST>::widen(head.lane[lane]);
      if (LOOKS_AT_FIRST) doubts += DOUBT(total);
#pragma unroll
      for (int k = 1; k < __SOURCES__; k++) {
        ACC next = Convert<ACC, IN>::widen(part[k].lane[lane]);
        doubts += DOUBT(next);
        total = STEP(total, next);
      }
      result.lane[lane] = Convert<ACC, OUT>::narrow(FINISH(total));
    }
    if (doubts != 0) {  // rare: read once more, so that no registers are kept for it
      if (LOOKS_AT_FIRST && doubtful(first + i * LANES, LANES)) bad |= 1;
#pragma unroll
      for (int k = 1; k < __SOURCES__; k++) if (doubtful(source[k] + i * LANES, LANES)) bad |= 1u << k;
    }
#pragma unroll
    for (int k = 0; k < __TARGETS__; k++) ((Vector<OUT, LANES>*)target[k])[i] = result;
  }
  for (index_t i = vectors * LANES + start; i < count; i += stride) {
    ACC total = Convert<ACC, FIRST>::widen(first[i]);
    if (LOOKS_AT_FIRST && DOUBT(total) != 0) bad |= 1;
#pragma unroll
    for (int k = 1; k < __SOURCES__; k++) {
      ACC next = Convert<ACC, IN>::widen(source[k][i]);
      if (DOUBT(next) != 0) bad |= 1u << k;
      total = STEP(total, next);
    }
    OUT result = Convert<ACC, OUT>::narrow(FINISH(total));
#pragma unroll
    for (int k = 0; k < __TARGETS__; k++) target[k][i] = result;
  }
  if (bad && flags) {
#pragma unroll
    for (int k = 0; k < __SOURCES__; k++) if (bad >> k & 1) ((unsigned int*)flags)[k] = 1;
  }
}
"""

_NOT_FINITE = """
extern "C" __global__ void not_finite(unsigned long long from, index_t vectors, index_t count,
                                      unsigned long long flag) {
  const index_t start = (index_t)blockIdx.x * blockDim.x + threadIdx.x;
  const index_t stride = (index_t)gridDim.x * blockDim.x;
  Doubt doubts = 0;
#pragma unroll 4
  for (index_t i = start; i < vectors; i += stride) {
    Vector<IN, LANES> part = ((const Vector<IN, LANES>*)from)[i];
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) doubts += DOUBT((Convert<ACC, IN>::widen(part.lane[lane])));
  }
  for (index_t i = vectors * LANES + start; i < count; i += stride)
    doubts += DOUBT((Convert<ACC, IN>::widen(((const IN*)from)[i])));
  if (doubts != 0) *(unsigned int*)flag = 1;
}
"""

_ORDERED = """
extern "C" __global__ void ordered(unsigned long long from, unsigned long long to, index_t count) {
  // Integers in the order of the floats, with NaN beyond the end that OP looks for: NCCL's own minimum drops NaNs.
  const index_t stride = (index_t)gridDim.x * blockDim.x;
  for (index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    FLOAT x = ((const FLOAT*)from)[i];
    INTEGER bits = ((const INTEGER*)from)[i];
    ((INTEGER*)to)[i] = (x != x) ? NAN_AS : (bits < 0 ? (INTEGER)(bits ^ LARGEST) : bits);
  }
}
extern "C" __global__ void unordered(unsigned long long at, index_t count) {
  const index_t stride = (index_t)gridDim.x * blockDim.x;
  for (index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    INTEGER bits = ((const INTEGER*)at)[i];
    ((INTEGER*)at)[i] = (bits == NAN_AS) ? QUIET_NAN : (bits < 0 ? (INTEGER)(bits ^ LARGEST) : bits);
  }
}
"""

_SUMMARY = """
struct Partial {
  double n, mean, m2, least, greatest;
  unsigned long long zeros, nans, infinities, digest[2];
  index_t first_bad;
};

__device__ inline void include(Partial& p, const Partial& q) {
  double n = p.n + q.n;
  if (q.n > 0) {
    double gap = q.mean - p.mean;
    p.mean += gap * (q.n / n);
    p.m2 += q.m2 + gap * gap * (p.n * q.n / n);
    p.least = q.least < p.least ? q.least : p.least;
    p.greatest = q.greatest > p.greatest ? q.greatest : p.greatest;
  }
  p.n = n;
  p.zeros += q.zeros; p.nans += q.nans; p.infinities += q.infinities;
  p.digest[0] += q.digest[0]; p.digest[1] += q.digest[1];
  p.first_bad = q.first_bad < p.first_bad ? q.first_bad : p.first_bad;
}

__device__ inline unsigned long long mixed(unsigned long long x) {
  x ^= x >> 30; x *= 0xbf58476d1ce4e5b9ull; x ^= x >> 27; x *= 0x94d049bb133111ebull; return x ^ (x >> 31);
}

extern "C" __global__ void summary(unsigned long long from, unsigned long long to, index_t count) {
  const double limit = 1.7976931348623157e308;
  Partial p = {0, 0, 0, limit, -limit, 0, 0, 0, {0, 0}, NONE_BAD};
  const index_t stride = (index_t)gridDim.x * blockDim.x;
  for (index_t i = (index_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    IN item = ((const IN*)from)[i];
    // Position and bytes of each element go into a sum: it does not depend on who adds when.
    const unsigned char* bytes = (const unsigned char*)&item;
    unsigned long long word[2] = {0, 0};
    for (int k = 0; k < (int)sizeof(IN); k++) word[k / 8] |= (unsigned long long)bytes[k] << (8 * (k % 8));
    unsigned long long at = mixed((unsigned long long)i + 0x9e3779b97f4a7c15ull);
    p.digest[0] += mixed(at ^ mixed(word[0]) ^ (mixed(word[1] + 1) * 3));
    p.digest[1] += mixed(~at ^ mixed(word[0] + 0x2545f4914f6cdd1dull) ^ mixed(word[1] + 7));
    double x = MAGNITUDE(item);
    if (x == 0) p.zeros++;
    if (!(x <= limit && x >= -limit)) {
      if (x != x) p.nans++; else p.infinities++;
      if (i < p.first_bad) p.first_bad = i;
      continue;
    }
    p.n += 1;
    double gap = x - p.mean;
    p.mean += gap / p.n;
    p.m2 += gap * (x - p.mean);
    p.least = x < p.least ? x : p.least;
    p.greatest = x > p.greatest ? x : p.greatest;
  }
  __shared__ Partial shared[BLOCK];
  shared[threadIdx.x] = p;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) include(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) ((Partial*)to)[blockIdx.x] = shared[0];
}
"""

_HISTOGRAM = """
extern "C" __global__ void histogram(unsigned long long from, unsigned long long bounds, unsigned long long to,
                                     index_t count, index_t every) {
  const double limit = 1.7976931348623157e308;
  // Halves: the difference of the largest and the smallest double is not finite.
  const double low = ((const double*)bounds)[0] / 2, high = ((const double*)bounds)[1] / 2;
  const index_t stride = (index_t)gridDim.x * blockDim.x * every;
  for (index_t i = ((index_t)blockIdx.x * blockDim.x + threadIdx.x) * every; i < count; i += stride) {
    IN item = ((const IN*)from)[i];
    double x = MAGNITUDE(item);
    if (!(x <= limit && x >= -limit)) continue;
    int bin = (int)((x / 2 - low) * (BINS / (high - low)));
    atomicAdd((unsigned long long*)to + (bin < BINS ? bin : BINS - 1), 1ull);
  }
}
"""

SUMMARY_BLOCK = 128


def c_type(dtype: np.dtype) -> str:
    """The C type of `dtype` in kernels.

    Raises:
      TypeError: if no kernel can read it.
    """
    if dtype.name in ("float16", "bfloat16"):
        return "f16" if dtype.name == "float16" else "bf16"
    match dtype.kind:
        case "b":
            return "unsigned char"
        case "i":
            return "signed char" if dtype.itemsize == 1 else _INTEGERS[dtype.itemsize]
        case "u":
            return f"unsigned {_INTEGERS[dtype.itemsize]}"
        case "f" if dtype.itemsize in (4, 8):
            return "float" if dtype.itemsize == 4 else "double"
        case "c" if dtype.itemsize in (8, 16):
            return "c64" if dtype.itemsize == 8 else "c128"
    raise TypeError(f"arrays of {dtype} cannot be combined on a GPU; convert them first")


def lanes(dtype: np.dtype) -> int:
    """Elements in 16 bytes, which one load takes."""
    return max(1, 16 // dtype.itemsize)


@lru_cache(maxsize=512)
def combine(
    op: str,
    dtypes: tuple[np.dtype, np.dtype, np.dtype, np.dtype],
    *,
    sources: int,
    targets: int,
    mean_over: int = 0,
    continued: bool = False,
) -> str:
    """The kernel `combine` that reduces `sources` buffers into one result, written to `targets` buffers.

    Args:
      op: "sum", "mean", "min", "max" or "prod".
      dtypes: The dtypes of the first source (a partial result when buffers are combined in chunks), of the others, in
        which to accumulate, and of the targets.
      sources: At most `MOST_BUFFERS`.
      targets: At most `MOST_BUFFERS`.
      mean_over: Number of replicas to divide by at the end; 0 for no division.
      continued: Whether the first source is a partial result, whose NaN was already flagged for other buffers.
    """
    first, other, accumulator, out = dtypes
    names = [f"s{i}" for i in range(sources)] + [f"t{i}" for i in range(targets)]
    text = _COMBINE.replace("__PARAMETERS__", ", ".join(f"unsigned long long {name}" for name in names))
    pointers = ["0", *(f"(const IN*)s{i}" for i in range(1, sources))]  # the first source has its own type
    text = text.replace("__SOURCE_POINTERS__", ", ".join(pointers))
    text = text.replace("__TARGET_POINTERS__", ", ".join(f"(OUT*)t{i}" for i in range(targets)))
    text = text.replace("__SOURCES__", str(sources)).replace("__TARGETS__", str(targets))
    defines = {
        "FIRST": c_type(first),
        "IN": c_type(other),
        "OUT": c_type(out),
        "ACC": _wrapping(c_type(accumulator), op),
        "LANES": str(lanes(other)),
        "STEP(...)": f"{_function(op, other)}<ACC>(__VA_ARGS__)",
        "FINISH(...)": f"over<ACC>(__VA_ARGS__, {mean_over})" if mean_over else "(__VA_ARGS__)",
        "LOOKS_AT_FIRST": str(int(not continued)),
        "DOUBT(x)": "doubt(x)" if can_be_infinite(other) else "0",
    }
    return _PRELUDE + _with(defines) + _DOUBTFUL + text


@lru_cache(maxsize=64)
def not_finite(dtype: np.dtype) -> str:
    """The kernel `not_finite`: sets a word if an array of floating or complex numbers has NaN or infinity."""
    name = c_type(dtype)
    defines = {
        "IN": name,
        "ACC": "float" if name in ("f16", "bf16") else name,
        "LANES": str(lanes(dtype)),
        "DOUBT(x)": "doubt(x)",
    }
    return _PRELUDE + _with(defines) + _DOUBTFUL + _NOT_FINITE


@lru_cache(maxsize=64)
def ordered(dtype: np.dtype, op: str) -> str:
    """The kernels `ordered` and `unordered` for float32 or float64 and "min" or "max"."""
    bits = dtype.itemsize * 8
    suffix = "" if bits == 32 else "ll"
    largest = f"0x7{'f' * (bits // 4 - 1)}{suffix}"
    smallest = f"(-{largest} - 1)"
    defines = {
        "FLOAT": c_type(dtype),
        "INTEGER": _INTEGERS[dtype.itemsize],
        "LARGEST": largest,
        "NAN_AS": largest if op == "max" else smallest,
        "QUIET_NAN": "0x7fc00000" if bits == 32 else "0x7ff8000000000000ll",
    }
    return _PRELUDE + _with(defines) + _ORDERED


def summary(dtype: np.dtype) -> str:
    """The kernel `summary`: one `backends.summary.PARTIAL` per block, in one pass."""
    defines = {"BLOCK": str(SUMMARY_BLOCK), "NONE_BAD": f"{NONE_BAD}ll"}
    return _with_magnitude(dtype) + _with(defines) + _SUMMARY


def histogram(dtype: np.dtype) -> str:
    """The kernel `histogram`: counts every n-th element in equal bins between two bounds."""
    return _with_magnitude(dtype) + _with({"BINS": str(BINS)}) + _HISTOGRAM


def _with_magnitude(dtype: np.dtype) -> str:
    """The prelude, the type IN, and MAGNITUDE, which returns the absolute value of an IN as a double."""
    name = c_type(dtype)
    match name:
        case "f16" | "bf16":
            magnitude = f"(double)Convert<float, {name}>::widen(x)"
        case "c64" | "c128":
            magnitude = "hypot((double)(x).re, (double)(x).im)"
        case _:
            magnitude = "(double)(x)"
    defines = {"IN": name, "MAGNITUDE(x)": magnitude}
    return _PRELUDE + _with(defines)


def _function(op: str, dtype: np.dtype) -> str:
    if dtype.kind == "b" and op != "mean":
        return "any" if op in ("sum", "max") else "all"
    return {"sum": "add", "mean": "add", "min": "least", "max": "greatest", "prod": "multiply"}[op]


def _wrapping(name: str, op: str) -> str:
    """Integers wrap around as in NumPy; C++ guarantees that only for unsigned ones."""
    if op in ("sum", "prod") and name in _INTEGERS.values():
        return f"unsigned {name}"
    return "unsigned char" if op in ("sum", "prod") and name == "signed char" else name


def _with(defines: dict[str, str]) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in defines.items())
