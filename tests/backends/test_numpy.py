"""Reading, combining, summarising and handing back arrays on the CPU."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends import numpy as backend


class OnlyDlpack:
    """An array of a library that we know nothing about."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class ActsAsArray:
    """Like a variable: converts to an array on demand."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array([1.0, 2.0], dtype)


def test_view_of_an_array_is_the_array_itself() -> None:
    array = np.arange(6).reshape(2, 3).T
    assert backend.view(array) is array


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j, np.float16(3), np.int8(-1)])
def test_view_of_a_number_is_zero_dimensional(value: Any) -> None:
    array = backend.view(value)
    assert array.shape == ()
    assert array[()] == value


def test_view_of_a_dlpack_array_shares_its_memory() -> None:
    array = np.arange(5.0)
    seen = backend.view(OnlyDlpack(array))
    array[0] = 9.0
    assert seen[0] == 9.0


def test_view_takes_lists_and_what_converts_to_an_array() -> None:
    assert backend.view([[1, 2], [3, 4]]).shape == (2, 2)
    assert backend.view(ActsAsArray()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("value", [object(), [object()], {"a": 1}, None])
def test_view_refuses_what_is_no_array_of_numbers(value: Any) -> None:
    with pytest.raises(TypeError, match="array of numbers"):
        backend.view(value)


@pytest.mark.parametrize(
    ("original", "kind"),
    [(3, np.integer), (2.5, np.float64), (np.float32(1), np.float32), (np.ones(()), np.ndarray)],
)
def test_like_hands_numbers_back_as_scalars_and_arrays_as_arrays(original: Any, kind: type) -> None:
    assert isinstance(backend.like(np.asarray(original), original), kind)


def test_other_libraries_are_never_imported() -> None:
    program = (
        "import sys, numpy as np; from workbench.backends import numpy as b; b.view([1]); "
        "assert not {'torch', 'jax', 'cupy', 'ml_dtypes'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("dtype", "op", "wide"),
    [
        (np.float16, "sum", np.float32),
        (ml_dtypes.bfloat16, "max", np.float32),
        (ml_dtypes.float8_e4m3fn, "sum", np.float32),
        (np.float32, "mean", np.float32),
        (np.int8, "sum", np.int8),
        (np.int8, "mean", np.float64),
        (np.bool_, "mean", np.float64),
        (np.complex64, "mean", np.complex64),
    ],
)
def test_accumulator(dtype: Any, op: str, wide: Any) -> None:
    assert backend.accumulator(np.dtype(dtype), op) == wide


def test_a_thousand_ones_in_bfloat16_are_a_thousand() -> None:
    ones = [np.ones(1, ml_dtypes.bfloat16).astype(backend.accumulator(np.dtype(ml_dtypes.bfloat16)))] * 1000
    total = np.empty(1, np.float32)
    backend.combine(backend.ufunc("sum"), ones, total)
    assert total[0] == 1000.0


@pytest.mark.parametrize("count", [0, 1, 7, 100_000])
@pytest.mark.parametrize("sources", [1, 2, 3, 5])
def test_combine_goes_in_the_order_given(count: int, sources: int) -> None:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(count).astype(np.float32) for _ in range(sources)]
    want = arrays[0].copy()
    for array in arrays[1:]:
        want = want + array
    out = np.empty(count, np.float32)
    backend.combine(np.add, arrays, out)
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize("op", ["sum", "min", "max", "prod"])
@pytest.mark.parametrize("replicas", [2, 3])
def test_every_reduction_is_combined_without_a_warning(op: str, replicas: int) -> None:
    sources = [np.array([1.0, 3.0], np.float32), np.array([2.0, 2.0], np.float32), np.ones(2, np.float32)]
    total = np.empty(2, np.float32)

    backend.combine(backend.ufunc(op), sources[:replicas], total)

    want = {"sum": np.sum, "min": np.min, "max": np.max, "prod": np.prod}[op](sources[:replicas], axis=0)
    assert total.tolist() == want.tolist()


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7])
def test_finish_divides_a_mean_exactly(replicas: int) -> None:
    total = np.array([1.0, 10.0, 1e-3], np.float32)
    want = total / np.float32(replicas)
    backend.finish("mean", total, replicas)
    assert total.tobytes() == want.tobytes()
    backend.finish("sum", total, replicas)
    assert total.tobytes() == want.tobytes()


def test_unknown_reduction_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="sum, mean, min, max, prod"):
        backend.ufunc("median")


@pytest.mark.parametrize("name", [float, "float"])
def test_pythons_floats_have_32_bits(name: Any) -> None:
    assert backend.as_dtype(name) == np.float32
    assert backend.as_dtype("double") == backend.as_dtype(np.float64) == np.float64


def test_dtypes_by_name() -> None:
    assert backend.dtype_named("bfloat16") == ml_dtypes.bfloat16
    assert backend.dtype_named("<f4") == np.float32


@pytest.mark.parametrize("name", ["finfo", "iinfo", "real", "__doc__", "_np", "nothing"])
def test_a_name_of_ml_dtypes_that_is_no_dtype_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"data type '{name}' not understood"):
        backend.dtype_named(name)
    with pytest.raises(TypeError, match=f"'{name}' is not a dtype; give one, such as np.float32"):
        backend.as_dtype(name)


@pytest.mark.parametrize("wrong", [dict, list, np.ndarray, type(None), ml_dtypes.finfo])
def test_a_class_that_is_no_dtype_is_refused(wrong: type) -> None:
    with pytest.raises(TypeError, match=f"^{wrong.__name__} is not a dtype; give one, such as np.float32$"):
        backend.as_dtype(wrong)


@pytest.mark.parametrize(
    "text", [str, bytes, object, np.object_, np.str_, np.bytes_, "string", "U3", "S", "O"]
)
def test_dtypes_of_texts_are_those_of_bytes_objects(text: Any) -> None:
    assert backend.as_dtype(text) == np.dtype(object)
