"""Arrays on the CPU: reads them without a copy, combines them, and converts them back to their type.

This file never imports other libraries: an array of PyTorch or JAX can only arrive if its library is already loaded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from workbench.backends.users_line import Apply, directly, warn
from workbench.errors import BackendUnavailable, InvalidArgumentError, TracingError, WrongType

STRING: Final = np.dtype(object)

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "prod": np.multiply,
}
_NARROW_FLOATS = ("float16", "bfloat16", "float8_", "float6_", "float4_")  # not float64
_TRACED = (
    "a value that JAX is tracing (inside of jax.grad, jax.jit or jax.vmap) was given to a collective or a variable: "
    "these need its numbers now, and JAX would not see what other replicas do. Differentiate locally, then combine the "
    "gradient: ctx.all_reduce('mean', jax.grad(loss)(w)); return from jax.jit what is to be assigned"
)
_MASKED = (
    "a masked array was given where only its data would be used, without the mask; say what masked elements count as: "
    "x.filled(0) for a sum, and beside it (~np.ma.getmaskarray(x)).astype(int) where the number of valid elements "
    "matters"
)
_warned_narrow: Final[set[bool]] = set()  # False for whole numbers, True for floats
_CHUNK_BYTES = 256 * 1024  # bytes of the result, so that the operands stay in the level-2 cache


def can_be_infinite(dtype: np.dtype) -> bool:
    """Whether arrays of this dtype can hold NaN or infinity: floating and complex numbers, bfloat16 and so on.

    Also true for the integers of ml_dtypes, such as int4, because NumPy gives them the same kind, "V", as ml_dtypes'
    floats.
    """
    # Records and bytes have kind "V", as do dtypes that another library has registered, such as bfloat16.
    return dtype.kind in "fc" or (dtype.kind == "V" and not issubclass(dtype.type, np.void))


def view(x: Any) -> np.ndarray:
    """Reads `x` as a NumPy array, without a copy if its library allows that.

    Args:
      x: A NumPy array or scalar, a Python number, a CPU array of PyTorch or JAX (gradients are detached, bfloat16
        becomes `ml_dtypes.bfloat16`), any other object with `__dlpack__` or `__array__`, or nested lists of numbers.

    Returns:
      An array that may share memory with `x` and must not be written to.

    Raises:
      TypeError: if `x` is not numeric, or a masked array.
      BackendUnavailable: if `x` is on a device other than the CPU.
      TracingError: if JAX is tracing `x`, as inside `jax.grad`: it has no numbers yet.
    """
    kind = type(x)
    if kind is np.ndarray:
        return x  # type: ignore[no-any-return]
    module = kind.__module__.partition(".")[0]
    if module == "torch":
        return _view_torch(x)
    if module == "cupy":
        raise BackendUnavailable(
            "expected an array on the host, got one of CuPy: this replica's device is a CPU; run on GPUs, or pass "
            "cupy.asnumpy(x)"
        )
    if module in ("jax", "jaxlib"):
        array = _view_jax(x)
    elif hasattr(x, "__array__") or not hasattr(x, "__dlpack__"):
        require_unmasked(x)
        array = np.asarray(x)
    else:
        array = np.from_dlpack(x)
    named = f"{kind.__name__} of dtype {array.dtype}" if hasattr(x, "dtype") else kind.__name__
    require_numbers(array.dtype, named)
    return array


def require_unmasked(x: Any) -> None:
    """Rejects masked arrays, whose mask would be lost.

    Raises:
      TypeError: with what to pass instead.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(_MASKED)


def require_numbers(dtype: np.dtype, what: str) -> None:
    """Rejects texts, dates, objects and records.

    Raises:
      WrongType: naming `what`.
    """
    if dtype.hasobject or dtype.kind in "USMm":
        raise WrongType(f"expected an array of numbers, got {what}: convert it to a numeric array first")
    if is_record(dtype):
        raise WrongType(f"expected an array of numbers, got {what}: {RECORD_REMEDY}")


RECORD_REMEDY = "give its fields one by one, {name: x[name] for name in x.dtype.names}"


def is_record(dtype: np.dtype) -> bool:
    """Whether elements are structured or opaque bytes; the types of ml_dtypes are numbers."""
    return dtype.kind == "V" and dtype.isbuiltin != 2


@functools.lru_cache(maxsize=256)  # dtype.name takes NumPy microseconds
def dtype_text(dtype: np.dtype) -> str:
    """A dtype in words that distinguish all dtypes: "float32", "float32 (big-endian)", "{a: int32, b: float32}"."""
    if dtype.names is not None:
        assert dtype.fields is not None
        fields = (f"{name}: {dtype_text(dtype.fields[name][0])}" for name in dtype.names)
        return f"{{{', '.join(fields)}}}"
    if dtype.isnative:
        return str(dtype) if dtype.kind in "OSUMm" else dtype.name
    return f"{dtype.name} ({'big' if sys.byteorder == 'little' else 'little'}-endian)"


def native(array: np.ndarray) -> np.ndarray:
    """`array` in the byte order of this machine; itself if it already is."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _view_jax(value: Any) -> np.ndarray:
    jax: Any = sys.modules["jax"]
    try:
        return np.asarray(value)
    except jax.errors.TracerArrayConversionError as error:
        raise TracingError(_TRACED) from error


def require_values(array: Any) -> None:
    """Rejects traced arrays, which have no numbers yet: keeping one would keep a part of a program. Does not wait.

    Raises:
      TracingError: if JAX is tracing `array`.
    """
    if is_traced(array):
        raise TracingError(_TRACED)


def is_traced(array: Any) -> bool:
    """Whether JAX is tracing `array`, so that it has no numbers yet."""
    jax: Any = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def _view_torch(tensor: Any) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise BackendUnavailable(f"expected a CPU tensor, got one on {tensor.device}: pass tensor.cpu()")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        torch = sys.modules["torch"]
        bits = torch.int16 if name == "bfloat16" else torch.uint8
        return tensor.view(bits).numpy().view(getattr(ml_dtypes, name))  # type: ignore[no-any-return]
    return tensor.numpy()  # type: ignore[no-any-return]


def like(array: np.ndarray, original: Any) -> Any:
    """Converts `array` to the type of `original`.

    Args:
      array: An array that the caller gives up: the result may share its memory.
      original: Any value that `view` accepts.

    Returns:
      A `torch.Tensor`, a `jax.Array`, a NumPy scalar for NumPy scalars and Python numbers, otherwise an `np.ndarray`.
    """
    kind = type(original)
    if kind is np.ndarray:
        return array
    module = kind.__module__.partition(".")[0]
    if module == "torch":
        return _like_torch(array)
    if module in ("jax", "jaxlib"):
        return _like_jax(array)
    if array.ndim == 0 and isinstance(original, (np.generic, bool, int, float, complex)):
        return array[()]
    return array


def _like_torch(array: np.ndarray) -> Any:
    torch: Any = sys.modules["torch"]
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # a tensor supports neither read-only memory nor negative strides
    if array.dtype.name.startswith(
        ("bfloat16", "float8_")
    ):  # by name, as their kinds differ; `torch.from_numpy` refuses them
        bits = np.int16 if array.dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(array.view(bits)).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)


def _like_jax(array: np.ndarray) -> Any:
    jax: Any = sys.modules["jax"]
    check_jax_width(array)
    # A copy, which JAX may keep. `jax.device_put` would alias memory that the pool hands out again. `jax.numpy.array`
    # would copy later, when that memory may already have other content.
    return jax.numpy.asarray(array.copy())


def check_jax_width(array: np.ndarray[Any, Any]) -> None:
    """Warns that JAX reduces 64 bits to 32, once per process for whole numbers and once for floats.

    Raises:
      InvalidArgumentError: if that would change integers.
    """
    jax: Any = sys.modules["jax"]
    kind, dtype = array.dtype.kind, array.dtype
    if dtype.itemsize != 8 or kind not in "iuf" or jax.config.read("jax_enable_x64"):
        return
    limits = np.iinfo(np.int32 if kind == "i" else np.uint32) if kind != "f" else None
    if limits is not None and array.size and (array.max() > limits.max or array.min() < limits.min):
        raise InvalidArgumentError(
            f"values from {array.min()} to {array.max()} do not fit into the 32 bits that JAX makes of {dtype.name}; "
            f"connect with wb.connect(..., environment={{'JAX_ENABLE_X64': '1'}}), or use smaller numbers"
        )
    if (whole := limits is not None) not in _warned_narrow:
        _warned_narrow.add(whole)
        outcome = ", and what it computes of them wraps around beyond that" if whole else ""
        warn(
            f"JAX narrows {dtype.name} to 32 bits{outcome}; to keep it connect with "
            f"wb.connect(..., environment={{'JAX_ENABLE_X64': '1'}}), or set jax_enable_x64",
            UserWarning,
        )


@functools.lru_cache(maxsize=256)
def mean_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of a mean over replicas: float64 for integers and bool, otherwise `dtype` itself."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


@functools.lru_cache(maxsize=256)
def accumulator(dtype: np.dtype, op: str = "sum") -> np.dtype:
    """The dtype in which values of `dtype` are combined by `op`: float32 for narrower floats."""
    if op == "mean":
        dtype = mean_dtype(dtype)
    return np.dtype(np.float32) if dtype.name.startswith(_NARROW_FLOATS) else dtype


def dtype_named(name: str) -> np.dtype:
    """The dtype called `name`, also one of ml_dtypes such as "bfloat16".

    Raises:
      TypeError: if there is none.
    """
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = getattr(ml_dtypes, name, None)
        if not isinstance(found, type) or not issubclass(found, np.generic):
            raise
        narrow: np.dtype = np.dtype(found)
        return narrow


def as_dtype(dtype: Any) -> np.dtype:
    """The dtype that a user gave as a NumPy dtype, a type, or a text; text dtypes mean bytes objects.

    `float` is float32, like Python's floats without a dtype.

    Raises:
      TypeError: if it names none, such as None, which is float64 in NumPy, or a class such as dict, which is object.
    """
    if dtype is None:
        raise WrongType("a dtype is missing; give one, such as np.float32")
    if dtype is str or dtype is bytes or (isinstance(dtype, str) and dtype == "string"):
        return STRING
    if dtype is float or (isinstance(dtype, str) and dtype == "float"):
        return np.dtype(np.float32)
    try:
        found = dtype_named(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except (TypeError, ValueError):
        raise WrongType(f'{dtype!r:.60} is not a dtype; give one, such as np.float32 or "int64"') from None
    if found == STRING and isinstance(dtype, type) and dtype not in (object, np.object_):
        raise WrongType(f"{dtype.__name__} is not a dtype; give one, such as np.float32")
    return STRING if found.kind in "US" else found


def narrowed(array: np.ndarray, dtype: np.dtype, apply: Apply = directly) -> np.ndarray:
    """A copy of `array` in a narrower dtype; `apply` converts it.

    Args:
      array: The array.
      dtype: The dtype of the copy.
      apply: Calls a function, so that warnings name the user's line.
    """
    result = np.empty(array.shape, dtype)
    apply(np.copyto, result, array, casting="unsafe")
    return result


def ufunc(op: str) -> np.ufunc:
    """The NumPy function for a reduction; for "mean", the sum, which `finish` divides.

    Sum and product of bools are "any" and "all"; complex numbers are ordered by real, then imaginary part; integers
    wrap around, as everywhere in NumPy.

    Raises:
      ValueError: if there is no such reduction.
    """
    try:
        return _UFUNCS[op]
    except KeyError:
        raise ValueError(f"unknown reduction {op!r}: use one of {', '.join(_UFUNCS)}") from None


def combine(
    function: np.ufunc, sources: Sequence[np.ndarray], out: np.ndarray, apply: Apply = directly
) -> None:
    """Combines one-dimensional arrays into `out` in the given order, so that results are reproducible.

    Args:
      function: The result of `ufunc`.
      sources: At least one array, all of the shape and dtype of `out`; only the first may overlap `out`.
      out: Receives the result.
      apply: Calls the function.
    """
    if len(sources) == 1:
        np.copyto(out, sources[0])
        return
    first, second, *rest = sources
    if not rest or out.nbytes <= _CHUNK_BYTES:
        apply(function, first, second, out=out)
        for source in rest:
            apply(function, out, source, out=out)
        return
    step = max(1, _CHUNK_BYTES // out.itemsize)
    for low in range(0, out.size, step):
        part = slice(low, low + step)
        combine(function, [source[part] for source in sources], out[part], apply)


def finish(op: str, total: np.ndarray, replicas: int, apply: Apply = directly) -> None:
    """Turns a sum over `replicas` into the result of `op`, in place: `apply` divides it when `op` is "mean".

    Args:
      op: "mean" divides; other operations change nothing.
      total: The sum, which is changed.
      replicas: Number of replicas.
      apply: Calls a function, so that warnings name the user's line.
    """
    if op == "mean" and replicas > 1:
        if replicas & (replicas - 1) == 0:
            # This is exact for powers of two, and faster.
            apply(np.multiply, total, total.dtype.type(1.0 / replicas), out=total)
        else:
            apply(np.divide, total, total.dtype.type(replicas), out=total)
