"""Arrays of PyTorch and JAX, where these are installed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends import numpy as backend


def test_a_tensor_is_read_in_place(torch: Any) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    seen = backend.view(tensor)
    tensor[0, 0] = 9.0
    assert seen[0, 0] == 9.0


def test_a_tensor_that_needs_gradients_is_detached(torch: Any) -> None:
    assert backend.view(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "bool", "complex64"])
def test_tensors_come_back_as_they_went(torch: Any, name: str) -> None:
    tensor = torch.tensor([0, 1, 1]).to(getattr(torch, name))
    back = backend.like(backend.view(tensor).copy(), tensor)
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


def test_bfloat16_tensors_are_viewed_as_such(torch: Any) -> None:
    assert backend.view(torch.ones(2, dtype=torch.bfloat16)).dtype == ml_dtypes.bfloat16


def test_lazy_conjugates_are_resolved(torch: Any) -> None:
    assert backend.view(torch.tensor([1 + 2j]).conj())[0] == 1 - 2j


def test_a_read_only_result_becomes_a_tensor_of_its_own(torch: Any) -> None:
    array = np.ones(3)
    array.flags.writeable = False
    backend.like(array, torch.ones(1))[0] = 5.0
    assert array[0] == 1.0


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int32"])
def test_jax_arrays_come_back_as_they_went(jax: Any, name: str) -> None:
    array = jax.numpy.arange(4).astype(name)
    memory = backend.view(array).copy()
    back = backend.like(memory, array)
    memory[:] = 0  # a JAX array is immutable, so it must not share memory that is reused
    assert back.dtype == array.dtype
    assert (back == array).all()
