"""The real binding, which needs CuPy and no GPU (CONTRIBUTING.md says how to get it): it is as the simulation."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.communicators import simulated_nccl
from workbench.backends.cupy import DTYPES


@pytest.fixture
def real_cupy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about libraries that this test does not need
        return pytest.importorskip("cupy", reason="CuPy is not installed: pip install -e '.[gpu13]'")


def test_the_simulation_counts_as_the_real_binding_does(real_cupy: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cupy.cuda import nccl
    if not nccl.available:
        pytest.skip("CuPy finds no NCCL")

    numbers = {name: value for name, value in vars(simulated_nccl).items() if name.startswith("NCCL_")}
    assert {name: getattr(nccl, name) for name in numbers} == numbers
    methods = "allReduce reduce broadcast reduceScatter allGather abort destroy check_async_error".split()
    for cls in (simulated_nccl.NcclCommunicator, nccl.NcclCommunicator):
        assert [name for name in methods if not hasattr(cls, name)] == []


@pytest.mark.parametrize(
    "name",
    [
        *sorted(DTYPES),
        "float8_e4m3fn",
        "float8_e5m2",
        "longdouble",
        "clongdouble",
        "datetime64[s]",
        "S3",
        ">f4",
    ],
)
def test_the_real_binding_has_the_dtypes_that_it_is_given(real_cupy: Any, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    try:
        real_cupy.ndarray((0,), dtype)
        refused = ""
    except Exception as error:  # without a driver, CuPy's own error, raised after the check of the dtype
        refused = str(error)

    assert refused.startswith("Unsupported dtype") == (name not in DTYPES), refused
