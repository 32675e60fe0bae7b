"""Numbers in another dtype: nothing but digits gets lost."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends.conversion import converted

_NAN, _INF = float("nan"), float("inf")


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        (0.1, "float32", np.float32(0.1)), (1e-300, "float16", 0), (-_INF, "float32", -_INF),
        (_NAN, "complex64", _NAN), (3.0, "uint8", 3), (3 + 0j, "int64", 3), (1, "bool", True), (True, "int8", 1),
        (2**64 - 1, "uint64", 2**64 - 1), (2**70 + 1, "float32", 2.0**70), (2**70, "bfloat16", 2.0**70),
        (0.1, "bfloat16", ml_dtypes.bfloat16(0.1)), (_NAN, "bfloat16", _NAN), (_INF, "bfloat16", _INF),
        (_NAN, "float8_e4m3fn", _NAN), (448, "float8_e4m3fn", 448), (6, "float4_e2m1fn", 6), (7, "int4", 7),
    ],
)  # fmt: skip
def test_a_number_that_fits_is_converted(given: Any, name: str, expected: Any) -> None:
    found = converted(np.asarray(given), _dtype(name))
    assert found.dtype == _dtype(name)
    wanted = np.asarray(expected).astype(found.dtype)
    np.testing.assert_array_equal(found.astype(complex), wanted.astype(complex))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (1.5, "int64"), (_NAN, "int64"), (_INF, "uint8"), (300, "uint8"), (-1, "uint64"), (2**63, "int64"),
        (2.0**63, "int64"), (2**64, "uint64"), (2**70, "int64"), (2, "bool"), (_NAN, "bool"), (1j, "float64"),
        (complex(0, _NAN), "float64"), (1e300, "float32"), (1e300, "complex64"), (10**400, "float64"),
        (1e300, "bfloat16"), (1j, "bfloat16"), (449 * 2, "float8_e4m3fn"), (_INF, "float8_e4m3fn"),
        (7, "float4_e2m1fn"), (_NAN, "float4_e2m1fn"), (_INF, "float4_e2m1fn"),
        (8, "int4"), (1.5, "int4"), (_NAN, "int4"), (-1, "uint4"),
        (b"3", "int64"), (b"3", "float64"), ("3", "float64"), (None, "float64"),
        (np.datetime64("2026-01-01"), "int64"), (3, "datetime64[s]"), (3, "V8"), (3, "S3"), (3, "object"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_number_that_would_become_another_is_not(given: Any, name: str) -> None:
    assert converted(np.asarray(given), _dtype(name)) is None
    if given is not None and not isinstance(given, int):
        assert converted(np.array([given] * 3), _dtype(name)) is None


@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_narrow_complex_numbers_become_real_without_an_imaginary_part(name: str) -> None:
    assert converted(np.array([1 + 2j]).astype(_dtype(name)), np.dtype(np.float64)) is None
    found = converted(np.array([1 + 0j, 3]).astype(_dtype(name)), np.dtype(np.int16))
    np.testing.assert_array_equal(found, np.array([1, 3], np.int16), strict=True)


def test_what_has_the_dtype_is_returned_as_it_is() -> None:
    numbers = np.arange(3)
    assert converted(numbers, np.dtype(np.int64)) is numbers
    assert converted(np.empty((0, 2), object), np.dtype(np.int16)).dtype == np.int16
